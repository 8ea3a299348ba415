"""The definitions that the index has under given names, with the files of tests that use them."""

from collections import Counter
from collections.abc import Iterable

from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.paths import is_test_file, is_test_module
from clean_room_agent.retrieval.mentions import find_mentions, unique
from clean_room_agent.retrieval.stage_source import RepositorySource

MAX_SAME_NAMES = 20
"""Of one name: more are as good as none."""
DEFINES = frozenset({"function", "class", "method", "variable"})


def definitions_named(names: Iterable[str], source: RepositorySource) -> tuple[NamedDefinition, ...]:
    """The definitions outside of tests with one of these plain or dotted names, by name as given, path and line."""
    found: dict[int, NamedDefinition] = {}
    for name in names:
        symbols = [
            symbol
            for symbol in source.find_symbols(name)
            if symbol.kind in DEFINES and not is_test_file(source.path_of(symbol.file_id))
        ]
        for symbol in symbols[:MAX_SAME_NAMES]:
            if symbol.id not in found:
                found[symbol.id] = _described(symbol, source)
    return tuple(found.values())


def definitions_mentioned(words: str, source: RepositorySource) -> tuple[NamedDefinition, ...]:
    """The definitions outside of tests that the words name, as far as it is clear which are meant, in the words' order."""
    mentions = find_mentions(words)
    names = [name for name in unique((*mentions.named, *mentions.identifiers)) if source.meant_by(name)]
    return definitions_named(names, source)


def _described(symbol: SymbolRow, source: RepositorySource) -> NamedDefinition:
    doc = next(
        (
            one.doc
            for one in source.definitions_at(source.path_of(symbol.file_id))
            if one.symbol_id == symbol.id
        ),
        "",
    )
    return NamedDefinition(
        name=symbol.qualified_name,
        path=source.path_of(symbol.file_id),
        kind=symbol.kind,
        first_line=symbol.start_line,
        last_line=symbol.end_line,
        signature=symbol.signature,
        doc=doc,
        test_files=_test_files(symbol, source),
    )


def _test_files(symbol: SymbolRow, source: RepositorySource) -> tuple[str, ...]:
    """Files of tests: first those that refer to the definition, then those that import its file."""
    callers = source.kb.get_symbol_neighbors(symbol.id, direction="callers")
    uses = Counter(source.path_of(row.symbol.file_id) for row in callers)
    importing = source.kb.get_dependencies(symbol.file_id, direction="imported_by")
    paths = [*sorted(uses, key=lambda path: (-uses[path], path)), *(row.file.path for row in importing)]
    return tuple(dict.fromkeys(path for path in paths if is_test_module(path)))
