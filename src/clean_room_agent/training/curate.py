"""`cra curate-data`: writes a dataset from the record and a plan; every row left out is counted by its reason."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.db.raw.training import DatasetRow, append_dataset, list_datasets_of_stage
from clean_room_agent.errors import CraError, UsageError
from clean_room_agent.git.clones import Objects
from clean_room_agent.git.repository import open_repository
from clean_room_agent.redaction import Redactor
from clean_room_agent.training.dataset import (
    Card,
    Entry,
    Preference,
    Row,
    TrainerFormat,
    Written,
    require_free,
    write_dataset,
)
from clean_room_agent.training.dataset_filters import (
    SPLIT_RULE,
    alike,
    balance,
    cap,
    fault_of,
    split_groups,
)
from clean_room_agent.training.dataset_reading import read_rows
from clean_room_agent.training.examples import Example
from clean_room_agent.training.licences import Licences
from clean_room_agent.training.pipeline import Pipeline
from clean_room_agent.training.plan import TrainingPlan
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

AnyRow = TypeVar("AnyRow", Row, Preference)


class Curated(Struct, frozen=True, kw_only=True):
    """The result of a curation."""

    written: Written | None
    """None if no good example is left; then nothing was written."""
    dataset_id: int
    """In the record; 0 if nothing was written."""
    exclusions: dict[str, int]
    """How many were left out, by reason."""


def curate(
    pipeline: Pipeline,
    source: LogSource,
    plan: TrainingPlan,
    plan_id: int,
    folder: Path,
    trainer: TrainerFormat,
    *,
    redactor: Redactor,
    count: Callable[[str], int],
    stages: Sequence[str] = ("data_selection",),
) -> Curated:
    """Write the plan's examples to the folder, and record the outcome, even if there are none.

    `plan_id` is the plan in the record; `count` gives the tokens of a text for the base model.

    Raises:
        UsageError: the folder is taken, an extra is missing, or the plan asks for mined rows and there are none.
        ModelError: the server.
    """
    require_free(folder)
    with pipeline.recorded("curate_data", stages) as outcome:
        examples = source.examples(plan.target)
        context = pipeline.narrow(
            "curate_data",
            f"Choose the recorded answers of {plan.target} that are good examples to train with.",
            tuple(examples),
            source,
            stages=stages,
            config=TrainingStageConfig(criteria=plan.criteria, target=plan.target),
        )
        chosen = with_licences(examples[entry.path] for entry in context.files)
        kept = {example.key for example in chosen}
        left_out = Counter(_reason(each) for each in examples.values() if each.key not in kept)
        sieve = _Sieve(
            plan, redactor, count, left_out, {each.last.call.site.pass_id: _words(each) for each in chosen}
        )
        good = sieve.pass_rows([each.row(label=True) for each in chosen if each.worth != "bad"])
        if plan.criteria.synthetic_weight:
            good = sieve.pass_rows([*good, *_mined(pipeline, plan, len(good))])
        if not good:
            outcome.detail = f"no good example of {plan.target} is left"
            return Curated(written=None, dataset_id=0, exclusions=dict(sorted(left_out.items())))
        entries = sieve.entries(good, chosen)
        card = _card(plan, dict(sorted(left_out.items())))
        written = write_dataset(folder, entries, card, trainer)
        dataset_id = pipeline.record.write(append_dataset, _row(pipeline, plan, plan_id, written, entries))
        outcome.success, outcome.detail = True, f"{written.count('sft')} rows in {written.folder}"
    return Curated(written=written, dataset_id=dataset_id, exclusions=dict(card.exclusions))


def _row(
    pipeline: Pipeline, plan: TrainingPlan, plan_id: int, written: Written, entries: Sequence[Entry]
) -> DatasetRow:
    return DatasetRow(
        training_plan_id=plan_id,
        stage_name=plan.target,
        base_model=plan.base_model,
        source="logged",
        dataset_path=str(written.folder),
        example_count=written.count("sft"),
        positive_count=written.count("sft"),
        negative_count=sum(isinstance(each.row, Row) and not each.row.label for each in entries),
        format=written.trainer,
        timestamp=pipeline.record.now(),
    )


class _Sieve:
    """Filters rows by the plan's rules, and counts what is left out. Rows of tasks with the same words are one group."""

    def __init__(
        self,
        plan: TrainingPlan,
        redactor: Redactor,
        count: Callable[[str], int],
        left_out: Counter[str],
        words: dict[str, str],
    ) -> None:
        self._criteria = plan.criteria
        self._redactor = redactor
        self._count = count
        self._left_out = left_out
        self._words = words

    def group(self, row: Row | Preference) -> tuple[str, str]:
        """Failed and solved runs of the same words share their questions, and so must share their split."""
        words = self._words.get(row.origin.task_id)
        return row.origin.group if words is None else (row.origin.repo, words)

    def pass_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Good rows that may be learned from, in order."""
        criteria = self._criteria
        left = self._fit(rows)
        left = self._without(left, alike(left, threshold=criteria.near_duplicate, group=self.group))
        capped = cap(
            left,
            per_group=criteria.max_per_task,
            per_repository=criteria.max_per_repository,
            group=self.group,
        )
        left = self._without(left, capped)
        return self._without(left, balance(left, max_ratio=criteria.max_ratio))

    def _without(self, rows: Sequence[Row], out: Mapping[int, str]) -> list[Row]:
        self._left_out.update(out.values())
        return [row for place, row in enumerate(rows) if place not in out]

    def entries(self, good: Sequence[Row], chosen: Sequence[Example]) -> list[Entry]:
        """The rows of all kinds with their splits: rows of one task are in the same split, without near-duplicates from
        other tasks.
        """
        bad = self._fit([each.row(label=False) for each in chosen if each.worth == "bad"])
        pairs = self._fit([pair for each in chosen if each.worth != "bad" for pair in _pairs(each)])
        out = alike([*good, *bad], threshold=self._criteria.near_duplicate, group=self.group)
        self._left_out.update(reason for place, reason in out.items() if place >= len(good))
        bad = [row for place, row in enumerate(bad, len(good)) if place not in out]
        kept = {self.group(row) for row in (*good, *bad)}
        pairs = [pair for pair in pairs if self.group(pair) in kept]
        splits = split_groups([*good, *bad, *pairs], self.group)
        entries = [Entry(split=splits[self.group(row)], kind="sft", row=row) for row in good]
        entries += [Entry(split=splits[self.group(pair)], kind="dpo", row=pair) for pair in pairs]
        if bad:
            entries += [Entry(split=splits[self.group(row)], kind="kto", row=row) for row in (*good, *bad)]
        return entries

    def _fit(self, rows: Iterable[AnyRow]) -> list[AnyRow]:
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
    with ExitStack() as opened:
        for each in examples:
            repo = each.task.run.repo_path
            if repo not in readers:
                readers[repo] = _licences(repo, opened)
            known = readers[repo]
            licence = known and (known.of(each.task.run.commit) or known.of("HEAD"))
            found.append(replace(each, license=licence or ""))
    return found


def _licences(repo: str, opened: ExitStack) -> Licences | None:
    try:
        git_dir = open_repository(Path(repo)).common_dir
    except CraError:
        return None
    return Licences(opened.enter_context(Objects(git_dir)))


def _pairs(example: Example) -> tuple[Preference, ...]:
    pair = example.preference()
    return () if pair is None else (pair,)


def _reason(example: Example) -> str:
    return f"{example.reason} (doubtful)" if example.worth == "doubtful" else example.reason


def _words(example: Example) -> str:
    return " ".join(example.task.run.description.split())


def _mined(pipeline: Pipeline, plan: TrainingPlan, logged: int) -> list[Row]:
    """As many rows from other repositories' histories as the plan asks for, from the newest dataset that has any.

    Raises:
        UsageError: there is none.
    """
    found = pipeline.record.write(list_datasets_of_stage, plan.target, "synthetic")
    if not found:
        raise UsageError(
            f"the plan mixes in mined rows, but the record has none for {plan.target}",
            hint="`cra bootstrap` makes them; or set synthetic_weight to 0 in the plan",
        )
    rows = sorted(read_rows(Path(found[-1].dataset_path), plan.target), key=lambda row: row.id)
    return rows[: round(logged * plan.criteria.synthetic_weight)]


def _card(plan: TrainingPlan, exclusions: dict[str, int]) -> Card:
    return Card(
        title=f"{plan.target} from recorded runs",
        base_model=plan.base_model,
        plan=plan.model_dump(mode="json"),
        criteria=plan.criteria.model_dump(mode="json"),
        split_rule=SPLIT_RULE,
        exclusions=exclusions,
    )
