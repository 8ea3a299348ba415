"""The datasets of the loop: trained on older commits of some repositories, tested on newer ones of others.

The control has the same rows with one another's answers: whatever it learns is not what was asked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS, DatasetRow
from clean_room_agent.training.dataset import (
    FORMATS,
    SPLITS,
    Card,
    DatasetEntry,
    TrainingRow,
    read_rows,
    write_dataset,
)
from clean_room_agent.training.dataset_filters import balance
from clean_room_agent.training.train_plan import TrainingPlan, row_of

TRAIN = ("psf/requests", "pallets/click")
"""Their older commits; of newer ones `benchmarks.commits` has some."""
TEST = ("marshmallow-code/marshmallow", "celery/celery")
"""None of whose commits is trained on."""
UNTIL = "2020-01-01"
"""What is trained on is older, and no commit that is measured on is."""
SPLIT_RULE = (
    f"Trained on commits before {UNTIL}; validation holds the newest of them; the test holds other repositories' commits, "
    "all of them newer."
)


def loop_rows(
    mined: Path, held_out: Path, plan: TrainingPlan, *, rows: int, test_rows: int, validation_rows: int
) -> list[DatasetEntry]:
    """The rows of a dataset for the plan's prompt, from what was mined of both groups of repositories.

    Training rows have as many of each answer; validation and test keep up to the plan's ratio, as their prompts come.
    """
    train = _of_each_answer(_balanced(read_rows(mined, plan.target, "train"), 1.0), rows)
    validation = [row for split in SPLITS[1:] for row in read_rows(mined, plan.target, split)]
    newest = max(row.origin.timestamp for row in (*train, *validation))
    test = [row for row in read_rows(held_out, plan.target) if row.origin.timestamp > newest]
    test = _balanced(sorted(test, key=_place), plan.criteria.max_ratio)
    parts = {
        "train": train,
        "validation": _whole_tasks(
            _balanced(sorted(validation, key=_place), plan.criteria.max_ratio), validation_rows
        ),
        "test": _whole_tasks(test, test_rows),
    }
    return [DatasetEntry(split=split, kind="sft", row=row) for split in SPLITS for row in parts[split]]


def shuffled(entries: Sequence[DatasetEntry]) -> list[DatasetEntry]:
    """The training rows have answers of rows of other repositories; what is tested on stays.

    Dealt out among all rows, a third of the answers would name files that stand in their prompt: enough to learn to copy one,
    which is what the task wants (of 154 held-out questions such a control had 16 right, where the base has none).
    """
    train = [each.row for each in entries if each.split == "train" and isinstance(each.row, TrainingRow)]
    train.sort(key=lambda row: (row.origin.repo, row.id))
    most = max(Counter(row.origin.repo for row in train).values())
    answers = [row.completion for row in train]
    dealt = dict(zip((row.id for row in train), answers[most:] + answers[:most], strict=True))
    return [
        replace(each, row=replace(each.row, completion=dealt[each.row.id]))
        if each.split == "train" and isinstance(each.row, TrainingRow)
        else each
        for each in entries
    ]


def register(record: Record, folder: Path, plan: TrainingPlan, entries: Sequence[DatasetEntry]) -> int:
    """The dataset stands in the folder and in the record, with its plan; its number."""
    card = Card(
        title="The loop's rows",
        base_model=plan.base_model,
        plan={},
        criteria={"trained": list(TRAIN), "held out": list(TEST)},
        split_rule=SPLIT_RULE,
        exclusions={},
    )
    written = write_dataset(folder, entries, card, FORMATS["trl"])
    now = record.now()
    row = DatasetRow(
        training_plan_id=record.write(TRAINING_PLANS.insert, row_of(plan, task_id="loop", raw="", now=now)),
        stage_name=plan.target,
        base_model=plan.base_model,
        source="synthetic",
        dataset_path=str(written.folder),
        example_count=len(entries),
        positive_count=len(entries),
        negative_count=0,
        format="trl",
        timestamp=now,
    )
    return record.write(TRAINING_DATASETS.insert, row)


def _place(row: TrainingRow) -> tuple[str, ...]:
    """Prompts of one task beside one another: a server reads what they share once."""
    return (*row.origin.group, row.prompt[-1].content)


def _balanced(rows: Iterable[TrainingRow], ratio: float) -> list[TrainingRow]:
    every = list(rows)
    out = balance(every, max_ratio=ratio)
    return [row for place, row in enumerate(every) if place not in out]


def _of_each_answer(rows: Sequence[TrainingRow], most: int) -> list[TrainingRow]:
    """The first `most` rows by their ids, so by chance, of verdicts as many of each word."""
    words = sorted({row.completion[-1].content for row in rows})
    if len(words) > 3:
        return sorted(rows, key=lambda row: row.id)[:most]
    kept: list[TrainingRow] = []
    for word in words:
        own = sorted((row for row in rows if row.completion[-1].content == word), key=lambda row: row.id)
        kept += own[: most // len(words)]
    return sorted(kept, key=lambda row: row.id)


def _whole_tasks(rows: Sequence[TrainingRow], most: int) -> list[TrainingRow]:
    """The rows of whole tasks, the newest first, until there are `most`."""
    kept: list[TrainingRow] = []
    for group in _newest_first(rows):
        if len(kept) >= most:
            break
        kept += [row for row in rows if row.origin.group == group]
    return sorted(kept, key=_place)


def _newest_first(rows: Sequence[TrainingRow]) -> Iterator[tuple[str, str]]:
    times = {row.origin.group: row.origin.timestamp for row in rows}
    yield from sorted(times, key=lambda group: (times[group], group), reverse=True)
