"""Code related to what is to be changed: what it overrides and uses, lines that use it, tests that exercise it.

Uses come from the index's references. A name without a resolved reference, such as a constant, is looked up in the
file and in the files that it imports.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, filterfalse, islice, zip_longest

from msgspec import Struct, field

from clean_room_agent.artifacts.context import Section
from clean_room_agent.artifacts.names import quoted
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.languages.test_names import names_test
from clean_room_agent.paths import is_side_file, is_test_file
from clean_room_agent.retrieval.failing_tests import find_declared_tests
from clean_room_agent.retrieval.pieces import CONTAINERS, VALUES, IndexedDefinition
from clean_room_agent.retrieval.scored_pieces import quoted_line
from clean_room_agent.retrieval.stage import Selection
from clean_room_agent.retrieval.stage_source import MIN_CONFIDENCE, FileText, FileView, RepositorySource

MAX_DEFINITIONS = 30
"""Definitions in the code to be changed whose references are followed, by line."""
MAX_USES = 24
"""Used definitions that are shown, the surest first; further ones are only named."""
MAX_NAMED = 60
MAX_CALLERS = 10
MAX_GREEN = 5
MAX_TEST_FILES = 4
"""Files searched for tests that a call declares."""
IMPORT_LEVELS = 2
PYTHON = (".py", ".pyi")
SHORT_VALUE_LINES = 4
"""A constant up to this long is shown whole."""
SHORT_CLASS_LINES = 8
"""A class up to this long is shown whole, and a longer one by its head."""
OVERRIDDEN_LINES = 12
"""A method that the code overrides is shown whole up to this length: what it does is what the override changes."""
NO_USES = ("def ", "class ", "async def ", "#", "//", "*", "/*", '"""', "'''")
"""Beginnings of lines that name something without using it: definitions, comments, documentation."""
WORD = re.compile(r"[A-Za-z_$][\w$]*")
RELATED_TIER = 2


class ShownSpan(Struct, frozen=True, kw_only=True):
    """Lines of a file that are shown to be changed."""

    view: FileView
    start_line: int
    end_line: int


class _RelatedSymbol(Struct):
    """A definition that the code to be changed uses, or that uses it."""

    symbol: SymbolRow
    path: str
    confidence: float
    names: list[str] = field(default_factory=list)
    """The definitions in the code to be changed that use it, or that it uses."""
    overridden: bool = False
    """A method of a base class, which one of these definitions overrides."""


def related_selections(
    changed: Sequence[ShownSpan],
    source: RepositorySource,
    *,
    shown: Sequence[ShownSpan],
    failing: Sequence[str],
    goal_tests: Sequence[tuple[str, int]],
) -> tuple[Selection, ...]:
    """What is shown for reading: used definitions, then lines of callers, then tests that must keep passing.

    `shown` is all code that is shown already. Tests that fail cannot keep passing: `failing` are their names, `goal_tests` (path,
    first line) of those that were found, as the name of an inherited one does not say where it is.

    Raises:
        RepositoryError: a file differs from what was indexed.
    """
    own = list(_definitions_within(changed))[:MAX_DEFINITIONS]
    uses = _used_symbols(changed, own, shown, source)
    callers = _callers(own, shown, source)
    code = [found for found in callers if not is_test_file(found.path)]
    tests = [found for found in callers if is_test_file(found.path)]
    fails = partial(_is_failing_test, failing=failing, goal_tests=goal_tests)
    green = chain(_defined_tests(filterfalse(fails, tests)), _declared_tests(own, failing, source))
    return (
        *(_use_selection(found, source) for found in uses[:MAX_USES]),
        *_names_only(uses[MAX_USES:MAX_NAMED]),
        *_caller_selections(chain(code, filterfalse(fails, tests)), source),
        *(
            _line_selection(test, "green", "a test that uses it", f"{quoted(test[0])}:{test[2]}: {test[1]}\n")
            for test in islice(green, MAX_GREEN)
        ),
    )


def _is_failing_test(
    found: _RelatedSymbol, failing: Sequence[str], goal_tests: Sequence[tuple[str, int]]
) -> bool:
    return (found.path, found.symbol.start_line) in goal_tests or any(
        names_test(one, found.path, found.symbol.qualified_name) for one in failing
    )


