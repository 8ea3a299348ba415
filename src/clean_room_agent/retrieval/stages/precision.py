"""The stage `precision`: what of the files in scope is shown, and in how much detail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clean_room_agent.artifacts.package import Detail
from clean_room_agent.artifacts.tasks import RoomRequest, TaskQuery
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.retrieval import outlines
from clean_room_agent.retrieval.candidates import search_terms
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.failing_tests import TestCode, find_tests
from clean_room_agent.retrieval.pieces import Piece, file_header
from clean_room_agent.retrieval.prompts.precision_batch import DETAILS, PRECISION_BATCH
from clean_room_agent.retrieval.relevance import Hints, PieceKey, score_pieces
from clean_room_agent.retrieval.room_files import NotEditable
from clean_room_agent.retrieval.side_files import asks_for_tests
from clean_room_agent.retrieval.source import FileView, RepositorySource
from clean_room_agent.retrieval.stage import (
    Candidate,
    Decision,
    Judge,
    Option,
    Ruling,
    Selection,
    StageContext,
)
from clean_room_agent.retrieval.targets import asked_pieces, choose_whole, fill_selections, piece_selection

STAGE = "precision"
TOKENS_PER_LINE = 16
"""On the high side: a definition that might not fit the room is divided where it can be."""
MIN_DIVIDED_LINES = 60
SMALL_FILE_LINES = 60
SMALL_FILE_SHARE = 10
"""A file of up to so many lines, and this part of the room, is judged as one."""
TEST_SHARE = 8
"""A failing test is shown if it takes no more than this part of the room."""
TEST_TERM_WEIGHT = 0.3
"""What a failing test's words weigh beside the task's."""
TIER_GAIN = {0: 0.5, 1: 0.25}
"""Pieces of files that a plan or the task names are judged before others of like score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """One thing to be judged: a piece of a file, or a small file whole (`piece` is None)."""

    entry: Candidate
    view: FileView
    piece: Piece | None
    score: float

    @property
    def name(self) -> str | None:
        return None if self.piece is None else self.piece.name

    @property
    def key(self) -> PieceKey:
        return (self.entry.path, 0 if self.piece is None else self.piece.start_line)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What is laid out before anything is judged."""

    views: tuple[tuple[Candidate, FileView], ...]
    """In the order of the files in scope."""
    scores: Mapping[PieceKey, float]
    hints: Hints
    tests: tuple[TestCode, ...]
    whole: frozenset[str]
    """Target files that are shown whole."""


class PrecisionStage:
    """Target files are shown whole where they fit; of everything else, what is judged to be needed."""

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
        desk, unreadable = _lay_out(context, source, task)
        asked = {
            key: reason
            for entry, view in desk.views
            if entry.tier == 0 and entry.path not in desk.whole
            for key, reason in asked_pieces(view, desk.hints).items()
        }
        units, passed_over = self._units(desk, asked, context.room_tokens, source)
        options = [Option(key=_option_key(unit), text=_option_text(unit), score=unit.score) for unit in units]
        rulings = models.sort(PRECISION_BATCH, options, labels=DETAILS, stage=self.name)
        judged = list(zip(units, rulings, strict=True))
        given = [
            *_whole_targets(desk),
            *_asked_selections(desk, asked),
            *_test_selections(desk, context, source),
        ]
        chosen = [selection for unit, ruling in judged for selection in _judged_selection(unit, ruling)]
        if context.request.mode != "implement":
            given.extend(_outline_selections(desk, {selection.path for selection in (*given, *chosen)}))
        decisions = (
            *context.decisions,
            *unreadable,
            *(_given(selection, desk) for selection in given),
            *(_decide(unit, ruling) for unit, ruling in judged),
            *passed_over,
        )
        selections = (*given, *chosen, *_fill(desk, asked, judged))
        return replace(context, selections=selections, detail_chosen=True, decisions=decisions)

    def _units(
        self, desk: _Desk, asked: Mapping[PieceKey, str], room: int, source: RepositorySource
    ) -> tuple[list[_Unit], list[Decision]]:
        """What is judged, best first, and a note for each file of which something is not."""
        units: list[_Unit] = []
        for entry, view in desk.views:
            if entry.path not in desk.whole:
                units.extend(
                    unit for unit in _units_of(entry, view, desk, room, source) if unit.key not in asked
                )
        units.sort(key=lambda unit: (-unit.score - TIER_GAIN.get(unit.entry.tier, 0.0), unit.key))
        rest = Counter(unit.entry.path for unit in units[self._config.max_symbols :])
        notes = [
            Decision(
                stage=self.name,
                path=entry.path,
                file_id=entry.file_id,
                tier=entry.tier,
                score=entry.score,
                included=False,
                reason=f"{rest[entry.path]} of its pieces rank below the first {self._config.max_symbols}: not judged",
            )
            for entry, _ in desk.views
            if rest[entry.path]
        ]
        return units[: self._config.max_symbols], notes


def _lay_out(
    context: StageContext, source: RepositorySource, task: TaskQuery
) -> tuple[_Desk, list[Decision]]:
    max_lines = max(MIN_DIVIDED_LINES, context.room_tokens // TOKENS_PER_LINE)
    views: list[tuple[Candidate, FileView]] = []
    notes: list[Decision] = []
    for entry in context.files:
        view = source.view(entry.path, max_lines=max_lines)
        if isinstance(view, NotEditable):
            notes.append(
                Decision(
                    stage=STAGE,
                    path=entry.path,
                    file_id=entry.file_id,
                    tier=entry.tier,
                    score=entry.score,
                    included=False,
                    reason=view.reason,
                )
            )
        else:
            views.append((entry, view))
    tests = find_tests(task, source)
    hints = Hints(
        planned=frozenset(context.request.symbols),
        named=frozenset((*task.symbols, *task.identifiers)),
        frames=task.frames,
        wants_tests=asks_for_tests(task),
    )
    terms = _terms(context.request, task, tests)
    sizes = {
        entry.path: source.count(view.text.span(1, len(view.text.lines)))
        for entry, view in views
        if entry.tier == 0
    }
    desk = _Desk(
        views=tuple(views),
        scores=score_pieces([view for _, view in views], terms, hints),
        hints=hints,
        tests=tests,
        whole=choose_whole(sizes, context.room_tokens),
    )
    return desk, notes


def _terms(request: RoomRequest, task: TaskQuery, tests: Sequence[TestCode]) -> dict[str, float]:
    terms = search_terms(request, task)
    for term in count_terms("\n".join(test.text for test in tests)):
        terms[term] = max(terms.get(term, 0.0), TEST_TERM_WEIGHT)
    return terms


def _units_of(
    entry: Candidate, view: FileView, desk: _Desk, room: int, source: RepositorySource
) -> list[_Unit]:
    scores = [desk.scores[entry.path, piece.start_line] for piece in view.pieces]
    lines = len(view.text.lines)
    small = lines <= SMALL_FILE_LINES and source.count(view.text.span(1, lines)) <= room // SMALL_FILE_SHARE
    if small and entry.tier > 0:
        return [_Unit(entry=entry, view=view, piece=None, score=max(scores, default=0.0))]
    header = file_header(view.pieces)
    return [
        _Unit(entry=entry, view=view, piece=piece, score=score)
        for piece, score in zip(view.pieces, scores, strict=True)
        if piece is not header or not any(other.kind != "code" for other in view.pieces)
    ]


def _whole_targets(desk: _Desk) -> list[Selection]:
    return [
        _file_selection(entry, view, "primary", score=1.0, reason=f"{entry.reasons[0]}; shown whole")
        for entry, view in desk.views
        if entry.path in desk.whole
    ]


def _asked_selections(desk: _Desk, asked: Mapping[PieceKey, str]) -> list[Selection]:
    return [
        piece_selection(
            piece, entry, score=desk.scores[key], reason=asked[key], outline=outlines.summary(piece)
        )
        for entry, view in desk.views
        for piece in view.pieces
        if (key := (entry.path, piece.start_line)) in asked
    ]


def _judged_selection(unit: _Unit, ruling: Ruling) -> list[Selection]:
    """What a ruling shows; pieces of target files that are not primary are left to the fill."""
    detail = _detail(ruling.label)
    if detail is None:
        return []
    if unit.piece is None:
        outline = outlines.file_outline(unit.view, {})
        return [
            _file_selection(
                unit.entry, unit.view, detail, score=unit.score, reason=ruling.reason, outline=outline
            )
        ]
    if detail != "primary" and unit.entry.tier == 0:
        return []
    whole = piece_selection(
        unit.piece, unit.entry, score=unit.score, reason=ruling.reason, outline=_short(unit.piece, detail)
    )
    return [replace(whole, detail=detail)]


def _test_selections(desk: _Desk, context: StageContext, source: RepositorySource) -> list[Selection]:
    bound = context.room_tokens // TEST_SHARE
    tiers = {entry.path: entry.tier for entry in context.candidates}
    return [
        Selection(
            path=test.path,
            symbol=test.definition.name,
            start_line=test.definition.start_line,
            end_line=test.definition.end_line,
            detail="supporting",
            tier=min(tiers.get(test.path, 1), 1),
            score=1.0,
            reason="a test that fails, or that the task names",
        )
        for test in desk.tests
        if test.path not in desk.whole and source.count(test.text) <= bound
    ]


def _outline_selections(desk: _Desk, shown: set[str]) -> list[Selection]:
    """For a planner: which files there are, where nothing of them is shown."""
    return [
        _file_selection(
            entry,
            view,
            "type_context",
            score=entry.score,
            reason="in scope; nothing of it was chosen: its outline",
            outline=outlines.file_outline(view, desk.scores),
        )
        for entry, view in desk.views
        if entry.path not in shown
    ]


def _fill(
    desk: _Desk, asked: Mapping[PieceKey, str], judged: Sequence[tuple[_Unit, Ruling]]
) -> list[Selection]:
    primary = {*asked, *(unit.key for unit, ruling in judged if ruling.label == "primary")}
    short = {
        unit.key: _short(unit.piece, detail)
        for unit, ruling in judged
        if unit.piece is not None and (detail := _detail(ruling.label)) not in {None, "primary"}
    }
    return [
        selection
        for entry, view in desk.views
        if entry.tier == 0 and entry.path not in desk.whole
        for selection in fill_selections(view, entry, frozenset(primary), desk.scores, short)
    ]


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


def _short(piece: Piece, detail: Detail | None) -> str:
    """What a piece shows that is not primary; code between definitions has nothing shorter than itself."""
    if piece.kind == "code":
        return ""
    return outlines.signature(piece) if detail == "type_context" else outlines.summary(piece)


def _detail(label: str) -> Detail | None:
    return next((detail for detail in DETAILS if detail == label), None)


def _option_key(unit: _Unit) -> str:
    return (
        unit.entry.path
        if unit.piece is None
        else f"{unit.entry.path}:{unit.piece.start_line} :: {unit.piece.name}"
    )


def _option_text(unit: _Unit) -> str:
    if unit.piece is None:
        return outlines.file_option_text(unit.view)
    return outlines.option_text(unit.entry.path, unit.piece)


def _given(selection: Selection, desk: _Desk) -> Decision:
    ids = {entry.path: entry.file_id for entry, _ in desk.views}
    return Decision(
        stage=STAGE,
        path=selection.path,
        symbol=selection.symbol,
        file_id=ids.get(selection.path),
        tier=selection.tier,
        score=selection.score,
        included=True,
        detail=selection.detail,
        reason=f"in without asking: {selection.reason}",
    )


def _decide(unit: _Unit, ruling: Ruling) -> Decision:
    return Decision(
        stage=STAGE,
        path=unit.entry.path,
        symbol=unit.name,
        file_id=unit.entry.file_id,
        tier=unit.entry.tier,
        score=unit.score,
        included=_detail(ruling.label) is not None,
        detail=_detail(ruling.label) or "",
        reason=ruling.reason,
        call_id=ruling.call_id,
        confidence=ruling.confidence,
    )
