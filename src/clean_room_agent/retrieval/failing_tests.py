"""Where the named tests stand in the code."""

from dataclasses import dataclass

from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.retrieval.pieces import Definition
from clean_room_agent.retrieval.room_files import FileText
from clean_room_agent.retrieval.source import RepositorySource

MAX_TESTS = 5
"""Tests looked up, in the order in which they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCode:
    """A test's definition and its lines."""

    path: str
    definition: Definition
    text: str

    __test__ = False


def split_test_name(name: str) -> tuple[str, str]:
    """File and qualified name of a pytest id, without parameters; ("", name) where it is a bare name."""
    path, marked, rest = name.partition("::")
    if not marked:
        return "", name.partition("[")[0]
    return path, ".".join(part.partition("[")[0] for part in rest.split("::"))


def find_tests(query: TaskQuery, source: RepositorySource) -> tuple[TestCode, ...]:
    """The named tests that the index knows, without repeats, in the order in which they are named.

    Raises:
        RepositoryError: a test's file is not what was indexed.
    """
    found: dict[tuple[str, str, int], TestCode] = {}
    for name in query.test_names:
        if len(found) >= MAX_TESTS:
            break
        where, qualified = split_test_name(name)
        paths = source.resolve_path(where, most=1) if where else ()
        for symbol in source.find_symbols(qualified):
            path = source.path_of(symbol.file_id)
            if (where and path not in paths) or (not where and len(source.find_symbols(qualified)) > 1):
                continue
            row = source.file(path)
            text = source.files.read(path, row.content_hash) if row is not None else None
            definition = Definition(
                symbol_id=symbol.id,
                name=symbol.qualified_name,
                kind=symbol.kind,
                start_line=symbol.start_line,
                end_line=symbol.end_line,
                signature=symbol.signature,
            )
            if isinstance(text, FileText):
                code = TestCode(
                    path=path, definition=definition, text=text.span(symbol.start_line, symbol.end_line)
                )
                found.setdefault((path, symbol.qualified_name, symbol.start_line), code)
    return tuple(found.values())
