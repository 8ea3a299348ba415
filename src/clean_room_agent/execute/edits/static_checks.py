"""What is certainly wrong with the new text of a file, found without running anything: it cannot be parsed, or it uses a name
that nothing defines.

Nothing valid is refused: what one parser does not know may be newer than that parser. So Python's own compiler judges
Python, unless the text has syntax that came after it. An error node of tree-sitter is only a suspicion; what convicts are
brackets and quotes that do not pair off, as in an answer that lost a line. The tests decide on the rest.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from tree_sitter import Node

from clean_room_agent.artifacts.names import listed
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.languages.registry import language_at
from clean_room_agent.syntax import (
    MAX_PARSED_BYTES,
    is_bare_string,
    node_text,
    nodes_of,
    parses_cleanly,
    tree_of,
)

PAIRS = {")": "(", "]": "[", "}": "{"}
OPENING = {"(": "(", "[": "[", "{": "{", "${": "{"}
QUOTES = frozenset({'"', "'", "`"})
MOST_NAMES = 3
"""Undefined names that a message has."""
MOST_QUOTED = 200


def fault_of(path: str, before: str, after: str) -> str:
    """Why the new text `after` of the file is refused, in words; "" if nothing is known to be wrong with it. `before` is
    its text without the edits, "" for a new file: what was wrong there may stay so.
    """
    return syntax_fault(path, before, after) or name_fault(path, before, after)


def syntax_fault(path: str, before: str, after: str) -> str:
    """The first syntax error in `after`, in words, if `before` had none; else ""."""
    language = language_at(path)
    if language is None or max(map(len, (before, after))) > MAX_PARSED_BYTES:
        return ""
    error = language.syntax_error(before, after)
    if error is None:
        return _unpaired_bracket(path, before, after)
    line, message = error
    return _in_words(after, line, message) if message else ""


def name_fault(path: str, before: str, after: str) -> str:
    """Which names `after` leaves undefined that `before` did not, in words; "" if none is known to be."""
    found = undefined_names(path, before, after)
    if not found:
        return ""
    names = [
        f"{name} (line {line})" for name, line in sorted(found.items(), key=lambda one: (one[1], one[0]))
    ]
    return f"nothing defines {listed(names, MOST_NAMES)} in this file: define or import what is used, or do without it"


def undefined_names(path: str, before: str, after: str) -> Mapping[str, int]:
    """The names that `after` leaves undefined and `before` did not, each with its first line; none where that cannot be known."""
    language = language_at(path)
    if language is None or max(map(len, (before, after))) > MAX_PARSED_BYTES:
        return {}
    return language.undefined_names(
        before, after, lambda text: tree_of(text.encode("utf-8", "replace"), path)
    )


def _unpaired_bracket(path: str, before: str, after: str) -> str:
    """The first bracket or quote without its other half, if tree-sitter suspects `after` and did not suspect `before`."""
    new = tree_of(after.encode("utf-8", "replace"), path)
    if (
        new is None
        or not new.root_node.has_error
        or not parses_cleanly(before.encode("utf-8", "replace"), path)
    ):
        return ""
    open_: list[tuple[str, int]] = []
    stack = [new.root_node]
    while stack:
        node = stack.pop()
        row = node.start_point.row
        if node.is_missing:
            continue
        if node.children:
            stack.extend(reversed(node.children))
        elif node.type in QUOTES:
            if open_ and open_[-1][0] == node.type:
                open_.pop()
            else:
                open_.append((node.type, row))
        elif node.type in OPENING:
            open_.append((OPENING[node.type], row))
        elif node.type in PAIRS:
            if not open_:
                return _in_words(after, row + 1, f"nothing opens this {node.type}")
            opened, at = open_.pop()
            if opened != PAIRS[node.type]:
                return _in_words(
                    after, at + 1, f"this {opened} is not closed before the {node.type} of line {row + 1}"
                )
    return _in_words(after, open_[-1][1] + 1, f"this {open_[-1][0]} is never closed") if open_ else ""


def _in_words(text: str, line: int, said: str) -> str:
    lines = text.split("\n")
    shown = lines[min(max(line, 1), len(lines)) - 1].strip()
    return (
        f"the file no longer parses; the first syntax error is at line {line}: {shown[:MOST_QUOTED]} ({said})"
    )


def static_fault(path: str, symbol: str, before: str, after: str) -> str:
    """The first thing wrong with `after` that was not with `before`, in words; "" if nothing is known to be.

    It parses; no name is undefined that was not; and it defines what it defined outside of the place, and the place itself.
    """
    fault = fault_of(path, before, after)
    lost = [] if fault else _lost_definitions(path, symbol, before, after)
    return fault or (f"it no longer defines {lost[0]}" if lost else "")


def _lost_definitions(path: str, symbol: str, before: str, after: str) -> list[str]:
    """Names that `before` defines, or defines more often than `after`, those inside the place left out."""
    inside = f"{symbol}."
    lost = Counter(one.symbol for one in definitions(path, before))
    lost.subtract(one.symbol for one in definitions(path, after))
    return [name for name, times in lost.items() if times > 0 and not name.startswith(inside)]


def is_same_code(path: str, before: str, after: str) -> bool:
    """Whether two texts differ in nothing but comments, docstrings and white space between tokens."""
    return before == after or _syntax_tokens(path, before) == _syntax_tokens(path, after)


@lru_cache(maxsize=2)  # many answers are compared with one text
def _syntax_tokens(path: str, text: str) -> list[str]:
    """What the language reads of the text: its tokens, and where blocks begin and end."""
    tree = tree_of(text.encode("utf-8", "surrogatepass"), path)
    if tree is None:
        return text.split()
    nodes = nodes_of(path)
    found: list[str] = []
    waiting: list[Node | str] = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            found.append(node)
        elif node.type == "comment" or is_bare_string(node):
            continue
        elif not node.children or (node.type in nodes.strings and not _is_joined(node, nodes)):
            found.append(node_text(node))
        elif nodes.indented and node.type in nodes.blocks:
            waiting.extend(("block ends", *reversed(node.children), "block begins"))
        else:
            waiting.extend(reversed(node.children))
    return found


def _is_joined(string: Node, nodes: Nodes) -> bool:
    """Whether the string is made of several, which blanks separate."""
    return any(child.type in nodes.strings for child in string.named_children)
