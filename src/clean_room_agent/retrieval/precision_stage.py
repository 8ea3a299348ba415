"""The stage `precision`: which pieces of the files in scope are shown, and in how much detail.

What a plan names is shown without asking, with the imports, the heads of classes and the code related to it. In other files,
and where a plan does not say which part of a file it means, the pieces nearest to the task are judged.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Detail, TaskQuery
from clean_room_agent.artifacts.names import item_name
from clean_room_agent.paths import is_side_file, is_test_file
from clean_room_agent.retrieval.failing_tests import HelperCode, TestCode
from clean_room_agent.retrieval.judges import take_best
from clean_room_agent.retrieval.pieces import (
    CONTAINERS,
    OTHER_KINDS,
    VALUES,
    CodePiece,
    IndexedDefinition,
    enclosing_head,
)
from clean_room_agent.retrieval.prompts import CHANGE, PIECE_JUDGMENT, PRECISION_BATCH, READ
from clean_room_agent.retrieval.related_code import ShownSpan, related_selections
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig
from clean_room_agent.retrieval.scored_pieces import (
    FilesInScope,
    PieceHints,
    PieceKey,
    ScoredPiece,
    files_in_scope,
    holds_frame,
    is_named,
    is_named_outright,
    matches_name,
    names_outline,
)
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

SMALL_FILE_LINES = 150
"""A file up to this long is shown whole, if it takes no more than one part in `SMALL_FILE_SHARE` of what is available."""
SMALL_FILE_SHARE = 4
HEADER_LINES = 25
"""The beginning of a file without imports is shown up to this length: imports may have to be added."""
VALUES_LINES = 15
"""The code right after the imports is shown up to this length: new constants belong there."""
HEAD_LINES = 25
"""The head of a class is shown with a member that is to be changed, unless it is longer."""
STAGE = "precision"
TEST_SHARE = 4
"""Failing tests may take one part in so many of what is available; further ones are only named."""
SMALL_TOKENS = 2000
"""If all that could be asked about is no larger, it is shown without asking."""
MAX_ROUNDS = 3
"""While nothing is judged to be changed, the next pieces are asked about, in so many rounds; if nothing is even to be
read, the best are taken."""
TARGET_NAMES = 40
"""Definitions named in the outline of a file to be changed, those closest to the shown code."""
PLAN_NAMES = 15
"""Definitions named in the outline of a file for a planner, those nearest to the task."""
DETAIL_OF_LABEL: dict[str, Detail] = {CHANGE: "primary", READ: "supporting"}


class PlannedFile(Struct, frozen=True, kw_only=True):
    """A file that a plan names."""

    pieces: tuple[ScoredPiece, ...]
    """Its pieces, in the order of their lines; at least one."""
    chosen: tuple[tuple[ScoredPiece, str], ...]
    """The pieces that are in without asking, with the reason."""
    uncertain: tuple[ScoredPiece, ...]
    """The pieces to be asked about, where the plan does not say which part of the file it means."""

    @property
    def view(self) -> FileView:
        """The file."""
        return self.pieces[0].view


def target_of(
    pieces: Sequence[ScoredPiece], hints: PieceHints, changed: Collection[tuple[str, str]]
) -> PlannedFile:
    """Decide which of a file's pieces are included without asking, and which must be judged. `changed` are (path, name) of those that
    were judged to be changed when the task was planned.
    """
    chosen: dict[int, tuple[ScoredPiece, str]] = {}
    view = pieces[0].view
    for scored in pieces:
        if reason := _plan_reason(scored.piece, view, hints.planned):
            chosen[scored.piece.start_line] = (scored, reason)
    for scored in pieces:
        if (scored.entry.path, scored.piece.name) in changed:
            chosen.setdefault(
                scored.piece.start_line, (scored, "judged to be changed when the task was planned")
            )
        elif not hints.planned and holds_frame(scored.entry.path, scored.piece, hints.frames):
            chosen.setdefault(scored.piece.start_line, (scored, "in a stack trace"))
    uncertain: tuple[ScoredPiece, ...] = ()
    undecided = not chosen
    if undecided or not hints.planned:  # a planner may be wrong about what it judged before
        for scored in pieces:
            if is_named_outright(scored.piece, hints):
                chosen.setdefault(scored.piece.start_line, (scored, "named by the task"))
    if undecided:
        uncertain = tuple(scored for scored in pieces if scored.piece.kind not in {"imports", "comment"})
    return PlannedFile(pieces=tuple(pieces), chosen=tuple(chosen.values()), uncertain=uncertain)


def is_small(view: FileView, source: RepositorySource, available_tokens: int) -> bool:
    """Whether the file is shown entirely."""
    lines = len(view.text.lines)
    return (
        lines <= SMALL_FILE_LINES
        and source.count(view.text.span(1, lines)) <= available_tokens // SMALL_FILE_SHARE
    )


def around(target: PlannedFile, shown: Collection[ScoredPiece]) -> list[Selection]:
    """What accompanies the shown pieces: imports, heads of their classes, and comments right above them.

    The imports are those of the file (or its short beginning) with a few lines after them.
    """
    pieces = [scored.piece for scored in target.pieces]
    heads = {
        head.start_line
        for scored in shown
        if (head := enclosing_head(pieces, scored.piece)) is not None
        and head.end_line - head.start_line < HEAD_LINES
    }
    below = {scored.piece.start_line for scored in shown}
    last_imports = max((place for place, piece in enumerate(pieces) if piece.kind == "imports"), default=None)
    known = {scored.key for scored in shown}
    selections = []
    for place, scored in enumerate(target.pieces):
        piece = scored.piece
        if scored.key in known:
            continue
        if piece.kind == "imports":
            selections.append(scored.select("primary", "the file's imports"))
        elif last_imports is None and not place and piece.kind == "code" and piece.end_line <= HEADER_LINES:
            selections.append(scored.select("primary", "the beginning of a file without imports"))
        elif (
            place - 1 == last_imports
            and piece.kind == "code"
            and piece.end_line - piece.start_line < VALUES_LINES
        ):
            selections.append(scored.select("primary", "what follows the imports: the place of new values"))
        elif piece.start_line in heads:
            selections.append(scored.select("primary", "head of a class with a member to be changed"))
        elif piece.kind == "comment" and piece.end_line + 1 in below:
            selections.append(scored.select("primary", "the comment above what is to be changed"))
    return selections


def _plan_reason(piece: CodePiece, view: FileView, planned: frozenset[str]) -> str:
    """Why the plan refers to the piece; "" if it does not."""
    if is_named(piece, planned):
        return "named by the plan"
    owner = piece.name.rpartition(" (lines ")[0]
    if piece.kind == "code" and owner and matches_name(owner, planned):
        return f"stands in {owner}, named by the plan"
    for entry in view.definitions:
        if (
            (piece.kind == "symbol" or (piece.kind == "code" and entry.kind in VALUES))
            and piece.start_line <= entry.start_line <= entry.end_line <= piece.end_line
            and matches_name(entry.name, planned)
        ):
            return f"holds {entry.name}, named by the plan"
    return ""


def names_a_large_class(target: PlannedFile) -> bool:
    """Whether the plan names only classes of which the head alone is a piece, so that it may mean some of their members."""
    kinds = {entry.name: entry.kind for entry in target.view.definitions}
    return bool(target.chosen) and all(
        scored.piece.kind == "head" and kinds.get(scored.piece.name.removesuffix(" (head)")) in CONTAINERS
        for scored, _ in target.chosen
    )


def closeness_to(target: PlannedFile, shown: Sequence[Selection]) -> Callable[[IndexedDefinition], float]:
    """How close a definition is to the shown lines of the file."""
    lines = [one.start_line for one in shown if one.path == target.view.row.path and one.detail == "primary"]
    return lambda entry: -min((abs(entry.start_line - line) for line in lines), default=entry.start_line)


class PrecisionStage:
    """Shows the named pieces and, of the others, those judged to be needed."""

    def __init__(self, config: JudgmentsConfig, *, name: str = STAGE) -> None:
        self.name = name
        self._config = config

    def run(
        self, context: StageContext, source: RepositorySource, query: TaskQuery, judge: Judge
    ) -> StageContext:
        """Select what is shown, with a decision for each piece.

        Raises:
            RepositoryError: a file in scope differs from what was indexed.
        """
        files = _without_surroundings(files_in_scope(context, source, query), context)
        targets = [
            target_of(list(pieces), files.hints, context.to_change)
            for tier, pieces in _by_file(files)
            if tier == 0
        ]
        tests = _test_selections(files.tests, context, source)
        whole, named = _without_asking(targets, source, context, files)
        chosen_before = [one for one in context.selections if one.detail == "primary"]
        waiting = self._pieces_to_judge(files, targets, [*chosen_before, *whole, *named])
        judged, passed_over = self._judge_pieces(
            waiting,
            files,
            judge,
            tuple(item_name(one.path, one.symbol) for one in (*whole, *named)),
            nothing_chosen=not context.selections,
        )
        chosen = [
            scored.select(DETAIL_OF_LABEL[verdict.label], verdict.reason)
            for scored, verdict in judged
            if verdict.label
        ]
        belonging: list[Selection] = []
        if context.request.mode == "implement":
            belonging = _surrounding_selections(targets, [*whole, *named, *chosen])
            shown = [*whole, *named, *chosen, *belonging]
            beside = [
                *_outlines_of_targets(targets, shown),
                *_related_code([*whole, *named, *chosen], shown, files, query.test_names, source),
            ]
        else:
            beside = _scope_outlines(files, named)
        given = [*whole, *named, *belonging, *tests, *beside]
        ids = {entry.path: entry.file_id for entry, _ in files.views}
        decisions = (
            *context.decisions,
            *(self._note_decision(entry, view.reason) for entry, view in files.unreadable),
            *(Decision.without_asking(self.name, one, ids.get(one.path)) for one in given),
            *(self._piece_decision(scored, verdict) for scored, verdict in judged),
            *passed_over,
        )
        return replace(context, selections=(*given, *chosen), detail_chosen=True, decisions=decisions)

    def _pieces_to_judge(
        self, files: FilesInScope, targets: Sequence[PlannedFile], given: Sequence[Selection]
    ) -> list[ScoredPiece]:
        """The pieces to be judged, best first."""
        whole = {one.path for one in given if one.symbol is None}
        sure = {(one.path, one.start_line) for one in given}
        waiting = [
            scored
            for scored in files.pieces
            if scored.piece.kind not in {"imports", "comment"} and _may_change(scored, files)
        ]
        if targets:
            uncertain = {scored.key for target in targets for scored in _uncertain_pieces(target)}
            waiting = [scored for scored in waiting if scored.entry.tier > 0 or scored.key in uncertain]
        waiting = [scored for scored in waiting if scored.entry.path not in whole and scored.key not in sure]
        return sorted(waiting, key=lambda scored: scored.rank)

    def _judge_pieces(
        self,
        waiting: Sequence[ScoredPiece],
        files: FilesInScope,
        judge: Judge,
        chosen: tuple[str, ...],
        *,
        nothing_chosen: bool,
    ) -> tuple[list[tuple[ScoredPiece, Verdict]], list[Decision]]:
        """The pieces with their verdicts, and a note for each file that was only judged in part.

        `nothing_chosen`: no earlier retrieval of the task chose anything.
        """
        count, passed_over = self._config.symbols_to_judge([scored.score for scored in waiting])
        labels = (CHANGE, READ)
        ask = (
            partial(judge.sort, PRECISION_BATCH, labels=labels)
            if self._config.in_one_question
            else partial(judge.choose, PIECE_JUDGMENT, labels=labels)
        )
        options: list[Option] = []
        verdicts: tuple[Verdict, ...] = ()
        for _ in range(MAX_ROUNDS):
            batch = [scored.as_option(files.terms) for scored in waiting[len(options) :][: max(count, 1)]]
            if not batch:
                break
            options += batch
            verdicts += ask(batch, stage=self.name, chosen=chosen)
            if chosen or any(verdict.label == CHANGE for verdict in verdicts):
                break
        if options and nothing_chosen and not chosen:
            verdicts = take_best(options, verdicts, CHANGE, threshold=self._config.threshold)
        rest = waiting[len(options) :]
        counts = Counter(scored.entry.path for scored in rest)
        entries = {scored.entry.path: scored.entry for scored in reversed(rest)}
        notes = [
            self._note_decision(entries[path], f"not judged, {count} of its pieces: each {passed_over}")
            for path, count in counts.items()
        ]
        return list(zip(waiting[: len(options)], verdicts, strict=True)), notes

    def _note_decision(self, entry: Candidate, reason: str) -> Decision:
        return Decision(stage=self.name, subject=entry.subject, reason=reason)

    def _piece_decision(self, scored: ScoredPiece, verdict: Verdict) -> Decision:
        return Decision(
            stage=self.name,
            subject=replace(scored.entry.subject, symbol=scored.piece.name, score=scored.score),
            included=bool(verdict.label),
            detail=DETAIL_OF_LABEL[verdict.label] if verdict.label else "",
            reason=verdict.reason,
            verdict=verdict,
        )


def _without_surroundings(files: FilesInScope, context: StageContext) -> FilesInScope:
    """Where a plan names files, of the others only what the task names: they are in scope for that alone."""
    if context.selections or all(scored.entry.tier > 0 for scored in files.pieces):
        return files
    pieces = (scored for scored in files.pieces if scored.entry.tier == 0 or _named_by_task(scored, files))
    return replace(files, pieces=tuple(pieces))


def _by_file(files: FilesInScope) -> list[tuple[int, list[ScoredPiece]]]:
    groups = groupby(files.pieces, key=lambda scored: (scored.entry.tier, scored.entry.path))
    return [(tier, list(pieces)) for (tier, _), pieces in groups]


def _uncertain_pieces(target: PlannedFile) -> Sequence[ScoredPiece]:
    """The pieces to ask about: if the plan names nothing of the file, or only a large class."""
    if names_a_large_class(target):
        heads = tuple(scored.piece.name.removesuffix("(head)").strip() + "." for scored, _ in target.chosen)
        return [scored for scored in target.pieces if scored.piece.name.startswith(heads)]
    return target.uncertain


def _may_change(scored: ScoredPiece, files: FilesInScope) -> bool:
    """Whether the piece may be changed: tests and documentation only if the task is about them."""
    path = scored.entry.path
    return scored.entry.tier == 0 or not (
        (is_test_file(path) and not files.hints.wants_tests) or is_side_file(path)
    )


def _without_asking(
    targets: Sequence[PlannedFile], source: RepositorySource, context: StageContext, files: FilesInScope
) -> tuple[list[Selection], list[Selection]]:
    """Files that are shown entirely, and pieces that are shown because they are named or because there are so few."""
    whole, named = [], []
    available = context.available_tokens
    for target in targets:
        entry = target.pieces[0].entry
        if context.request.mode == "implement" and is_small(
            target.view, source, available // max(len(targets), 1)
        ):
            reason = f"{entry.reasons[0]}; shown whole"
            text = target.view.text
            whole.append(Selection.of_file(text, "primary", tier=entry.tier, score=1.0, reason=reason))
        else:
            named += [scored.select("primary", reason) for scored, reason in target.chosen]
    if context.request.mode == "implement" and targets:
        meant = [scored for scored in files.pieces if scored.entry.tier > 0 and not context.selections]
        return whole, [*named, *(scored.select("supporting", "named by the task") for scored in meant)]
    sure = {(one.path, one.start_line) for one in named}
    open_pieces = [scored for scored in files.pieces if _may_change(scored, files)]
    if context.request.mode != "implement" and _fit_in_tokens(open_pieces, source, SMALL_TOKENS):
        named += [
            scored.select("primary", "all that is in scope fits into a small prompt")
            for scored in open_pieces
            if scored.key not in sure
        ]
        return whole, named
    named += [
        scored.select("primary", reason)
        for scored in open_pieces
        if scored.key not in sure and scored.entry.tier > 0 and (reason := _named_by_task(scored, files))
    ]
    return whole, named


def _fit_in_tokens(pieces: Sequence[ScoredPiece], source: RepositorySource, most: int) -> bool:
    """Whether the pieces take at most so many tokens; no more of them are counted than it takes to know."""
    counts = accumulate(source.count(scored.text) for scored in pieces)
    return all(total <= most for total in counts)


def _named_by_task(scored: ScoredPiece, files: FilesInScope) -> str:
    if scored.piece.kind in OTHER_KINDS or is_test_file(scored.entry.path):
        return ""
    if is_named_outright(scored.piece, files.hints):
        return "named by the task"
    innermost = files.hints.frames[:1]
    return "in a stack trace" if holds_frame(scored.entry.path, scored.piece, innermost) else ""


def _surrounding_selections(targets: Sequence[PlannedFile], shown: Sequence[Selection]) -> list[Selection]:
    keys = {(entry.path, entry.start_line) for entry in shown if entry.detail == "primary"}
    whole = {entry.path for entry in shown if entry.symbol is None}
    found = []
    for target in targets:
        if target.view.row.path not in whole:
            found += around(target, [scored for scored in target.pieces if scored.key in keys])
    return found


def _test_selections(
    tests: Sequence[TestCode], context: StageContext, source: RepositorySource
) -> list[Selection]:
    """The source of the tests, then what they use, up to their share of the tokens."""
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


def _related_code(
    changed: Sequence[Selection],
    shown: Sequence[Selection],
    files: FilesInScope,
    failing: Sequence[str],
    source: RepositorySource,
) -> tuple[Selection, ...]:
    """Code related to what is to be changed that is not shown yet."""
    views = {entry.path: view for entry, view in files.views}

    def spans(selections: Sequence[Selection]) -> list[ShownSpan]:
        return [
            ShownSpan(view=views[one.path], start_line=one.start_line, end_line=one.end_line)
            for one in selections
            if one.detail == "primary" and one.path in views
        ]

    goal = [(test.path, test.start_line) for test in files.tests]
    return related_selections(spans(changed), source, shown=spans(shown), failing=failing, goal_tests=goal)


def _outlines_of_targets(targets: Sequence[PlannedFile], shown: Sequence[Selection]) -> list[Selection]:
    """Outlines of the files to be changed: what they already define, and where new code can go."""
    whole = {entry.path for entry in shown if entry.symbol is None}
    return [
        _outline(
            target.pieces[0].entry,
            target.view,
            "outline of a file to be changed",
            closeness_to(target, shown),
            TARGET_NAMES,
        )
        for target in targets
        if target.view.row.path not in whole
    ]


def _scope_outlines(files: FilesInScope, named: Sequence[Selection]) -> list[Selection]:
    """For a planner: outlines of the files in scope, except tests and files that are shown entirely."""
    scores = {scored.key: scored.score for scored in files.pieces}
    shown = {(one.path, one.start_line) for one in named}
    partly = {
        scored.entry.path
        for scored in files.pieces
        if scored.key not in shown and scored.piece.kind not in {"imports", "comment"}
    }
    return [
        _outline(entry, view, "in scope: its outline", _nearness(view, scores), PLAN_NAMES)
        for entry, view in files.views
        if entry.path in partly and (entry.tier == 0 or not is_test_file(entry.path))
    ]


def _outline(
    entry: Candidate,
    view: FileView,
    reason: str,
    nearness: Callable[[IndexedDefinition], float],
    most: int,
) -> Selection:
    outline = names_outline(view, nearness, most=most)
    return Selection.of_file(
        view.text, "type_context", tier=entry.tier, score=entry.score, reason=reason, outline=outline
    )


def _nearness(view: FileView, scores: Mapping[PieceKey, float]) -> Callable[[IndexedDefinition], float]:
    """How close the piece that begins a definition is to the task."""
    return lambda entry: scores.get((view.row.path, entry.start_line), 0.0)
