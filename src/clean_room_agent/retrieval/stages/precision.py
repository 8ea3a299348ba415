"""The stage `precision`: what of the files in scope is shown, and in how much detail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clean_room_agent.artifacts.package import Detail
from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.retrieval import outlines
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.neighbors import with_neighbors
from clean_room_agent.retrieval.pieces import Piece
from clean_room_agent.retrieval.prompts.precision_batch import DETAILS, PRECISION_BATCH
from clean_room_agent.retrieval.prompts.precision_primary import PRECISION_PRIMARY
from clean_room_agent.retrieval.prompts.precision_relevant import PRECISION_RELEVANT
from clean_room_agent.retrieval.prompts.precision_supporting import PRECISION_SUPPORTING
from clean_room_agent.retrieval.relevance import PieceKey
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
from clean_room_agent.retrieval.targets import asked_pieces, fill_selections, piece_selection
from clean_room_agent.retrieval.units import Desk, Unit, lay_out, units_of

STAGE = "precision"
TEST_SHARE = 8
"""A failing test is shown if it takes no more than this part of the room."""
TEST_LINES = 40
"""Other tests of up to this length are shown by their lines: their signatures say nothing."""


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
        desk, unreadable = lay_out(context, source, task)
        asked = {
            key: reason
            for entry, view in desk.views
            if entry.tier == 0 and entry.path not in desk.whole
            for key, reason in asked_pieces(view, desk.hints).items()
        }
        units, passed_over = self._units(desk, asked, context.room_tokens, source)
        judged = list(zip(units, self._judge([unit.as_option() for unit in units], models), strict=True))
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
            *(self._note(entry, view.reason) for entry, view in unreadable),
            *(_given(selection, desk) for selection in given),
            *(_decide(unit, ruling) for unit, ruling in judged),
            *passed_over,
        )
        selections = (*given, *chosen, *_fill(desk, asked, judged))
        return replace(context, selections=selections, detail_chosen=True, decisions=decisions)

    def _judge(self, options: Sequence[Option], models: Judge) -> Sequence[Ruling]:
        if self._config.symbols_in_one_question:
            return models.sort(PRECISION_BATCH, options, labels=DETAILS, stage=self.name)
        return judge_in_passes(options, models, stage=self.name)

    def _units(
        self, desk: Desk, asked: Mapping[PieceKey, str], room: int, source: RepositorySource
    ) -> tuple[list[Unit], list[Decision]]:
        """What is judged, best first, and a note for each file of which something is not."""
        units: list[Unit] = []
        for entry, view in desk.views:
            if entry.path not in desk.whole:
                units.extend(
                    unit
                    for unit in units_of(entry, view, desk.scores, room_tokens=room, source=source)
                    if unit.key not in asked
                )
        units = with_neighbors(units, desk, source, room_tokens=room)
        units.sort(key=lambda unit: unit.rank)
        bound = self._config.symbols_to_judge([unit.score for unit in units])
        rest = units[bound.count :]
        counts = Counter(unit.entry.path for unit in rest)
        entries = {unit.entry.path: unit.entry for unit in reversed(rest)}
        notes = [
            self._note(entries[path], f"not judged, {count} of its pieces: each {bound.reason}")
            for path, count in counts.items()
        ]
        return units[: bound.count], notes

    def _note(self, entry: Candidate, reason: str) -> Decision:
        return Decision(
            stage=self.name,
            path=entry.path,
            file_id=entry.file_id,
            tier=entry.tier,
            score=entry.score,
            included=False,
            reason=reason,
        )


def judge_in_passes(options: Sequence[Option], models: Judge, *, stage: str) -> list[Ruling]:
    """One ruling an option by three questions over a shrinking set: is it needed at all; if so, whole; if not whole,
    with its description. What has no readable verdict is refused what was asked: all, to be whole, a description.
    """
    needed = dict(
        zip(options, models.each(PRECISION_RELEVANT, options, label="relevant", stage=stage), strict=True)
    )
    left = [option for option, ruling in needed.items() if ruling.label]
    whole = dict(zip(left, models.each(PRECISION_PRIMARY, left, label="primary", stage=stage), strict=True))
    left = [option for option, ruling in whole.items() if not ruling.label]
    told = dict(
        zip(left, models.each(PRECISION_SUPPORTING, left, label="supporting", stage=stage), strict=True)
    )
    return [_last_word(needed[option], whole.get(option), told.get(option)) for option in options]


def _last_word(needed: Ruling, whole: Ruling | None, told: Ruling | None) -> Ruling:
    """The last question's ruling, with all answers as its reason; what is needed is at least `type_context`."""
    steps = [("needed", needed), ("whole", whole), ("description", told)]
    answered = [(word, ruling) for word, ruling in steps if ruling is not None]
    last = answered[-1][1]
    reason = "; ".join(f"{word}: {ruling.reason}" for word, ruling in answered)
    return replace(last, reason=reason, label=last.label or ("type_context" if told is not None else ""))


def _whole_targets(desk: Desk) -> list[Selection]:
    return [
        _file_selection(entry, view, "primary", score=1.0, reason=f"{entry.reasons[0]}; shown whole")
        for entry, view in desk.views
        if entry.path in desk.whole
    ]


def _asked_selections(desk: Desk, asked: Mapping[PieceKey, str]) -> list[Selection]:
    return [
        piece_selection(
            piece, entry, score=desk.scores[key], reason=asked[key], outline=outlines.summary(piece)
        )
        for entry, view in desk.views
        for piece in view.pieces
        if (key := (entry.path, piece.start_line)) in asked
    ]


def _judged_selection(unit: Unit, ruling: Ruling) -> list[Selection]:
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
    outline = _short(unit.piece, detail)
    if detail == "supporting" and unit.is_test and unit.lines <= TEST_LINES:
        outline = ""
    whole = piece_selection(unit.piece, unit.entry, score=unit.score, reason=ruling.reason, outline=outline)
    return [replace(whole, detail=detail)]


def _test_selections(desk: Desk, context: StageContext, source: RepositorySource) -> list[Selection]:
    bound = context.room_tokens // TEST_SHARE
    tiers = {entry.path: entry.tier for entry in context.candidates}
    return [
        Selection(
            path=test.path,
            symbol=test.name,
            start_line=test.start_line,
            end_line=test.end_line,
            detail="supporting",
            tier=min(tiers.get(test.path, 1), 1),
            score=1.0,
            reason="a test that fails, or that the task names",
        )
        for test in desk.tests
        if test.path not in desk.whole and source.count(test.text) <= bound
    ]


def _outline_selections(desk: Desk, shown: set[str]) -> list[Selection]:
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
    desk: Desk, asked: Mapping[PieceKey, str], judged: Sequence[tuple[Unit, Ruling]]
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


def _given(selection: Selection, desk: Desk) -> Decision:
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


def _decide(unit: Unit, ruling: Ruling) -> Decision:
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
