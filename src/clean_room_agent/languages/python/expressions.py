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

import ast
from functools import lru_cache

from tree_sitter import Node

MAX_DEPTH = 8
"""Links of one chain that are followed."""
INNER = {
    "attribute": "object",
    "call": "function",
    "subscript": "value",
    "assignment": "right",
    "await": "",
    "parenthesized_expression": "",
}
"""Nodes that are followed, and the field that holds what they begin with; "": the value is that of the only child."""
BUILTIN_NAMES = "Any None bool bytes complex dict float int list object set str tuple"
BUILTIN_TYPES = frozenset(BUILTIN_NAMES.split())
WRAPPERS = frozenset(
    {"Optional", "Union", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "Awaitable"}
)
"""What is written around a type and says nothing of its members."""


@lru_cache(maxsize=4096)
def of_annotation(text: str) -> str:
    """The expression for a value with this annotation."""
    if "\\" in text:
        return ""  # Python would warn of escapes that it does not know
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return _of_type(tree)


def _of_type(tree: ast.expr) -> str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return of_annotation(tree.value)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return _one_of(tree.left, tree.right)
    if isinstance(tree, ast.Subscript):
        return _of_generic(tree)
    name = _dotted(tree)
    if name.rpartition(".")[2] == "Self":
        return "~"
    return f"{name}:" if name and name not in BUILTIN_TYPES else ""


def _of_generic(tree: ast.Subscript) -> str:
    name = _dotted(tree.value)
    last = name.rpartition(".")[2]
    given = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    if last in WRAPPERS:
        return _one_of(*given)
    if last == "Annotated":
        return _of_type(given[0])
    if last in {"Type", "type"}:
        return _one_of(*given).removesuffix(":")
    return f"{name}:" if name and name not in BUILTIN_TYPES else ""


def _one_of(*options: ast.expr) -> str:
    """The expression that all options except None share; "" if they differ."""
    found = {_of_type(one) for one in options if not (isinstance(one, ast.Constant) and one.value is None)}
    return found.pop() if len(found) == 1 else ""


def _dotted(tree: ast.expr) -> str:
    """A name with its attributes; "" for anything else."""
    if isinstance(tree, ast.Attribute):
        before = _dotted(tree.value)
        return before and f"{before}.{tree.attr}"
    return tree.id if isinstance(tree, ast.Name) else ""


def of_value(node: Node, text: str, depth: int = MAX_DEPTH) -> str:
    """The expression for a value; names in it are as written."""
    kind = node.type
    if kind == "identifier":
        return text[node.start_byte : node.end_byte]
    if depth == 0 or kind not in INNER:
        return ""
    field = INNER[kind]
    inner = node.child_by_field_name(field) if field else node.named_child(0)
    before = "" if inner is None else of_value(inner, text, depth - 1)
    if not before or kind in {"assignment", "await", "parenthesized_expression"}:
        return before
    if kind == "attribute":
        name = node.child_by_field_name("attribute")
        return "" if name is None else f"{before}.{text[name.start_byte : name.end_byte]}"
    if kind == "call":
        return before if before == "super" else f"{before}()"
    return f"{before}[]"
