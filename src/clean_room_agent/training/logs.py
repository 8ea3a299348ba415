"""`LogAnalysisAPI`: read access to the record of all runs, the counterpart of `KnowledgeBase` for a repository."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from clean_room_agent.artifacts.names import part_of
from clean_room_agent.artifacts.outcomes import PassType, RunStatus
from clean_room_agent.db.raw import analysis
from clean_room_agent.db.raw.analysis import CallSums, EndedAttempt, EndedPass, EndedRun, JudgedItem, ReadCall
from clean_room_agent.db.rows import Connection
from clean_room_agent.training.gold import AcceptedChange, gold_of

PLANNING: Mapping[PassType, str] = {PassType.META_PLAN: "meta_plan", PassType.PART_PLAN: "part_plan"}
NOT_JUDGED = frozenset({"task_analysis", "candidates", "assembly"})
"""Stages whose decisions are not verdicts about a file."""


class TaskLog(Struct, frozen=True, kw_only=True):
    """One ended run with everything that explains its outcome."""

    run: EndedRun
    items: tuple[JudgedItem, ...]
    passes: tuple[EndedPass, ...]
    attempts: tuple[EndedAttempt, ...]
    gold: AcceptedChange | None
    """The accepted change: of this run, or of the newest complete run with the same words in the same repository."""

    @property
    def solved(self) -> bool:
        """Whether the run ended as complete."""
        return self.run.status is RunStatus.COMPLETE

    def items_of(self, path: str) -> tuple[JudgedItem, ...]:
        """The decisions about one file and its pieces."""
        return tuple(item for item in self.items if item.path == path)

    def files_named(self, *kinds: PassType) -> frozenset[str]:
        """The files that the plans of these passes name."""
        return frozenset(
            path for each in self.passes if each.pass_type in kinds for path in files_of_plan(each.plan)
        )


class Agreement(Struct, frozen=True, kw_only=True):
    """Verdicts compared with what was finally changed."""

    right: int
    """Included, and changed."""
    extra: int
    """Included, but not changed. Some of it is context that a change needs, so precision is a lower bound."""
    missed: int
    """Left out, but changed."""

    @property
    def precision(self) -> float | None:
        """The share of the included items that was changed; None if nothing was included."""
        return self.right / (self.right + self.extra) if self.right + self.extra else None

    @property
    def recall(self) -> float | None:
        """The share of the changed items that was included; None if nothing that was judged was changed."""
        return self.right / (self.right + self.missed) if self.right + self.missed else None


class PromptStats(Struct, frozen=True, kw_only=True):
    """The statistics of one prompt and model, as `cra stats` shows them."""

    sums: CallSums
    agreement: Agreement | None
    """None if the prompt judges no files, or no accepted change is known."""


class LogAnalysisAPI:
    """Answers questions about the record through an open connection, read-only. Runs are read once."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @cached_property
    def runs(self) -> tuple[EndedRun, ...]:
        """Every solve that ended, oldest first, without replays."""
        return analysis.list_ended_runs(self._conn)

    @cached_property
    def _accepted_changes(self) -> Mapping[tuple[str, str], tuple[str, AcceptedChange]]:
        """The newest complete run of each task and what it changed, by repository and words."""
        return {
            _same_task(run): (run.task_id, self._gold_of_run(run.task_id))
            for run in self.runs
            if run.status is RunStatus.COMPLETE
        }

    def _gold_of_run(self, task_id: str) -> AcceptedChange:
        passes = analysis.list_ended_passes(self._conn, task_id)
        return gold_of(each.diff for each in passes if each.pass_type is PassType.IMPLEMENT and each.success)

    def task(self, run: EndedRun) -> TaskLog:
        """Everything about one run."""
        accepted = self._accepted_changes.get(_same_task(run))
        if run.status is RunStatus.COMPLETE and accepted is not None and accepted[0] != run.task_id:
            gold: AcceptedChange | None = self._gold_of_run(run.task_id)
        else:
            gold = None if accepted is None else accepted[1]
        return TaskLog(
            run=run,
            items=analysis.list_judged_items(self._conn, run.task_id),
            passes=analysis.list_ended_passes(self._conn, run.task_id),
            attempts=analysis.list_ended_attempts(self._conn, run.task_id),
            gold=gold,
        )

    def tasks(self) -> Iterator[TaskLog]:
        """Every ended run, oldest first, loaded one at a time."""
        for run in self.runs:
            yield self.task(run)

    def watched_tasks(self, progress: Callable[[int, int], None]) -> Iterator[TaskLog]:
        """The same; `progress` is called with the number of the run and of all runs."""
        for number, task in enumerate(self.tasks(), 1):
            progress(number, len(self.runs))
            yield task

    def calls(self, task_id: str, prompt: str) -> tuple[ReadCall, ...]:
        """The calls of one prompt in a task, with their texts, by id."""
        return analysis.list_read_calls(self._conn, task_id, prompt)

    def prompt_stats(self) -> tuple[PromptStats, ...]:
        """The statistics of the whole record by prompt and model."""
        tallies: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for task in self.tasks():
            if task.gold is not None:
                for key, outcome in (
                    *_verdict_outcomes(task, task.gold),
                    *_plan_outcomes(task, task.gold, self),
                ):
                    tallies[key][outcome] += 1
        agreements = {
            key: Agreement(right=tally["right"], extra=tally["extra"], missed=tally["missed"])
            for key, tally in tallies.items()
        }
        return tuple(
            PromptStats(sums=sums, agreement=agreements.get((sums.prompt, sums.model)))
            for sums in analysis.list_call_sums(self._conn)
        )


