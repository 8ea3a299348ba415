"""`cra curate-data`: writes a dataset from the record and a plan; every row left out is counted by its reason.

Answers that agree with the accepted change are chosen and, as bad examples, answers that failures are charged to.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, DatasetRow, list_datasets_of_stage
from clean_room_agent.errors import CraError, UsageError
from clean_room_agent.git.clones import Objects
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.redaction import Redactor
from clean_room_agent.training.dataset import (
    Card,
    DatasetEntry,
    TrainerFormat,
    TrainingRow,
    Written,
    read_rows,
    require_free,
    write_dataset,
)
from clean_room_agent.training.dataset_filters import SPLIT_RULE, alike, balance, cap, fault_of, split_groups
from clean_room_agent.training.examples import Example, read_examples
from clean_room_agent.training.licences import Licences
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.train_plan import TrainingPlan


class Curated(Struct, frozen=True, kw_only=True):
    """The result of a curation."""

    written: Written | None
    """None if no good example is left; then nothing was written."""
    dataset_id: int
    """In the record; 0 if nothing was written."""
    exclusions: dict[str, int]
    """How many were left out, by reason."""


def curate(
    record: Record,
    logs: LogAnalysisAPI,
    prompt: Prompt[Any, Any],
    plan: TrainingPlan,
    plan_id: int,
    folder: Path,
    trainer: TrainerFormat,
    redactor: Redactor,
    count: Callable[[str], int],
    progress: Callable[[int, int], None],
) -> Curated:
    """Write the plan's examples to the folder, and record the dataset. `plan_id` is the plan in the record; `count` gives
    the tokens of a text for the base model.

    Raises:
        UsageError: the folder is taken, an extra is missing, or the plan asks for mined rows and there are none.
    """
    require_free(folder)
    examples = read_examples(logs, prompt, progress)
    left_out = Counter(each.reason for each in examples if each.worth == "out")
    chosen = with_licences(each for each in examples if each.worth != "out")
    words = {each.last.call.site.pass_id: " ".join(each.task.run.description.split()) for each in chosen}
    sieve = _Sieve(plan, redactor, count, left_out, words)
    good = sieve.good_rows([each.row(label=True) for each in chosen if each.worth == "good"])
    if plan.criteria.synthetic_weight:
        good = sieve.good_rows([*good, *_mined_rows(record, plan, len(good))])
    if not good:
        return Curated(written=None, dataset_id=0, exclusions=dict(sorted(left_out.items())))
    entries = sieve.entries(good, chosen)
    exclusions = dict(sorted(left_out.items()))
    card = Card(
        title=f"{plan.target} from recorded runs",
        base_model=plan.base_model,
        plan=plan.model_dump(mode="json"),
        criteria=plan.criteria.model_dump(mode="json"),
        split_rule=SPLIT_RULE,
        exclusions=exclusions,
    )
    written = write_dataset(folder, entries, card, trainer)
    row = DatasetRow(
        training_plan_id=plan_id,
        stage_name=plan.target,
        base_model=plan.base_model,
        source="logged",
        dataset_path=str(written.folder),
        example_count=written.count("sft"),
        positive_count=written.count("sft"),
        negative_count=sum(not each.row.label for each in entries),
        format=written.trainer,
        timestamp=record.now(),
    )
    dataset_id = record.write(TRAINING_DATASETS.insert, row)
    return Curated(written=written, dataset_id=dataset_id, exclusions=exclusions)


class _Sieve:
    """Filters rows by the plan's rules, and counts what is left out. Rows of tasks with the same words are one group."""

    def __init__(
        self,
        plan: TrainingPlan,
        redactor: Redactor,
        count: Callable[[str], int],
        left_out: Counter[str],
        words: Mapping[str, str],
    ) -> None:
        """`words`: of each task, by the id of the pass."""
        self._criteria = plan.criteria
        self._redactor = redactor
        self._count = count
        self._left_out = left_out
        self._words = words

    def group(self, row: TrainingRow) -> tuple[str, str]:
        """Failed and solved runs of the same words share their questions, and so must share their split."""
        words = self._words.get(row.origin.task_id)
        return row.origin.group if words is None else (row.origin.repo, words)

    def good_rows(self, rows: Sequence[TrainingRow]) -> list[TrainingRow]:
        """Good rows that may be learned from, in order."""
        criteria = self._criteria
        left = self._faultless_rows(rows)
        left = self._drop_rows(left, alike(left, threshold=criteria.near_duplicate, group=self.group))
        capped = cap(
            left,
            per_group=criteria.max_per_task,
            per_repository=criteria.max_per_repository,
            group=self.group,
        )
        left = self._drop_rows(left, capped)
        return self._drop_rows(left, balance(left, max_ratio=criteria.max_ratio))

    def _drop_rows(self, rows: Sequence[TrainingRow], out: Mapping[int, str]) -> list[TrainingRow]:
        self._left_out.update(out.values())
        return [row for place, row in enumerate(rows) if place not in out]

    def entries(self, good: Sequence[TrainingRow], chosen: Sequence[Example]) -> list[DatasetEntry]:
        """The rows of all kinds with their splits: all rows of a task in one, without near-duplicates of other tasks."""
        bad = self._faultless_rows([each.row(label=False) for each in chosen if each.worth == "bad"])
        pairs = self._faultless_rows(
            [pair for each in chosen if each.worth != "bad" for pair in each.pairs()]
        )
        out = alike([*good, *bad], threshold=self._criteria.near_duplicate, group=self.group)
        self._left_out.update(reason for place, reason in out.items() if place >= len(good))
        bad = [row for place, row in enumerate(bad, len(good)) if place not in out]
        kept = {self.group(row) for row in (*good, *bad)}
        pairs = [pair for pair in pairs if self.group(pair) in kept]
        splits = split_groups([*good, *bad, *pairs], self.group)
        entries = [DatasetEntry(split=splits[self.group(row)], kind="sft", row=row) for row in good]
        entries += [DatasetEntry(split=splits[self.group(pair)], kind="dpo", row=pair) for pair in pairs]
        if bad:
            entries += [
                DatasetEntry(split=splits[self.group(row)], kind="kto", row=row) for row in (*good, *bad)
            ]
        return entries

    def _faultless_rows(self, rows: Iterable[TrainingRow]) -> list[TrainingRow]:
        left = []
        for row in rows:
            fault = fault_of(
                row, max_tokens=self._criteria.max_tokens, count=self._count, redactor=self._redactor
            )
            if fault:
                self._left_out[fault] += 1
            else:
                left.append(row)
        return left


