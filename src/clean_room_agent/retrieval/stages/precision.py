"""The stage `precision`: what of the files in scope is shown, and in how much detail.

Of the files that a plan names, what it names in them is shown without asking, and what hangs together with that. Of other
files, and where a plan does not say what of a file it means, the pieces nearest to the task are judged.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from clean_room_agent.artifacts.package import Detail
from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.query.file_kinds import is_side_file
from clean_room_agent.retrieval.code.pieces import OTHER_KINDS, Definition
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.judges import take_best
from clean_room_agent.retrieval.prompts.piece_judgment import CHANGE, PIECE_JUDGMENT, READ
from clean_room_agent.retrieval.prompts.precision_batch import PRECISION_BATCH
from clean_room_agent.retrieval.search.failing_tests import HelperCode, TestCode
from clean_room_agent.retrieval.selection import excerpts
from clean_room_agent.retrieval.selection.plan_targets import (
    Target,
    around,
    closeness_to,
    is_small,
    names_a_large_class,
    target_of,
)
from clean_room_agent.retrieval.selection.related_code import Span, related_selections
from clean_room_agent.retrieval.selection.relevance import PieceKey, holds_frame, is_said
from clean_room_agent.retrieval.selection.selectable_pieces import FilesInScope, Unit, files_in_scope, is_test
from clean_room_agent.retrieval.stage import (
    Candidate,
    Decision,
    Judge,
    Option,
    Selection,
    StageContext,
    Verdict,
)
from clean_room_agent.retrieval.stage_source import FileView, RepositorySource

STAGE = "precision"
TEST_SHARE = 4
"""Failing tests are shown up to this part of what is available, in their order; further ones are named alone."""
SMALL_TOKENS = 2000
"""Where all that could be asked about takes no more, it is shown."""
MAX_ROUNDS = 3
"""Where all that was asked about is judged not to be changed, the next are asked about, so many times in all; where none
of it is even to be read, the best are taken."""
TARGET_NAMES = 40
"""Definitions named of a file to be changed, those closest to the code that is shown."""
PLAN_NAMES = 15
"""Definitions named of a file in scope, for a planner, those nearest to the task."""
DETAILS: dict[str, Detail] = {CHANGE: "primary", READ: "supporting"}


class PrecisionStage:
    """What is named is shown; of everything else, what is judged to be needed."""

    def __init__(self, config: JudgmentsConfig, *, name: str = STAGE) -> None:
        self.name = name
        self._config = config

    def run(
        self, context: StageContext, source: RepositorySource, task: TaskQuery, models: Judge
    ) -> StageContext:
        """The context with what is to be shown, and a decision for each piece.

        Raises:
            RepositoryError: a file in scope is not what was indexed.
        """
        files = files_in_scope(context, source, task)
        targets = [
            target_of(list(units), files.hints, context.to_change)
            for tier, units in _by_file(files)
            if tier == 0
        ]
        tests = _test_selections(files.tests, context, source)
        whole, named = _without_asking(targets, source, context, files)
        chosen_before = [one for one in context.selections if one.detail == "primary"]
        waiting = self._waiting(files, targets, [*chosen_before, *whole, *named])
        judged, passed_over = self._judge(
            waiting, files, models, tuple(_name(one) for one in (*whole, *named)), bare=not context.selections
        )
        chosen = [_judged_selection(unit, verdict) for unit, verdict in judged if verdict.label]
        belonging: list[Selection] = []
        if context.request.mode == "implement":
            belonging = _belonging(targets, [*whole, *named, *chosen])
            shown = [*whole, *named, *chosen, *belonging]
            beside = [
                *_outlines_of_targets(targets, shown),
                *_related([*whole, *named, *chosen], shown, files, source),
            ]
        else:
            beside = _outlines(files, named)
        given = [*whole, *named, *belonging, *tests, *beside]
        decisions = (
            *context.decisions,
            *(self._note(entry, view.reason) for entry, view in files.unreadable),
            *(self._given(selection, files) for selection in given),
            *(self._decide(unit, verdict) for unit, verdict in judged),
            *passed_over,
        )
        return replace(context, selections=(*given, *chosen), detail_chosen=True, decisions=decisions)

    def _waiting(
        self, files: FilesInScope, targets: Sequence[Target], given: Sequence[Selection]
    ) -> list[Unit]:
        """What is not certain, best first: where a plan names files, what of them it does not say."""
        whole = {one.path for one in given if one.symbol is None}
        sure = {(one.path, one.start_line) for one in given}
        waiting = [
            unit
            for unit in files.units
            if unit.piece.kind not in {"imports", "comment"} and _may_change(unit, files)
        ]
        if targets:
            uncertain = {unit.key for target in targets for unit in _uncertain(target)}
            waiting = [unit for unit in waiting if unit.entry.tier > 0 or unit.key in uncertain]
        waiting = [unit for unit in waiting if unit.entry.path not in whole and unit.key not in sure]
        return sorted(waiting, key=lambda unit: unit.rank)

    def _judge(
        self,
        waiting: Sequence[Unit],
        files: FilesInScope,
        models: Judge,
        chosen: tuple[str, ...],
        *,
        bare: bool,
    ) -> tuple[list[tuple[Unit, Verdict]], list[Decision]]:
        """The units with their verdicts, and a note for each file of which not all was judged; `bare`: nothing is in yet."""
        bound = self._config.symbols_to_judge([unit.score for unit in waiting])
        labels = (CHANGE, READ)
        ask = (
            partial(models.sort, PRECISION_BATCH, labels=labels)
            if self._config.symbols_in_one_question
            else partial(models.choose, PIECE_JUDGMENT, labels=labels)
        )
        options: list[Option] = []
        verdicts: tuple[Verdict, ...] = ()
        for _ in range(MAX_ROUNDS):
            batch = [unit.as_option(files.terms) for unit in waiting[len(options) :][: max(bound.count, 1)]]
            if not batch:
                break
            options += batch
            verdicts += ask(batch, stage=self.name, chosen=chosen)
            if chosen or any(verdict.label == CHANGE for verdict in verdicts):
                break
        if options and bare and not chosen:
            verdicts = take_best(options, verdicts, CHANGE, threshold=self._config.threshold)
        rest = waiting[len(options) :]
        counts = Counter(unit.entry.path for unit in rest)
        entries = {unit.entry.path: unit.entry for unit in reversed(rest)}
        notes = [
            self._note(entries[path], f"not judged, {count} of its pieces: each {bound.reason}")
            for path, count in counts.items()
        ]
        return list(zip(waiting[: len(options)], verdicts, strict=True)), notes

    def _note(self, entry: Candidate, reason: str) -> Decision:
        return Decision(stage=self.name, subject=entry.subject, included=False, reason=reason)

    def _given(self, selection: Selection, files: FilesInScope) -> Decision:
        ids = {entry.path: entry.file_id for entry, _ in files.views}
        return Decision(
            stage=self.name,
            subject=selection.subject(ids.get(selection.path)),
            included=True,
            detail=selection.detail,
            reason=f"in without asking: {selection.reason}",
        )

    def _decide(self, unit: Unit, verdict: Verdict) -> Decision:
        return Decision(
            stage=self.name,
            subject=replace(unit.entry.subject, symbol=unit.piece.name, score=unit.score),
            included=bool(verdict.label),
            detail=DETAILS[verdict.label] if verdict.label else "",
            reason=verdict.reason,
            verdict=verdict,
        )


def _by_file(files: FilesInScope) -> list[tuple[int, list[Unit]]]:
    groups = groupby(files.units, key=lambda unit: (unit.entry.tier, unit.entry.path))
    return [(tier, list(units)) for (tier, _), units in groups]


def _uncertain(target: Target) -> Sequence[Unit]:
    """Where nothing of the file is named, or only a large class: its pieces."""
    if names_a_large_class(target):
        heads = tuple(unit.piece.name.removesuffix("(head)").strip() + "." for unit, _ in target.chosen)
        return [unit for unit in target.units if unit.piece.name.startswith(heads)]
    return target.uncertain


def _may_change(unit: Unit, files: FilesInScope) -> bool:
    """Whether the piece is worth a question: tests and documentation are so only where the task is about them."""
    path = unit.entry.path
    return unit.entry.tier == 0 or not (
        (is_test(unit.entry) and not files.hints.wants_tests) or is_side_file(path)
    )


def _without_asking(
    targets: Sequence[Target], source: RepositorySource, context: StageContext, files: FilesInScope
) -> tuple[list[Selection], list[Selection]]:
    """Files that are shown whole, and pieces of others that are shown, because they are named or so little is there."""
    whole, named = [], []
    available = context.available_tokens
    for target in targets:
        entry = target.units[0].entry
        if context.request.mode == "implement" and is_small(
            target.view, source, available // max(len(targets), 1)
        ):
            reason = f"{entry.reasons[0]}; shown whole"
            whole.append(_file_selection(entry, target.view, "primary", score=1.0, reason=reason))
        else:
            named += [unit.select("primary", reason) for unit, reason in target.chosen]
    if context.request.mode == "implement" and targets:
        return whole, named
    sure = {(one.path, one.start_line) for one in named}
    open_units = [unit for unit in files.units if _may_change(unit, files)]
    is_small_prompt = sum(source.count(unit.text) for unit in open_units) <= SMALL_TOKENS
    if is_small_prompt and context.request.mode != "implement":
        named += [
            unit.select("primary", "all that is in scope fits into a small prompt")
            for unit in open_units
            if unit.key not in sure
        ]
        return whole, named
    named += [
        unit.select("primary", reason)
        for unit in open_units
        if unit.key not in sure and unit.entry.tier > 0 and (reason := _named_by_task(unit, files))
    ]
    return whole, named


def _named_by_task(unit: Unit, files: FilesInScope) -> str:
    if unit.piece.kind in OTHER_KINDS or is_test(unit.entry):
        return ""
    if is_said(unit.piece, files.hints):
        return "named by the task"
    innermost = files.hints.frames[:1]
    return "in a stack trace" if holds_frame(unit.entry.path, unit.piece, innermost) else ""


def _belonging(targets: Sequence[Target], shown: Sequence[Selection]) -> list[Selection]:
    keys = {(entry.path, entry.start_line) for entry in shown if entry.detail == "primary"}
    whole = {entry.path for entry in shown if entry.symbol is None}
    found = []
    for target in targets:
        if target.view.row.path not in whole:
            found += around(target, [unit for unit in target.units if unit.key in keys])
    return found


def _judged_selection(unit: Unit, verdict: Verdict) -> Selection:
    return unit.select(DETAILS[verdict.label], verdict.reason)


def _test_selections(
    tests: Sequence[TestCode], context: StageContext, source: RepositorySource
) -> list[Selection]:
    """The source of the tests, then what they use of their files, as far as they have their share."""
    left = context.available_tokens // TEST_SHARE
    tiers = {entry.path: entry.tier for entry in context.candidates}
    wanted: list[tuple[TestCode | HelperCode, str]] = [
        (test, "a test that fails, or that the task names") for test in tests
    ]
    wanted += [(helper, f"used by {test.name}") for test in tests for helper in test.helpers]
    selections: dict[tuple[str, int], Selection] = {}
    for code, reason in wanted:
        size = source.count(code.text)
        key = (code.path, code.start_line)
        if size > left or key in selections:
            continue
        left -= size
        selections[key] = Selection(
            path=code.path,
            symbol=code.name or "(hook)",
            start_line=code.start_line,
            end_line=code.end_line,
            detail="supporting",
            section="tests",
            tier=min(tiers.get(code.path, 1), 1),
            score=1.0,
            reason=reason,
        )
    return list(selections.values())


def _related(
    changed: Sequence[Selection], shown: Sequence[Selection], files: FilesInScope, source: RepositorySource
) -> tuple[Selection, ...]:
    """What hangs together with what is to be changed, and is not among what is shown."""
    views = {entry.path: view for entry, view in files.views}

    def spans(selections: Sequence[Selection]) -> list[Span]:
        return [
            Span(view=views[one.path], start_line=one.start_line, end_line=one.end_line)
            for one in selections
            if one.detail == "primary" and one.path in views
        ]

    goal = [(test.path, test.start_line) for test in files.tests]
    return related_selections(spans(changed), source, shown=spans(shown), goal_tests=goal)


def _outlines_of_targets(targets: Sequence[Target], shown: Sequence[Selection]) -> list[Selection]:
    """What else the files to be changed define, by name: where new code can be put, and what is there already."""
    whole = {entry.path for entry in shown if entry.symbol is None}
    return [
        _file_selection(
            target.units[0].entry,
            target.view,
            "type_context",
            score=target.units[0].entry.score,
            reason="outline of a file to be changed",
            outline=excerpts.names_outline(target.view, closeness_to(target, shown), most=TARGET_NAMES),
        )
        for target in targets
        if target.view.row.path not in whole
    ]


def _outlines(files: FilesInScope, named: Sequence[Selection]) -> list[Selection]:
    """For a planner: what the files in scope define, but for tests, and for files of which all is shown."""
    scores = {unit.key: unit.score for unit in files.units}
    shown = {(one.path, one.start_line) for one in named}
    partly = {
        unit.entry.path
        for unit in files.units
        if unit.key not in shown and unit.piece.kind not in {"imports", "comment"}
    }
    return [
        _file_selection(
            entry,
            view,
            "type_context",
            score=entry.score,
            reason="in scope: its outline",
            outline=excerpts.names_outline(view, _nearness(view, scores), most=PLAN_NAMES),
        )
        for entry, view in files.views
        if entry.path in partly and (entry.tier == 0 or not is_test(entry))
    ]


def _nearness(view: FileView, scores: Mapping[PieceKey, float]) -> Callable[[Definition], float]:
    """How near the piece that a definition begins is to the task."""
    return lambda entry: scores.get((view.row.path, entry.start_line), 0.0)


def _name(selection: Selection) -> str:
    return selection.path if selection.symbol is None else f"{selection.path} :: {selection.symbol}"


def _file_selection(
    entry: Candidate, view: FileView, detail: Detail, *, score: float, reason: str, outline: str = ""
) -> Selection:
    return Selection(
        path=entry.path,
        symbol=None,
        start_line=1,
        end_line=len(view.text.lines),
        detail=detail,
        tier=entry.tier,
        score=score,
        reason=reason,
        outline=outline,
    )