def files_of_plan(plan: str) -> tuple[str, ...]:
    """The files that the parts or steps in a plan's JSON text name, in order, without duplicates."""
    if not plan:
        return ()
    value = json.loads(plan)
    steps = (*value.get("steps", ()), *value.get("revised_steps", ()))
    parts = [path for part in value.get("parts", ()) for path in part.get("affected_files", ())]
    return tuple(
        dict.fromkeys([*parts, *(target["path"] for step in steps for target in step["target_files"])])
    )


def files_of_parts(plan: str) -> Mapping[str, tuple[str, ...]]:
    """The files of each part in a meta-plan's JSON text; empty for any other plan."""
    parts = json.loads(plan).get("parts", ()) if plan else ()
    return {part["id"]: tuple(part.get("affected_files", ())) for part in parts}


def is_gold(item: JudgedItem, gold: AcceptedChange) -> bool:
    """Whether what was judged is part of the accepted change; a piece is if it is one of the changed definitions."""
    file = gold.file(item.path)
    return file is not None and (item.symbol is None or file.touches(item.symbol))


def lets_in(item: JudgedItem) -> bool:
    """Whether the verdict says that the item is to be changed: a file in scope, a piece that is primary."""
    return item.included and (item.symbol is None or item.detail == "primary")


def _verdict_outcomes(task: TaskLog, gold: AcceptedChange) -> Iterator[tuple[tuple[str, str], str]]:
    """Each verdict of a model once, though later passes repeat it."""
    judged = {
        (item.call_id, item.path, item.symbol): item
        for item in reversed(task.items)
        if item.call_id is not None and item.stage not in NOT_JUDGED
    }
    for item in judged.values():
        wanted, let_in = is_gold(item, gold), lets_in(item)
        if wanted or let_in:
            yield (item.prompt, item.model), _outcome_word(wanted=wanted, let_in=let_in)


def _plan_outcomes(
    task: TaskLog, gold: AcceptedChange, logs: LogAnalysisAPI
) -> Iterator[tuple[tuple[str, str], str]]:
    """A meta-plan is compared with all that was changed; a part's plan misses what its part was to change."""
    paths = {file.path for file in gold.files}
    parts = {name: files for each in task.passes for name, files in files_of_parts(each.plan).items()}
    for kind, prompt in PLANNING.items():
        made = [each for each in task.passes if each.pass_type is kind and each.plan]
        calls = logs.calls(task.run.task_id, prompt) if made else ()
        models = {asked.call.site.pass_id: asked.call.model.tag for asked in calls}
        for each in made:
            named = set(files_of_plan(each.plan))
            due = paths if kind is PassType.META_PLAN else paths & set(parts.get(part_of(each.pass_id), ()))
            for path in sorted(named | due):
                key = (prompt, models.get(each.pass_id, ""))
                yield key, _outcome_word(wanted=path in paths, let_in=path in named)


def _outcome_word(*, wanted: bool, let_in: bool) -> str:
    return ("right" if let_in else "missed") if wanted else "extra"


def _same_task(run: EndedRun) -> tuple[str, str]:
    return (run.repo_path, " ".join(run.description.split()))
