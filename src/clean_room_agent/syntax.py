"""Syntax trees, and what is asked of them in any language."""

from collections.abc import Iterator
from functools import cache

from tree_sitter import Language, Node, Parser, Tree

from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.languages.outline import Outline
from clean_room_agent.languages.registry import BY_GRAMMAR, language_and_grammar, language_at

MAX_PARSED_BYTES = 1_000_000
"""A tree takes up to 140 times its source in memory, so larger files are only indexed as text."""
FREE_STEPS = 1_000
STEPS_PER_KILOBYTE = 40
"""The parser reports 6 to 14 times per kilobyte of usual code, 33 times for a list of one-digit numbers."""
MAX_STEPS_IN_ERROR = 200
"""It reports from within an error up to 42 times for TypeScript read as JavaScript, hundreds of times for nonsense."""
MAX_ERROR_CHILDREN = 20_000
MAX_GUARD_LINES = 15
"""A top-level `if` or `try` of at most this length that contains an import exists for that import."""
MAX_STATEMENT_DEPTH = 200
NO_NODES = Nodes()


def grammar_of(path: str) -> str | None:
    """The grammar for a path by its suffix (python, javascript, typescript, tsx, ...); None if it is not parsed."""
    found = language_and_grammar(path)
    return None if found is None else found[1]


def nodes_of(path: str) -> Nodes:
    """What the grammar for a path calls its nodes; empty if the file is not parsed."""
    found = language_at(path)
    return NO_NODES if found is None else found.nodes


@cache
def language(grammar: str) -> Language:
    """The loaded grammar."""
    return Language(BY_GRAMMAR[grammar].load(grammar))


CHUNK = 1024
"""Bytes that a tree is given at a time."""


class ParseGivenUp(ValueError):
    """A parse that would have taken too much memory or time was stopped; the message says why."""


