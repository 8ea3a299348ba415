"""Types and values as short texts, to be evaluated later in the file where they were written.

    expression := head step*
    head       := name                   looked up at module level
                | "=" qualified ";"      a symbol of the same file
                | "#" module ";" name ";"  an import inside a function; no name: the module itself
                | "~"                    the object that a method was called on
    step       := ".name" | "()" called | "[]" subscripted | ":" an instance of it | "@" the same, as `self`
                | "!" its bases, as `super()`
                | "%" inferred from return statements | "?" some of the possible values are unknown

The last two lower the confidence. An empty text is an unknown value. For example:

    cart: Cart                    Cart:
    cart = shop.open("x").cart    shop.open().cart
    self.items[0]  in class Cart  =Cart;@.items[]
"""

import re
from functools import lru_cache

from tree_sitter import Node

from clean_room_agent.languages.python.name_scan import STRING, WORD

KEPT = 4096
"""Texts of one sort whose meaning is remembered: most annotations and signatures occur many times."""
INNER = {
    "attribute": "object",
    "call": "function",
    "subscript": "value",
    "await": "",
    "parenthesized_expression": "",
}
"""Nodes that are followed, and the field that holds what they begin with; "": the value is that of the only child."""
CHAIN = re.compile(rf"{WORD}(?:\.{WORD})*+")
CALL = r"\((?:[^()\"']++|\([^()\"']*+\)|\"[^\"\\\n]*+\"|'[^'\\\n]*+')*+\)"
"""Brackets that hold at most one more level of them."""
SIMPLE = re.compile(rf"({WORD}(?:\.{WORD})*+)({CALL})?+")
CALLED = re.compile(CALL)
FLAT = re.compile(rf"{WORD}(?:\.{WORD}|{CALL})*+")
MAX_FLAT = 200
"""Bytes of a chain that is read as text."""
BUILTIN_TYPES = frozenset(
    {
        "Any",
        "None",
        "bool",
        "bytes",
        "complex",
        "dict",
        "float",
        "int",
        "list",
        "object",
        "set",
        "str",
        "tuple",
    }
)
WRAPPED = re.compile(
    r"(?:\w+\.)*(Optional|Union|Annotated|ClassVar|Final|Required|NotRequired|ReadOnly|Awaitable|Type|type)"
    r"\s*\[(.*)\]",
    re.DOTALL,
)
NEUTRAL = frozenset({"None", "NotImplemented", "..."})
OPENING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
PIECES = re.compile(rf"{STRING}|[^\"'()\[\]{{}},|=:]++|->|.", re.DOTALL)


@lru_cache(maxsize=KEPT)
def of_annotation(text: str, depth: int = 6) -> str:
    """The expression for a value with this annotation."""
    text = text.strip()
    if text in BUILTIN_TYPES or depth == 0:
        return ""
    if text[:1] in {'"', "'"} and len(text) > 2 and text[-1] == text[0]:
        text = text.strip("\"'").strip()
    chain = CHAIN.match(text)
    if chain is not None and chain.end() == len(text):
        return "~" if text.rpartition(".")[2] == "Self" else f"{text}:"
    options = split(text, "|") if "|" in text else []
    if len(options) > 1:
        return _one_of(options, depth)
    wrapped = WRAPPED.fullmatch(text)
    if wrapped is not None:
        parts = split(wrapped[2], ",")
        inner = of_annotation(parts[0], depth - 1) if wrapped[1] == "Annotated" else _one_of(parts, depth)
        return inner.removesuffix(":") if wrapped[1] in {"Type", "type"} else inner
    is_generic = chain is not None and text[chain.end()] == "[" and chain[0] not in BUILTIN_TYPES
    return f"{chain[0]}:" if chain is not None and is_generic else ""


def _one_of(options: list[str], depth: int) -> str:
    """The expression that all options except None share; "" if they differ."""
    found = {of_annotation(one, depth - 1) for one in options if one.strip() != "None"}
    return found.pop() if len(found) == 1 else ""


def split(text: str, mark: str) -> list[str]:
    """Split at marks outside of brackets and strings."""
    if not any(bracket in text for bracket in "([{\"'"):
        return text.split(mark)
    parts, depth, start, place = [], 0, 0, 0
    for piece in PIECES.findall(text):
        depth += OPENING.get(piece, 0)
        if piece == mark and depth == 0:
            parts.append(text[start:place])
            start = place + len(piece)
        place += len(piece)
    parts.append(text[start:])
    return parts


def expression_at(text: str, start: int, end: int, node: Node) -> str:
    """The expression between two offsets.

    `node` (or, if it is an assignment, its right side) is only visited if the text alone is not enough.
    """
    simple = SIMPLE.match(text, start)
    if simple is None:
        if text[start : start + 1] != "(":
            return ""
    elif simple.end() == end:
        return f"{simple[1]}()" if simple[2] else simple[1]
    elif text[simple.end(1)] != "(" and simple[1] != "await":
        return ""
    value: Node | None = node
    while value is not None and value.type == "assignment":
        value = value.child_by_field_name("right")
    return "" if value is None else of_node(value, text)


def of_node(node: Node, text: str, depth: int = 8) -> str:
    """The expression for a node; names in it are as written."""
    kind = node.type
    if kind == "identifier":
        return text[node.start_byte : node.end_byte]
    if depth == 0 or kind not in INNER:
        return ""
    inner = node.child_by_field_name(INNER[kind]) if INNER[kind] else node.named_child(0)
    before = "" if inner is None else of_node(inner, text, depth - 1)
    if not before or not INNER[kind]:
        return before
    if kind == "attribute":
        name = node.child_by_field_name("attribute")
        return "" if name is None else f"{before}.{text[name.start_byte : name.end_byte]}"
    if kind == "call":
        return before if before == "super" else f"{before}()"
    return f"{before}[]"


def chain_of(node: Node, text: str, depth: int) -> str:
    """Like `of_node`, for a chain that contains calls."""
    start, end = node.start_byte, node.end_byte
    if text[start] in "\"'[{":
        return ""
    if end - start <= MAX_FLAT and FLAT.fullmatch(text, start, end):
        found = CALLED.sub("()", text[start:end])
        return f"super{found[7:]}" if found.startswith("super()") else found
    return of_node(node, text, depth)
