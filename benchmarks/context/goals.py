"""The tests that a commit turns green: where their source stands, with what it uses of its own file."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from tree_sitter import Node

from benchmarks.context.names import Names, words_in
from benchmarks.context.snapshot import Snapshot, Symbol
from clean_room_agent import syntax

TESTS = frozenset({"it", "test", "specify"})
GROUPS = frozenset({"describe", "context", "suite"})
HOOKS = frozenset(
    {"beforeEach", "afterEach", "before", "after", "beforeAll", "afterAll", "setup", "teardown"}
)
PLACEHOLDER = re.compile(r"%[sdifjoOp#]|\$\{[^}]*\}|\$[\w.]+")
"""What a title is filled in with, by vitest, jest, or a template."""
Spans = tuple[tuple[int, int], ...]
"""First and last lines."""
SCRIPT_WORDS = re.compile(r"\s*>\s*|\s+")


class Goal(Struct, frozen=True, kw_only=True):
    """One test function with all the ids that it runs under (parameters make several)."""

    path: str
    name: str
    """As the runner's words for it end: the function's, or the title's."""
    ids: tuple[str, ...]
    spans: Spans
    """Its lines, the test itself first, then what it uses of its own file; none where it was not found."""


class _Call(Struct, frozen=True, kw_only=True):
    """A call that defines a test, a group of tests or a hook."""

    titles: tuple[str, ...]
    """From the outermost group inwards."""
    first: int
    last: int
    hooks: Spans
    """Of the groups around."""
    around: Spans
    """The groups themselves."""


def find_goals(ids: Iterable[str], snapshot: Snapshot, names: Names) -> tuple[Goal, ...]:
    """The tests' functions, in the order of their first ids."""
    found: dict[tuple[str, str, Spans], list[str]] = {}
    for identity in ids:
        path, _, rest = identity.partition("::")
        is_python = syntax.grammar_of(path) == "python"
        place = _python(path, rest, snapshot, names) if is_python else _script(path, rest, snapshot, names)
        found.setdefault(place, []).append(identity)
    return tuple(
        Goal(path=path, name=name, ids=tuple(same), spans=spans)
        for (path, name, spans), same in found.items()
    )


def _python(path: str, rest: str, snapshot: Snapshot, names: Names) -> tuple[str, str, Spans]:
    """The test's function, or the one that its class inherits, maybe in another file."""
    parts = rest.partition("[")[0].split("::")
    known = snapshot.named(path)
    symbol, owner = known.get(".".join(parts)), known.get(".".join(parts[:-1]))
    if symbol is None and owner is not None:
        symbol = names.member(owner, parts[-1])
    if symbol is None:
        return path, parts[-1], ()
    span = (symbol.first, symbol.last)
    return symbol.path, parts[-1], (span, *_helpers(symbol.path, (span,), snapshot, ()))


def _script(path: str, title: str, snapshot: Snapshot, names: Names) -> tuple[str, str, Spans]:
    """The call whose titles, joined, are the test's full name; or their end, in a file that the test's file imports."""
    wanted = SCRIPT_WORDS.sub(" ", title).strip()
    imported = sorted({one.path for one in names.imports(path).values()})
    for place, before in ((path, ""), *((other, "(?:.* )?") for other in imported)):
        calls = tuple(_calls(names.tree(place)))
        fitting = [one for one in calls if re.fullmatch(before + _pattern(" ".join(one.titles)), wanted)]
        if fitting:
            call = max(fitting, key=lambda one: len(PLACEHOLDER.sub("", "".join(one.titles))))
            elsewhere = {(one.first, one.last) for one in calls} | {
                span for one in calls for span in one.around
            }
            elsewhere -= {(call.first, call.last), *call.around}
            spans = ((call.first, call.last), *call.hooks)
            return place, call.titles[-1], (*spans, *_helpers(place, spans, snapshot, elsewhere))
    return path, wanted, ()


def _pattern(title: str) -> str:
    pieces = PLACEHOLDER.split(SCRIPT_WORDS.sub(" ", title).strip())
    return ".*".join(re.escape(piece) for piece in pieces)


def _helpers(
    path: str, spans: Sequence[tuple[int, int]], snapshot: Snapshot, elsewhere: Collection[tuple[int, int]]
) -> Spans:
    """What the lines use of their file, fixtures included, and what that uses, and so on; nothing from `elsewhere`."""
    lines = snapshot.lines(path)
    symbols = [one for one in snapshot.symbols(path) if _can_help(one) and not _is_in(one.first, elsewhere)]
    found: dict[tuple[int, int], None] = {}
    waiting = list(spans)
    while waiting:
        first, last = waiting.pop()
        words = words_in("\n".join(lines[first - 1 : last]))
        for one in symbols:
            span = (one.first, one.last)
            if one.name in words and span not in found and not _is_in(one.first, spans):
                found[span] = None
                waiting.append(span)
    return tuple(sorted(found))


def _is_in(line: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(first <= line <= last for first, last in spans)


def _can_help(symbol: Symbol) -> bool:
    """Not another test, nor a class of tests."""
    return not re.match(r"[Tt]est", symbol.name) and "." not in symbol.qualified


def _calls(
    root: Node | None, titles: tuple[str, ...] = (), hooks: Spans = (), around: Spans = ()
) -> Iterator[_Call]:
    """The calls in a file that define tests, inner ones with the titles of those around."""
    if root is None:
        return
    calls = list(_direct(root))
    own = tuple(_span(node) for node in calls if _word(node) in HOOKS)
    for node in calls:
        title = _title(node)
        if _word(node) in TESTS and title is not None:
            first, last = _span(node)
            yield _Call(titles=(*titles, title), first=first, last=last, hooks=(*hooks, *own), around=around)
        elif _word(node) in GROUPS and title is not None:
            arguments = node.child_by_field_name("arguments")
            yield from _calls(arguments, (*titles, title), (*hooks, *own), (*around, _span(node)))


def _direct(root: Node) -> Iterator[Node]:
    """Calls of a test framework below the node that are not inside another such call."""
    waiting = list(reversed(root.named_children))
    while waiting:
        node = waiting.pop()
        if node.type == "call_expression" and _word(node) in TESTS | GROUPS | HOOKS:
            yield node
        else:
            waiting.extend(reversed(node.named_children))


def _word(call: Node) -> str:
    """What is called: "it" in it(…), it.only(…), it.each(…)(…)."""
    node = call.child_by_field_name("function")
    while node is not None and node.type in {"member_expression", "call_expression"}:
        node = node.child_by_field_name("object" if node.type == "member_expression" else "function")
    return (node.text or b"").decode() if node is not None and node.type == "identifier" else ""


def _title(call: Node) -> str | None:
    """What the call's first argument says; None where there is none."""
    arguments = call.child_by_field_name("arguments")
    node = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    return None if node is None else _literal(node)


def _literal(node: Node) -> str:
    """A string's text, with `${}` for what is put into it, or in place of what is none."""
    if node.type in {"string", "template_string"}:
        return (node.text or b"").decode("utf-8", "replace")[1:-1].replace("\\'", "'").replace('\\"', '"')
    if node.type == "binary_expression":
        return "".join(map(_literal, node.named_children))
    return "${}"


def _span(node: Node) -> tuple[int, int]:
    return node.start_point.row + 1, node.end_point.row + 1
