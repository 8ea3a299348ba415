"""Where definitions of a JavaScript or TypeScript file begin, with their signatures and documentation."""

import re
from collections.abc import Sequence

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.jsdoc import BETWEEN, DocComments
from clean_room_agent.languages.ecmascript.nodes import DECLARATIONS
from clean_room_agent.languages.parsed import Definition, last_line, text_of

HOLDING = frozenset({"function", "method", "class", "interface"})
CASTS = frozenset(
    {"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"}
)
MAX_VALUE = 200
"""Characters up to which the signature of a variable or a type shows its value."""
INDEXED = re.compile(r"[\[(]")


class ScriptSource(DocComments):
    """The text with its comments and decorators, and the statements around definitions.

    Attributes:
        outer: first byte of a declaration -> the statement that consists only of it and its `export`.
    """

    def __init__(self, source: bytes, comments: Sequence[Node], decorators: Sequence[Node]) -> None:
        super().__init__(comments, source)
        self.source = source
        self.outer: dict[int, Node] = {}
        self._decorated: dict[int, int] = {}
        """Where decorated things begin behind their decorators, to where the first decorator begins."""
        self._undecorated: dict[int, int] = {}
        """Where a decorator begins, to the first byte that is none."""
        self._rows = {node.start_byte: node.start_point[0] for node in decorators}
        for node in sorted(decorators, key=lambda one: one.start_byte):
            following = BETWEEN.match(source, node.end_byte)
            behind = node.end_byte if following is None else following.end()
            self._decorated[behind] = self._decorated.get(node.start_byte, node.start_byte)
            self._undecorated[node.start_byte] = behind

    def text(self, node: Node | None) -> str:
        """The node's text; "" for None."""
        return "" if node is None else text_of(self.source, node)

    def name(self, node: Node, field: str) -> str:
        """The text of the node's field, without quotes."""
        return self.text(node.child_by_field_name(field)).strip("'\"`")

    def declared(self, declarator: Node) -> Node:
        """The whole declaration if it declares only this variable, else the declarator."""
        parent = declarator.parent
        if parent is None or parent.type not in DECLARATIONS:
            return declarator
        others = (child for child in parent.named_children if child.type == "variable_declarator")
        return parent if sum(1 for _ in others) == 1 else declarator

    def make(
        self,
        node: Node,
        name: str,
        kind: str,
        *,
        owner: str = "",
        body_of: Node | None = None,
        value: Node | None = None,
        holds: bool = False,
        needs_holder: bool = False,
        documented_at: int | None = None,
    ) -> Definition:
        """Make a definition from a declaration, a declarator or an assignment, including its `export` and decorators.

        The `body` of `body_of` ends the signature; a long one leaves out the `value` that a variable is set to. Functions and classes
        hold what is defined inside in any case. The documentation ends before the byte `documented_at`, or where the definition starts.
        """
        outer = self.outer.get(node.start_byte, node)
        begins = outer.start_byte
        start = self._decorated.get(begins, begins)
        row = outer.start_point[0] if start == begins else self._rows[start]
        body = None if body_of is None else body_of.child_by_field_name("body")
        return Definition(
            name,
            kind,
            start,
            outer.end_byte,
            row + 1,
            last_line(outer),
            self._signature(outer, body, value),
            self.doc_at(start if documented_at is None else documented_at),
            owner,
            holds or kind in HOLDING,
            needs_holder,
        )

    def _signature(self, outer: Node, body: Node | None, value: Node | None) -> str:
        start = outer.start_byte
        while start in self._undecorated:
            start = self._undecorated[start]
        if body is not None:
            return self.source[start : body.start_byte].decode("utf-8", "replace").rstrip()
        end = outer.end_byte
        if value is not None and end - start > MAX_VALUE:
            return self.source[start : value.start_byte].decode("utf-8", "replace") + "..."
        return self.source[start:end].decode("utf-8", "replace").rstrip("; \n")


def unwrapped(value: Node | None) -> Node | None:
    """Strip parentheses and casts from around a value."""
    while value is not None and value.type in CASTS and value.named_child_count:
        value = value.named_child(0)
    return value


def target_of(target: str, own_name: str) -> tuple[str, str]:
    """Split the target of an assignment into owner and name: `A.prototype.m` is A's m, `exports.f` is f."""
    if INDEXED.search(target):
        return "", ""
    written = "".join(target.split()).split(".")
    parts = [part for part in written if part not in {"prototype", "this", "module"}]
    if parts == ["exports"]:
        return "", own_name or "exports"
    if parts and parts[0] == "exports":
        parts = parts[1:]
    return ".".join(parts[:-1]), parts[-1] if parts else own_name