def parse(source: bytes, grammar: str) -> Tree:
    """The syntax tree of `source`; it may hold error nodes.

    Raises:
        ParseGivenUp: the grammar cannot make sense of the source in a bounded number of steps, as with text that is not
            code. Whether it does depends only on the source. (Some kilobytes of `/*/*` as Python take seconds all the same, in the
            parser's last step, which cannot be cancelled.)
    """
    parser = Parser(language(grammar))
    steps = _Steps(most=FREE_STEPS + len(source) * STEPS_PER_KILOBYTE // 1000)
    try:
        # A parse of given bytes cannot be cancelled, one that asks for its bytes can. A node asks again when its text is read.
        tree = parser.parse(
            lambda place, _: source[place : place + CHUNK], encoding="utf8", progress_callback=steps
        )
    except ValueError as exc:
        raise ParseGivenUp(steps.reason()) from exc
    if tree.root_node.has_error and _has_wide_error(tree.root_node):
        raise ParseGivenUp(f"more than {MAX_ERROR_CHILDREN:,} tokens in a row fit no rule of {grammar}")
    return tree


class _Steps:
    """Counts the parser's reports (one every hundred operations); true once there are too many."""

    __slots__ = ("_in_error", "_most", "_taken")

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._taken = 0
        self._in_error = 0

    def __call__(self, _place: int, in_error: bool, /) -> bool:
        self._taken += 1
        if in_error:
            self._in_error += 1
        return self._taken > self._most or self._in_error > MAX_STEPS_IN_ERROR

    def reason(self) -> str:
        if self._in_error > MAX_STEPS_IN_ERROR:
            return f"no code: {MAX_STEPS_IN_ERROR} times 100 operations found no way on"
        return f"too much to parse: more than {self._most:,} times 100 operations"


def _has_wide_error(root: Node) -> bool:
    """Whether an outermost error has so many children that each later walk over them would be quadratic."""
    if root.child_count > MAX_ERROR_CHILDREN:
        return root.is_error
    return any(child.is_error and child.child_count > MAX_ERROR_CHILDREN for child in root.children)


def parses_cleanly(source: bytes, path: str) -> bool | None:
    """Whether the file has no syntax error; None if there is no grammar, or parsing was given up."""
    tree = tree_of(source, path)
    return None if tree is None else not tree.root_node.has_error


def tree_of(source: bytes, path: str) -> Tree | None:
    """The syntax tree, which may contain errors; None if there is no grammar, or parsing was given up."""
    grammar = grammar_of(path)
    if grammar is None or len(source) > MAX_PARSED_BYTES:
        return None
    try:
        return parse(source, grammar)
    except ParseGivenUp:
        return None


def walk(root: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def node_text(node: Node) -> str:
    """As it is written."""
    return (node.text or b"").decode("utf-8", "replace")


def is_bare_string(statement: Node) -> bool:
    """Whether the statement is only a string, like a docstring."""
    children = statement.named_children
    return statement.type == "expression_statement" and len(children) == 1 and children[0].type == "string"


def outline_of(source: bytes, path: str) -> Outline | None:
    """The outline of a file of tests, which may have syntax errors; None if it cannot be parsed."""
    tree, language = tree_of(source, path), language_at(path)
    return None if tree is None or language is None else language.outliner().outline(tree.root_node, source)


def sequence_starts(source: bytes, path: str) -> tuple[tuple[int, int], ...] | None:
    """Line (1-based) and depth of each statement, member or element that begins its line, in order of the lines.

    A comment directly above one belongs to it. None if the file cannot be parsed without error.
    """
    tree = tree_of(source, path)
    if tree is None or tree.root_node.has_error:
        return None
    nodes, root = nodes_of(path), tree.root_node
    lines = source.split(b"\n")
    starts: dict[int, int] = {}
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node.type in nodes.sequences:
            for row in _rows_of(node.named_children, lines):
                starts[row + 1] = min(depth, starts.get(row + 1, depth))
        waiting.extend((child, depth + 1) for child in node.named_children if not _is_text(child, nodes))
    return tuple(sorted(starts.items()))


def import_lines(source: bytes, path: str) -> tuple[tuple[int, int], ...]:
    """First and last line (1-based) of each import at the top level, in order, including those that a short `if` or
    `try` guards, and `const x = require(...)`. Empty if the file cannot be parsed.
    """
    tree, nodes = tree_of(source, path), nodes_of(path)
    return tuple(
        (node.start_point[0] + 1, node.end_point[0] + 1)
        for node in (() if tree is None else tree.root_node.named_children)
        if _is_import(node, source, nodes)
    )


def _is_import(node: Node, source: bytes, nodes: Nodes) -> bool:
    if node.type in nodes.imports:
        return True
    if node.type in nodes.guards and node.end_point[0] - node.start_point[0] < MAX_GUARD_LINES:
        inside = [statement for block in node.named_children for statement in block.named_children]
        return any(statement.type in nodes.imports for statement in inside)
    return node.type in nodes.declarations and nodes.requires in source[node.start_byte : node.end_byte]


def _is_text(node: Node, nodes: Nodes) -> bool:
    return node.type in nodes.strings or node.type == "comment"


def _rows_of(children: list[Node], lines: list[bytes]) -> list[int]:
    """The 0-based rows whose line begins with a child, unless a comment ends directly above it."""
    rows = []
    comment_end = -2
    for child in children:
        row, column = child.start_point
        begins = not lines[row][:column].strip()
        if begins and comment_end != row - 1:
            rows.append(row)
        comment_end = child.end_point[0] if begins and child.type == "comment" else -2
    return rows


def statement_spans(source: bytes, path: str) -> dict[int, tuple[int, int]]:
    """First and last line of the innermost statement at each line, all 1-based; of one with a body, only its header.
    Empty if the file cannot be parsed.
    """
    tree, nodes = tree_of(source, path), nodes_of(path)
    spans: dict[int, tuple[int, int]] = {}
    waiting = [] if tree is None else [(tree.root_node, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node.type in nodes.statements:
            for child in node.named_children:
                first, last = child.start_point[0] + 1, _head_end(child, nodes) + 1
                spans.update(dict.fromkeys(range(first, last + 1), (first, last)))
        if depth < MAX_STATEMENT_DEPTH:
            waiting.extend((child, depth + 1) for child in node.named_children if not _is_text(child, nodes))
    return spans


def _head_end(statement: Node, nodes: Nodes) -> int:
    """The last row of a statement, or the row before its body begins."""
    for child in statement.named_children:
        if child.type in nodes.bodies:
            return max(statement.start_point[0], child.start_point[0] - nodes.indented)
    return statement.end_point[0]
