"""The pieces of the files in scope, with their scores: what the precision stage chooses from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clean_room_agent.artifacts.package import Detail
from clean_room_agent.artifacts.tasks import ContextRequest, TaskQuery
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.query.file_kinds import is_test_file
from clean_room_agent.retrieval.code.pieces import OTHER_KINDS, Piece
from clean_room_agent.retrieval.context_files import NotEditable
from clean_room_agent.retrieval.search.candidates import asks_for_tests, search_terms
from clean_room_agent.retrieval.search.failing_tests import TestCode, find_tests
from clean_room_agent.retrieval.search.mentions import WORD
from clean_room_agent.retrieval.selection import excerpts
from clean_room_agent.retrieval.selection.excerpts import nearest_lines, numbered
from clean_room_agent.retrieval.selection.relevance import Hints, PieceKey, score_pieces
from clean_room_agent.retrieval.stage import Candidate, Option, Selection, StageContext
from clean_room_agent.retrieval.stage_source import FileView, RepositorySource

TOKENS_PER_LINE = 16
"""On the high side, so that a definition that might not fit is divided."""
MIN_DIVIDED_LINES = 60
TEST_TERM_WEIGHT = 0.3
"""Of a word in a failing test; those of the task weigh 1 or more."""
TIER_GAIN = {0: 0.5, 1: 0.25}
"""Added for files that a plan or the task names, when pieces are ordered to be judged."""
BODY_LINES = 30
"""A piece up to this long is shown to the judge whole; a longer one by its outline and its nearest lines."""
BODY_CHARS = 3000
"""The same in characters, as a minified file has lines larger than a window."""
LINES_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPiece:
    """A piece of a file in scope, with its score."""

    entry: Candidate
    view: FileView
    piece: Piece
    score: float

    @property
    def key(self) -> PieceKey:
        """Identifies it among all pieces."""
        return (self.entry.path, self.piece.start_line)

    @property
    def rank(self) -> tuple[float, PieceKey]:
        """The order in which pieces are judged; total."""
        return (-self.score - TIER_GAIN.get(self.entry.tier, 0.0), self.key)

    @property
    def text(self) -> str:
        """Its lines."""
        return self.view.text.span(self.piece.start_line, self.piece.end_line)

    def as_option(self, terms: Mapping[str, float]) -> Option:
        """The piece as a judge is shown it."""
        piece, path = self.piece, self.entry.path
        text = self.text
        if piece.end_line - piece.start_line >= BODY_LINES or len(text) > BODY_CHARS:
            lines = self.view.text.lines[piece.start_line - 1 : piece.end_line]
            near = nearest_lines(lines, terms, most=LINES_SHOWN, first=piece.start_line)
            text = excerpts.short_summary(piece) + numbered(near)
        return Option(
            key=f"{path}:{piece.start_line} :: {piece.name}",
            name=f"{path} :: {piece.name} (lines {piece.start_line}-{piece.end_line})",
            text=text,
            score=self.score,
        )

    def select(self, detail: Detail, reason: str) -> Selection:
        """The piece, shown in this detail."""
        return Selection(
            path=self.entry.path,
            symbol=self.piece.name,
            start_line=self.piece.start_line,
            end_line=self.piece.end_line,
            detail=detail,
            tier=self.entry.tier,
            score=self.score,
            reason=reason,
            outline=excerpts.summary(self.piece) if self.piece.kind not in OTHER_KINDS else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesInScope:
    """The files in scope, divided into scored pieces."""

    views: tuple[tuple[Candidate, FileView], ...]
    """In the order of the files in scope."""
    pieces: tuple[ScoredPiece, ...]
    """All pieces, in the order of the files and their lines."""
    hints: Hints
    terms: Mapping[str, float]
    """What the task and its failing tests ask for, weighted."""
    tests: tuple[TestCode, ...]
    """The tests that fail, or that the task names."""
    unreadable: tuple[tuple[Candidate, NotEditable], ...]
    """Files that cannot be shown."""


def files_in_scope(context: StageContext, source: RepositorySource, query: TaskQuery) -> FilesInScope:
    """The context's files with all their pieces.

    Raises:
        RepositoryError: a file in scope is not what was indexed.
    """
    views: list[tuple[Candidate, FileView]] = []
    unreadable: list[tuple[Candidate, NotEditable]] = []
    for entry in context.files:
        view = read_view(entry.path, source, context.available_tokens)
        if isinstance(view, NotEditable):
            unreadable.append((entry, view))
        else:
            views.append((entry, view))
    tests = find_tests(query, source)
    hints = Hints(
        planned=frozenset(context.request.symbols),
        named=frozenset((*query.symbols, *query.identifiers)),
        frames=query.frames,
        wants_tests=asks_for_tests(query),
        named_outright=frozenset(query.named),
        test_words=words_of(tests),
    )
    terms = weighted_terms(context.request, query, tests)
    scores = score_pieces([view for _, view in views], terms, hints)
    pieces = tuple(
        ScoredPiece(entry=entry, view=view, piece=piece, score=scores[entry.path, piece.start_line])
        for entry, view in views
        for piece in view.pieces
    )
    return FilesInScope(
        views=tuple(views),
        pieces=pieces,
        hints=hints,
        terms=terms,
        tests=tests,
        unreadable=tuple(unreadable),
    )


def read_view(path: str, source: RepositorySource, available_tokens: int) -> FileView | NotEditable:
    """The file, divided so that no piece fills what is available.

    Raises:
        RepositoryError: the file is not what was indexed.
    """
    max_lines = max(MIN_DIVIDED_LINES, available_tokens // TOKENS_PER_LINE)
    return source.view(path, max_lines=max_lines, available_tokens=available_tokens)


def words_of(tests: Sequence[TestCode]) -> frozenset[str]:
    """The words in the code of the tests."""
    return frozenset(word for test in tests for word in WORD.findall(test.text))


def weighted_terms(request: ContextRequest, query: TaskQuery, tests: Sequence[TestCode]) -> dict[str, float]:
    """The task's search terms, and those of the code of its tests."""
    terms = dict(search_terms(request, query))
    for term in count_terms("\n".join(test.text for test in tests)):
        terms[term] = max(terms.get(term, 0.0), TEST_TERM_WEIGHT)
    return terms


def is_test(entry: Candidate) -> bool:
    """Whether the file holds tests."""
    return is_test_file(entry.path)