def _defined_tests(callers: Iterable[_RelatedSymbol]) -> Iterator[tuple[str, str, int]]:
    """(path, qualified name, first line) of those that are tests of Python."""
    for found in callers:
        symbol, path = found.symbol, found.path
        is_function = symbol.kind in {"function", "method"}
        if is_function and symbol.name.startswith("test") and path.endswith(PYTHON):
            yield path, symbol.qualified_name, symbol.start_line


def _definitions_within(spans: Iterable[ShownSpan]) -> Iterator[tuple[ShownSpan, IndexedDefinition]]:
    """The definitions within the spans, and the innermost that a span lies in."""
    for span in spans:
        inside = [
            entry for entry in span.view.definitions if span.start_line <= entry.start_line <= span.end_line
        ]
        around = [
            entry
            for entry in span.view.definitions
            if entry.start_line < span.start_line <= span.end_line <= entry.end_line
        ]
        yield from ((span, entry) for entry in inside or around[-1:])


def _used_symbols(
    changed: Sequence[ShownSpan],
    own: Sequence[tuple[ShownSpan, IndexedDefinition]],
    shown: Sequence[ShownSpan],
    source: RepositorySource,
) -> list[_RelatedSymbol]:
    """What the code overrides or uses and is not shown, most certain first within each kind.

    Overridden methods come first, then functions and methods, classes, values.
    """
    found: dict[int, _RelatedSymbol] = {}
    for _, definition in own:
        for row in source.kb.get_symbol_neighbors(definition.symbol_id, direction="callees"):
            path = source.path_of(row.symbol.file_id)
            if row.confidence < MIN_CONFIDENCE or _is_shown(shown, path, row.symbol.start_line):
                continue
            if not is_test_file(path):
                new = _RelatedSymbol(symbol=row.symbol, path=path, confidence=row.confidence)
                found.setdefault(row.symbol.id, new).names.append(definition.name)
    for definition, base in _overridden_methods(own, source):
        path = source.path_of(base.file_id)
        if not _is_shown(shown, path, base.start_line) and not is_test_file(path):
            known = found.setdefault(base.id, _RelatedSymbol(symbol=base, path=path, confidence=1.0))
            known.overridden = True
            known.names.append(definition.name)
    for symbol in _named_only(changed, shown, {known.symbol.name for known in found.values()}, source):
        path = source.path_of(symbol.file_id)
        found.setdefault(symbol.id, _RelatedSymbol(symbol=symbol, path=path, confidence=MIN_CONFIDENCE))
    return sorted(found.values(), key=_use_rank)


def _overridden_methods(
    own: Sequence[tuple[ShownSpan, IndexedDefinition]], source: RepositorySource
) -> Iterator[tuple[IndexedDefinition, SymbolRow]]:
    """Each method with the one it overrides: the nearest base class's method of the same name."""
    for span, definition in own:
        owner, _, name = definition.name.rpartition(".")
        symbols = source.kb.get_symbols_for_file(span.view.row.id) if owner else ()
        classes = (symbol for symbol in symbols if symbol.qualified_name == owner)
        methods = (method for one in classes if (method := source.inherited(one, name)) is not None)
        if (method := next(methods, None)) is not None:
            yield definition, method


def _use_rank(found: _RelatedSymbol) -> tuple[bool, int, float, int, int]:
    kind = 2 if found.symbol.kind in VALUES else 1 if found.symbol.kind in CONTAINERS else 0
    return (not found.overridden, kind, -found.confidence, found.symbol.file_id, found.symbol.start_line)


