"""The files and definitions nearest to a task, found without a model: what the first question shows."""

from dataclasses import dataclass

from clean_room_agent.artifacts.tasks import ContextRequest, TaskQuery
from clean_room_agent.query.file_kinds import is_test_file
from clean_room_agent.retrieval.context_files import NotEditable
from clean_room_agent.retrieval.search.candidates import asks_for_tests, find_candidates
from clean_room_agent.retrieval.search.failing_tests import find_tests
from clean_room_agent.retrieval.selection.relevance import Hints, score_pieces
from clean_room_agent.retrieval.selection.selectable_pieces import read_view, weighted_terms, words_of
from clean_room_agent.retrieval.stage_source import FileView, RepositorySource

MAX_FILES = 12
MAX_SYMBOLS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The best first."""

    files: tuple[str, ...]
    symbols: tuple[str, ...]
    """`name (path)`; a member by its class, as in `Class.method`."""


def find_nearest(
    request: ContextRequest, query: TaskQuery, source: RepositorySource, *, available_tokens: int
) -> Nearest:
    """The best files of the ranking, and in them the definitions that hold most of what the task asks for.

    Raises:
        RepositoryError: a file is not what was indexed.
    """
    candidates, _ = find_candidates(request, query, source)
    wanted = [entry.path for entry in candidates if asks_for_tests(query) or not is_test_file(entry.path)]
    files = tuple(wanted[:MAX_FILES])
    views: list[FileView] = []
    for path in files:
        view = read_view(path, source, available_tokens)
        if not isinstance(view, NotEditable):
            views.append(view)
    tests = find_tests(query, source)
    hints = Hints(
        planned=frozenset(),
        named=frozenset((*query.symbols, *query.identifiers)),
        frames=query.frames,
        wants_tests=asks_for_tests(query),
        tested=words_of(tests),
    )
    scores = score_pieces(views, weighted_terms(request, query, tests), hints)
    pieces = [
        (-scores[view.row.path, piece.start_line], view.row.path, piece.start_line, piece.name)
        for view in views
        for piece in view.pieces
        if piece.kind == "symbol" and scores[view.row.path, piece.start_line] > 0
    ]
    return Nearest(
        files=files, symbols=tuple(f"{name} ({path})" for _, path, _, name in sorted(pieces)[:MAX_SYMBOLS])
    )
