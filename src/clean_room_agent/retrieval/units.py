"""What there is to choose from in the files in scope: their pieces, scored, and the code that these use or that uses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clean_room_agent.artifacts.tasks import RoomRequest, TaskQuery
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.query.file_kinds import is_test_file
from clean_room_agent.retrieval import outlines
from clean_room_agent.retrieval.candidates import asks_for_tests, search_terms
from clean_room_agent.retrieval.failing_tests import TestCode, find_tests
from clean_room_agent.retrieval.pieces import Piece, file_header
from clean_room_agent.retrieval.relevance import Hints, PieceKey, score_pieces
from clean_room_agent.retrieval.room_files import NotEditable
from clean_room_agent.retrieval.source import FileView, RepositorySource
from clean_room_agent.retrieval.stage import Candidate, Option, StageContext
from clean_room_agent.retrieval.targets import FRAME_TOKENS, asked_pieces, choose_whole

TOKENS_PER_LINE = 16
"""On the high side: a definition that might not fit the room is divided where it can be."""
MIN_DIVIDED_LINES = 60
SMALL_FILE_LINES = 60
SMALL_FILE_SHARE = 10
"""A file of up to so many lines, and this part of the room, is judged as one."""
TEST_TERM_WEIGHT = 0.3
"""What a failing test's words weigh beside the task's."""
TIER_GAIN = {0: 0.5, 1: 0.25}
"""Pieces of files that a plan or the task names are judged before others of like score."""
RELATIONS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One thing to be judged: a piece of a file, or a small file whole (`piece` is None)."""

    entry: Candidate
    view: FileView
    piece: Piece | None
    score: float
    relations: tuple[str, ...] = ()
    """How it hangs together with what is likely to be changed: `uses split`, `used by split`."""

    @property
    def name(self) -> str | None:
        """Of the piece."""
        return None if self.piece is None else self.piece.name

    @property
    def key(self) -> PieceKey:
        """Names it among all units."""
        return (self.entry.path, 0 if self.piece is None else self.piece.start_line)

    @property
    def lines(self) -> int:
        """How long it is."""
        return (
            len(self.view.text.lines)
            if self.piece is None
            else self.piece.end_line - self.piece.start_line + 1
        )

    @property
    def is_test(self) -> bool:
        """Whether it stands in a test file, and is there because of what it tests."""
        return bool(self.relations) and is_test_file(self.entry.path)

    @property
    def rank(self) -> tuple[float, PieceKey]:
        """The order in which units are judged; total."""
        return (-self.score - TIER_GAIN.get(self.entry.tier, 0.0), self.key)

    def as_option(self) -> Option:
        """As a judge is shown it."""
        if self.piece is None:
            key, text = self.entry.path, outlines.file_option_text(self.view)
        else:
            key = f"{self.entry.path}:{self.piece.start_line} :: {self.piece.name}"
            text = outlines.option_text(self.entry.path, self.piece)
        told = ", ".join(self.relations[:RELATIONS_SHOWN])
        return Option(key=key, text=f"{text} | {told}" if told else text, score=self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What is laid out before anything is judged."""

    views: tuple[tuple[Candidate, FileView], ...]
    """In the order of the files in scope."""
    scores: Mapping[PieceKey, float]
    hints: Hints
    tests: tuple[TestCode, ...]
    whole: frozenset[str]
    """Target files that are shown whole."""
    max_lines: int
    """Definitions with members that are longer were divided."""


def lay_out(
    context: StageContext, source: RepositorySource, task: TaskQuery
) -> tuple[Desk, tuple[tuple[Candidate, NotEditable], ...]]:
    """The files in scope, divided and scored; and those that cannot be shown.

    Raises:
        RepositoryError: a file in scope is not what was indexed.
    """
    max_lines = max(MIN_DIVIDED_LINES, context.room_tokens // TOKENS_PER_LINE)
    views: list[tuple[Candidate, FileView]] = []
    unreadable: list[tuple[Candidate, NotEditable]] = []
    for entry in context.files:
        view = source.view(entry.path, max_lines=max_lines, room_tokens=context.room_tokens)
        if isinstance(view, NotEditable):
            unreadable.append((entry, view))
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
    targets = [view for entry, view in views if entry.tier == 0]
    sizes = {view.row.path: source.count(view.text.span(1, len(view.text.lines))) for view in targets}
    asked = {view.row.path: _asked_tokens(view, hints, source) for view in targets}
    desk = Desk(
        views=tuple(views),
        scores=score_pieces([view for _, view in views], terms, hints),
        hints=hints,
        tests=tests,
        whole=choose_whole(sizes, asked, context.room_tokens),
        max_lines=max_lines,
    )
    return desk, tuple(unreadable)


def units_of(
    entry: Candidate,
    view: FileView,
    scores: Mapping[PieceKey, float],
    *,
    room_tokens: int,
    source: RepositorySource,
) -> list[Unit]:
    """What of a file is judged: its pieces without its imports, or a small file as one; a target file always in pieces."""
    own = [scores[entry.path, piece.start_line] for piece in view.pieces]
    lines = len(view.text.lines)
    small = (
        lines <= SMALL_FILE_LINES
        and source.count(view.text.span(1, lines)) <= room_tokens // SMALL_FILE_SHARE
    )
    if small and entry.tier > 0:
        return [Unit(entry=entry, view=view, piece=None, score=max(own, default=0.0))]
    header = file_header(view.pieces)
    return [
        Unit(entry=entry, view=view, piece=piece, score=score)
        for piece, score in zip(view.pieces, own, strict=True)
        if piece is not header or not any(other.kind != "code" for other in view.pieces)
    ]


def _asked_tokens(view: FileView, hints: Hints, source: RepositorySource) -> int:
    asked = asked_pieces(view, hints)
    spans = [
        view.text.span(piece.start_line, piece.end_line)
        for piece in view.pieces
        if (view.row.path, piece.start_line) in asked
    ]
    return sum(source.count(span) + FRAME_TOKENS for span in spans)


def _terms(request: RoomRequest, task: TaskQuery, tests: Sequence[TestCode]) -> dict[str, float]:
    terms = dict(search_terms(request, task))
    for term in count_terms("\n".join(test.text for test in tests)):
        terms[term] = max(terms.get(term, 0.0), TEST_TERM_WEIGHT)
    return terms