def _named_only(
    changed: Sequence[ShownSpan], shown: Sequence[ShownSpan], known: set[str], source: RepositorySource
) -> Iterator[SymbolRow]:
    """Top-level definitions, in the file or in files that it imports, that the code names without a resolved reference."""
    for span in changed:
        text = span.view.text.span(span.start_line, span.end_line)
        words = {word for word in WORD.findall(text) if len(word) > 1} - known
        files = [span.view.row.id]
        files += [row.file.id for row in source.kb.get_dependencies(span.view.row.id, direction="imports")]
        imported = _imported_names(span.view)
        for file_id in files:
            path = source.path_of(file_id)
            if is_test_file(path):
                continue
            for symbol in source.kb.get_symbols_for_file(file_id):
                own = file_id == span.view.row.id
                if (
                    symbol.name in words
                    and "." not in symbol.qualified_name
                    and (own or symbol.name in imported)
                    and not _is_shown(shown, path, symbol.start_line)
                ):
                    words.discard(symbol.name)
                    yield symbol


def _imported_names(view: FileView) -> frozenset[str]:
    lines = [
        view.text.span(piece.start_line, piece.end_line) for piece in view.pieces if piece.kind == "imports"
    ]
    return frozenset(WORD.findall("\n".join(lines)))


def _callers(
    own: Sequence[tuple[ShownSpan, IndexedDefinition]], shown: Sequence[ShownSpan], source: RepositorySource
) -> list[_RelatedSymbol]:
    """Definitions outside the code that use it: one for each definition in it in turn, so that one that is used much does
    not leave out the others. Of each, code comes before examples, the most certain first, then by place.
    """
    found: dict[int, _RelatedSymbol] = {}
    groups: list[list[_RelatedSymbol]] = []
    for _, definition in own:
        group: list[_RelatedSymbol] = []
        for row in source.kb.get_symbol_neighbors(definition.symbol_id, direction="callers"):
            path = source.path_of(row.symbol.file_id)
            if row.confidence >= MIN_CONFIDENCE and not _is_shown(shown, path, row.symbol.start_line):
                new = _RelatedSymbol(symbol=row.symbol, path=path, confidence=row.confidence)
                group.append(found.setdefault(row.symbol.id, new))
                group[-1].names.append(definition.name)
        groups.append(sorted(group, key=_caller_rank))
    turns = (one for turn in zip_longest(*groups) for one in turn if one is not None)
    return list({one.symbol.id: one for one in turns}.values())


def _caller_rank(found: _RelatedSymbol) -> tuple[bool, float, int, int]:
    symbol = found.symbol
    return is_side_file(found.path), -found.confidence, symbol.file_id, symbol.start_line


def _is_shown(spans: Iterable[ShownSpan], path: str, line: int) -> bool:
    return any(path == one.view.row.path and one.start_line <= line <= one.end_line for one in spans)


def _use_selection(found: _RelatedSymbol, source: RepositorySource) -> Selection:
    symbol = found.symbol
    users = ", ".join(dict.fromkeys(found.names)) or "the code to be changed"
    return Selection(
        path=found.path,
        symbol=symbol.qualified_name,
        start_line=symbol.start_line,
        end_line=symbol.end_line,
        detail="supporting",
        section="uses",
        tier=RELATED_TIER,
        score=found.confidence,
        reason=f"overridden by {users}" if found.overridden else f"used by {users}",
        outline=_in_short(symbol, source, most=OVERRIDDEN_LINES if found.overridden else 0),
    )


def _names_only(uses: Sequence[_RelatedSymbol]) -> Iterator[Selection]:
    """A line for each file with the names that the code uses and that are not shown."""
    by_path: dict[str, list[_RelatedSymbol]] = {}
    for found in uses:
        by_path.setdefault(found.path, []).append(found)
    for path, group in by_path.items():
        names = ", ".join(dict.fromkeys(found.symbol.qualified_name for found in group))
        line = group[0].symbol.start_line
        text = f"{quoted(path)}: not shown: {names}\n"
        yield _line_selection(
            (path, None, line), "uses", "used by the code to be changed, and not shown", text
        )


