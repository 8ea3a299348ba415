"""Turns JavaScript and TypeScript nodes into expressions (grammar: `languages.scopes`)."""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from clean_room_agent.languages.scopes import agreed

WORD = r"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+"
STEPS = rf"(?:\s*+!?\s*+\??\.(?![.\d])\s*+#?{WORD})*+"
"""Members, as they may be written one after another."""
BETWEEN = re.compile(r"[\s?!]+")
"""What may stand between them, and means nothing here."""
MAX_DEPTH = 40
"""Links of one chain that are followed."""
NEUTRAL_VALUES = frozenset({"null", "undefined", "object", "array"})
NEUTRAL_TYPES = frozenset({"null", "undefined", "void", "never"})
SAME_TYPE_NAMES = (
    "Awaited DeepPartial DeepReadonly InstanceType NonNullable Omit Partial Pick Promise PromiseLike Readonly Required "
    "ThisType"
)
SAME_TYPE = frozenset(SAME_TYPE_NAMES.split())
"""Generic types whose members are those of what they are applied to, or that are awaited before they are used."""
LITERAL = re.compile(r"['\"`]([^'\"`;|\s]+)['\"`]")
PASSED_ON = {
    "parenthesized_expression": "",
    "await_expression": "",
    "non_null_expression": "",
    "assignment_expression": "right",
    "satisfies_expression": "",
}
"""Nodes that are worth what one of their children is: that of this field, or the only one."""


def of_value(node: Node, text: str, depth: int = MAX_DEPTH) -> str:
    """The expression for a value; names in it are as written."""
    kind = node.type
    if kind in {"identifier", "this", "super"}:
        return text[node.start_byte : node.end_byte]
    read = VALUES.get(kind)
    return "" if depth == 0 or read is None else read(node, text, depth - 1)


def of_type(node: Node, text: str, depth: int = MAX_DEPTH) -> str:
    """The expression for a value of the type."""
    kind = node.type
    if kind in {"type_identifier", "nested_type_identifier", "identifier", "member_expression"}:
        return f"{_dotted_name(node, text)}:"
    read = TYPES.get(kind)
    return "" if depth == 0 or read is None else read(node, text, depth - 1)


def _dotted_name(node: Node, text: str) -> str:
    return "".join(text[node.start_byte : node.end_byte].split())


def _passed_on(node: Node, text: str, depth: int) -> str:
    field = PASSED_ON[node.type]
    inner = node.child_by_field_name(field) if field else next(iter(node.named_children), None)
    return "" if inner is None else of_value(inner, text, depth)


def _member_expression(node: Node, text: str, depth: int) -> str:
    inner, name = node.child_by_field_name("object"), node.child_by_field_name("property")
    before = "" if inner is None else of_value(inner, text, depth)
    return f"{before}.{text[name.start_byte : name.end_byte]}" if before and name is not None else ""


def _call_expression(node: Node, text: str, depth: int) -> str:
    called = node.child_by_field_name("function")
    if called is None:
        return ""
    if called.type == "import" or text[called.start_byte : called.end_byte] == "require":
        target = LITERAL.search(text, called.end_byte, node.end_byte)
        return "" if target is None else f"#{target[1]};;"
    before = of_value(called, text, depth)
    return before if before == "super" else before and f"{before}()"


def _new_expression(node: Node, text: str, depth: int) -> str:
    made = node.child_by_field_name("constructor")
    before = "" if made is None else of_value(made, text, depth)
    return before and f"{before}:"


def _cast_expression(node: Node, text: str, depth: int) -> str:
    parts = node.named_children
    if len(parts) < 2:
        return "" if not parts else of_value(parts[0], text, depth)  # `as const`
    return of_type(parts[1], text, depth)


def _conditional_expression(node: Node, text: str, depth: int) -> str:
    """For `a ? b : c`, `a || b`, `a ?? b`, what both sides share; for `a && b`, the second."""
    if node.type == "ternary_expression":
        fields: tuple[str, ...] = "consequence", "alternative"
    else:
        sign = node.child_by_field_name("operator")
        if sign is None or sign.type not in {"||", "??", "&&"}:
            return ""
        fields = ("right",) if sign.type == "&&" else ("left", "right")
    sides = [side for field in fields if (side := node.child_by_field_name(field)) is not None]
    return agreed(of_value(side, text, depth) for side in sides if side.type not in NEUTRAL_VALUES)


def _wrapped_type(node: Node, text: str, depth: int) -> str:
    return of_type(node.named_children[0], text, depth) if node.named_child_count else ""


def _generic_type(node: Node, text: str, depth: int) -> str:
    name, given = node.child_by_field_name("name"), node.child_by_field_name("type_arguments")
    if name is None:
        return ""
    written = _dotted_name(name, text)
    first = None if given is None or not given.named_child_count else given.named_children[0]
    if written == "ReturnType" and first is not None:
        inner = of_type(first, text, depth)
        return inner and f"{inner}()"
    if written not in SAME_TYPE:
        return f"{written}:"
    inner = "" if first is None else of_type(first, text, depth)
    return f"{inner}:" if inner and written == "InstanceType" else inner


def _union_type(node: Node, text: str, depth: int) -> str:
    found = {
        of_type(one, text, depth)
        for one in node.named_children
        if text[one.start_byte : one.end_byte] not in NEUTRAL_TYPES
    }
    return found.pop() if len(found) == 1 else ""


def _intersection_type(node: Node, text: str, depth: int) -> str:
    return next(filter(None, (of_type(one, text, depth) for one in node.named_children)), "")


def _queried_type(node: Node, text: str, depth: int) -> str:
    return of_value(node.named_children[0], text, depth) if node.named_child_count else ""


def _this_type(node: Node, text: str, depth: int) -> str:  # noqa: ARG001 - as the other kinds of type
    return "~"


Read = Callable[[Node, str, int], str]
VALUES: Mapping[str, Read] = {
    **dict.fromkeys(PASSED_ON, _passed_on),
    "member_expression": _member_expression,
    "call_expression": _call_expression,
    "new_expression": _new_expression,
    "as_expression": _cast_expression,
    "binary_expression": _conditional_expression,
    "ternary_expression": _conditional_expression,
}
TYPES: Mapping[str, Read] = {
    "type_annotation": _wrapped_type,
    "parenthesized_type": _wrapped_type,
    "readonly_type": _wrapped_type,
    "generic_type": _generic_type,
    "union_type": _union_type,
    "intersection_type": _intersection_type,
    "type_query": _queried_type,
    "this_type": _this_type,
}
