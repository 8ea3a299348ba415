"""What is wrong with a file in which a definition was changed, as far as can be told without running it."""

from collections import Counter

from tree_sitter import Node

from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.static_checks import fault_of
from clean_room_agent.execute.forms.place import Place, node_text
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.syntax import nodes_of, tree_of


def static_fault(place: Place, before: str, after: str) -> str:
    """The first thing wrong with `after` that was not with `before`, in words; "" if nothing is known to be.

    It parses; no name is undefined that was not; and it defines what it defined outside of the place, and the place itself.
    """
    fault = fault_of(place.path, before, after)
    lost = [] if fault else lost_definitions(place, before, after)
    return fault or (f"it no longer defines {lost[0]}" if lost else "")


def lost_definitions(place: Place, before: str, after: str) -> list[str]:
    """Names that `before` defines, or defines more often than `after`, those inside the place left out."""
    inside = f"{place.name}."
    lost = Counter(one.symbol for one in definitions(place.path, before))
    lost.subtract(one.symbol for one in definitions(place.path, after))
    return [name for name, times in lost.items() if times > 0 and not name.startswith(inside)]


def is_same_code(path: str, before: str, after: str) -> bool:
    """Whether two texts differ in nothing but comments, docstrings and white space between tokens."""
    return before == after or _tokens(path, before) == _tokens(path, after)


def _tokens(path: str, text: str) -> list[str]:
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
        elif node.type == "comment" or _is_bare_string(node):
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


def _is_bare_string(node: Node) -> bool:
    inside = node.named_children
    return node.type == "expression_statement" and len(inside) == 1 and inside[0].type == "string"