def with_licences(examples: Iterable[Example]) -> list[Example]:
    """The examples with the licence of the commit that their code is from, or of the repository's last one if that is
    gone; "" if the repository is gone. The card tells recipients of the dataset; no example is refused because of it.
    """
    readers: dict[str, Licences | None] = {}
    found = []
    for each in examples:
        repo = each.task.run.repo_path
        if repo not in readers:
            try:
                readers[repo] = Licences(Objects(open_repository(Path(repo)).common_dir))
            except CraError:
                readers[repo] = None
        known = readers[repo]
        licence = known and (known.of(each.task.run.commit) or known.of("HEAD"))
        found.append(replace(each, license=licence or ""))
    return found


def _mined_rows(record: Record, plan: TrainingPlan, logged: int) -> list[TrainingRow]:
    """As many rows from other histories as the plan asks for, from the newest dataset with any; UsageError if none has."""
    found = record.write(list_datasets_of_stage, plan.target, "synthetic")
    if not found:
        raise UsageError(
            f"the plan mixes in mined rows, but the record has none for {plan.target}",
            hint="`cra bootstrap` makes them; or set synthetic_weight to 0 in the plan",
        )
    rows = sorted(read_rows(Path(found[-1].dataset_path), plan.target), key=lambda row: row.id)
    return rows[: round(logged * plan.criteria.synthetic_weight)]