def _in_short(symbol: SymbolRow, source: RepositorySource, *, most: int = 0) -> str:
    """The signature in one line and the first line of the documentation.

    A short value or class, and anything of at most `most` lines, is given in full. The first line names the class of a
    member, which is shown without what is around it.
    """
    path = source.path_of(symbol.file_id)
    owner = symbol.qualified_name.rpartition(".")[0]
    mark = "#" if path.endswith(PYTHON) else "//"
    member = f"  {mark} member of {owner}" if owner else ""
    short = {**dict.fromkeys(VALUES, SHORT_VALUE_LINES), **dict.fromkeys(CONTAINERS, SHORT_CLASS_LINES)}
    if symbol.end_line - symbol.start_line < max(short.get(symbol.kind, 0), most):
        file = source.text(path)
        text = f"{symbol.signature}\n" if file is None else file.span(symbol.start_line, symbol.end_line)
        first, end, rest = textwrap.dedent(text).partition("\n")
        return f"{first}{member}{end}{rest}"
    documentation = (
        doc.content for doc in source.kb.get_docstrings_for_file(symbol.file_id) if doc.symbol_id == symbol.id
    )
    first = next(documentation, "").strip().split("\n", 1)[0].strip()
    marks = ('"""', '"""') if path.endswith(PYTHON) else ("/** ", " */")
    doc = f"    {marks[0]}{first}{marks[1]}\n" if first else ""
    return f"{' '.join(symbol.signature.split())}{member}\n{doc}"


def _caller_selections(callers: Iterable[_RelatedSymbol], source: RepositorySource) -> list[Selection]:
    """The first line of each caller that names what it uses."""
    found: dict[tuple[str, int], Selection] = {}
    for caller in callers:
        if len(found) == MAX_CALLERS:
            break
        path, text = caller.path, source.text(caller.path)
        use = None if text is None else _first_use(text, caller)
        if use is not None and (path, use[0]) not in found:
            place = (path, caller.symbol.qualified_name, use[0])
            reason = f"uses {', '.join(dict.fromkeys(caller.names))}"
            shown = f"{quoted(path)}:{use[0]}: {use[1]}\n"
            found[path, use[0]] = _line_selection(place, "callers", reason, shown, caller.confidence)
    return list(found.values())


def _line_selection(
    place: tuple[str, str | None, int],
    section: Section,
    reason: str,
    shown: str,
    score: float = MIN_CONFIDENCE,
) -> Selection:
    """One line about a place (path, symbol, line) that it names itself."""
    path, symbol, line = place
    return Selection(
        path=path,
        symbol=symbol,
        start_line=line,
        end_line=line,
        detail="type_context",
        section=section,
        tier=RELATED_TIER,
        score=score,
        reason=reason,
        outline=shown,
    )


def _first_use(text: FileText, found: _RelatedSymbol) -> tuple[int, str] | None:
    """Number and text of the caller's first line that calls what it uses, or else names it."""
    wanted = {name.rpartition(".")[2] for name in found.names}
    if "__init__" in wanted:
        wanted |= {name.split(".")[-2] for name in found.names if name.count(".")}
    naming = [
        (number, line)
        for number in range(found.symbol.start_line, found.symbol.end_line + 1)
        if not (line := quoted_line(text.lines[number - 1])).startswith(NO_USES)
        and wanted & set(WORD.findall(line))
    ]
    calls = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(wanted)))})\s*\(")
    return next((place for place in naming if calls.search(place[1])), naming[0] if naming else None)


def _declared_tests(
    own: Sequence[tuple[ShownSpan, IndexedDefinition]], failing: Sequence[str], source: RepositorySource
) -> Iterator[tuple[str, str, int]]:
    """(path, titles, first line) of passing tests that a call declares, not a definition, and that name what is changed.

    Their files import the changed one, or what passes it on.
    """
    scripts = [(span, one) for span, one in own if not span.view.row.path.endswith(PYTHON)]
    names = frozenset(name for _, one in scripts if len(name := one.name.partition(".")[0]) > 1)
    near = {span.view.row.id for span, _ in scripts}
    found: dict[str, None] = {}
    for _ in range(IMPORT_LEVELS):
        rows = [row for one in near for row in source.kb.get_dependencies(one, direction="imported_by")]
        found.update(dict.fromkeys(sorted(row.file.path for row in rows if is_test_file(row.file.path))))
        near = {row.file.id for row in rows if not is_test_file(row.file.path)}
    return find_declared_tests(names, list(found)[:MAX_TEST_FILES], failing, source)
