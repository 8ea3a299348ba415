"""Expressions of a programming language as they stand in prose: where they end, what they name, whether they are values.

For example, in "`Money(3).split(2)[0]` gives Decimal('1')" the first is an expression that names `Money`, the second is a
value: it names nothing of the repository.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tree_sitter import Node

from clean_room_agent.languages.parsed import named_nodes
from clean_room_agent.syntax import ParseGivenUp, node_text, parse

MAX_CHARS = 600
"""Of an expression in prose."""
OPENING, CLOSING = "([{", ")]}"
PAIRS = dict(zip(CLOSING, OPENING, strict=True))
PYTHON_VALUES: Mapping[str, str] = {
    "Decimal": "from decimal import Decimal",
    "Fraction": "from fractions import Fraction",
    "datetime": "import datetime",
    "timedelta": "from datetime import timedelta",
    "date": "from datetime import date",
    "OrderedDict": "from collections import OrderedDict",
    "Counter": "from collections import Counter",
    "defaultdict": "from collections import defaultdict",
    "deque": "from collections import deque",
    "namedtuple": "from collections import namedtuple",
    "partial": "from functools import partial",
    "SimpleNamespace": "from types import SimpleNamespace",
    "StringIO": "from io import StringIO",
    "BytesIO": "from io import BytesIO",
    "timezone": "from datetime import timezone",
    "Path": "from pathlib import Path",
    "UUID": "from uuid import UUID",
    "math": "import math",
    "decimal": "import decimal",
    "collections": "import collections",
    "re": "import re",
    "operator": "import operator",
    "io": "import io",
    "itertools": "import itertools",
}
"""The import of each name of the standard library that a report may use without one."""
CLASSES_LIKE_MODULES: Mapping[str, str] = {"datetime": "from datetime import datetime"}
"""The import where the name is called, which then is not the module of that name."""
UNSAFE = frozenset(
    {
        "open",
        "input",
        "exec",
        "eval",
        "compile",
        "__import__",
        "exit",
        "quit",
        "breakpoint",
        "help",
        "print",
        "id",
    }
)
"""Builtins that reach outside of the test, or give another value each time."""
PYTHON_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) - UNSAFE
SCRIPT_GLOBALS = frozenset(
    {
        "Array", "BigInt", "Boolean", "Date", "Error", "Infinity", "JSON", "Map", "Math", "NaN", "Number", "Object",
        "RangeError", "RegExp", "Set", "String", "Symbol", "TypeError", "SyntaxError", "ReferenceError", "URL",
        "URLSearchParams", "Uint8Array", "parseFloat", "parseInt", "undefined", "isNaN", "Promise",
    }
)  # fmt: skip
SCRIPT_SETUP = re.compile(r"(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)\s*=\s*(?P<value>[^;]+?)\s*;?\Z")
ERROR_NAME = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Expired)\b"
)
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


def standard_imports(tree: ast.AST) -> dict[str, str]:
    """The import of each name of the standard library that the code needs from outside, by name."""
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    names = sorted(free_names_of(tree) & PYTHON_VALUES.keys())
    return {
        name: CLASSES_LIKE_MODULES.get(name, PYTHON_VALUES[name]) if name in called else PYTHON_VALUES[name]
        for name in names
    }


class PythonExpressions:
    """What prose needs to know of Python."""

    suffixes = (".py",)
    """Of the paths of its files."""
    own_names = PYTHON_BUILTINS
    """What code may use without defining or importing it."""
    importable: Mapping[str, str] = PYTHON_VALUES
    """The import of each name of the standard library that a report may use without one."""

    def free_names(self, text: str) -> frozenset[str] | None:
        """The names that the expression needs from outside, without the language's own; None if it is no expression."""
        tree = python_tree(text)
        return None if tree is None else free_names_of(tree) - self.own_names

    def has_call(self, text: str) -> bool:
        """Whether the expression calls something."""
        tree = python_tree(text)
        return tree is not None and any(isinstance(node, ast.Call) for node in ast.walk(tree))

    def is_value(self, text: str) -> bool:
        """Whether the expression is a value that depends on nothing of the repository."""
        tree = python_tree(text)
        if tree is None:
            return False
        plain = not any(
            isinstance(node, ast.Name | ast.BinOp | ast.Compare | ast.BoolOp) for node in ast.walk(tree)
        )
        try:
            ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            made = isinstance(tree, ast.Call) or not plain
            return (
                made
                and free_names_of(tree)
                <= PYTHON_VALUES.keys()
                | {"set", "frozenset", "float", "bytes", "bytearray", "range", "complex"}
                and isinstance(tree, ast.Call | ast.List | ast.Tuple | ast.Dict | ast.Set)
            )
        return True

    def called(self, text: str) -> tuple[str, ...]:
        """The plain or dotted names that the expression calls, outermost first."""
        tree = python_tree(text)
        if tree is None:
            return ()
        names = (dotted_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
        return tuple(dict.fromkeys(name for name in names if name))

    def comparison(self, text: str) -> tuple[str, str] | None:
        """Both sides of the expression if it only compares whether they are equal."""
        tree = python_tree(text)
        if (
            not isinstance(tree, ast.Compare)
            or len(tree.ops) != 1
            or not isinstance(tree.ops[0], ast.Eq | ast.Is)
        ):
            return None
        return ast.unparse(tree.left), ast.unparse(tree.comparators[0])

    def effects(self, statement: str) -> tuple[set[str], set[str], set[str]]:
        """The names that the statement binds, that it uses, and whose objects it may change."""
        tree = python_module(statement)
        if tree is None:
            return set(), set(), set()
        bound: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
        changed = set[str]().union(*map(_changed_names, tree.body))
        return bound, {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, changed


def _changed_names(statement: ast.stmt) -> set[str]:
    """The names whose objects the statement may change: `x` in `x.push(1)`, `x[0] = 1` and `next(x)`."""
    target: ast.AST = statement
    if isinstance(statement, ast.Expr):
        target = statement.value
        if isinstance(target, ast.Call) and isinstance(target.func, ast.Name):
            return {passed.id for passed in target.args if isinstance(passed, ast.Name)}
    while isinstance(target, ast.Call | ast.Attribute | ast.Subscript | ast.Assign | ast.AugAssign):
        if isinstance(target, ast.Assign):
            target = target.targets[0]
        elif isinstance(target, ast.AugAssign):
            target = target.target
        else:
            target = target.func if isinstance(target, ast.Call) else target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def python_module(code: str) -> ast.Module | None:
    """The tree of Python code; None if it is none."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def python_tree(text: str) -> ast.expr | None:
    """The tree of a Python expression; None if it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def free_names_of(tree: ast.AST) -> frozenset[str]:
    """The names that Python code loads and does not bind itself, builtins among them."""
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return frozenset(used - bound)


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` as it is written; of a chain after a call, the attributes alone; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted_name(node.value)
        if isinstance(node.value, ast.Call):
            owner = dotted_name(node.value.func)
        return f"{owner}.{node.attr}" if owner else node.attr
    return ""


SCRIPT_CALLS = frozenset({"call_expression", "new_expression"})
SCRIPT_NO_VALUES = frozenset(
    {
        "call_expression", "binary_expression", "arrow_function", "assignment_expression", "regex",
        "template_substitution", "member_expression", "ternary_expression", "function_expression",
    }
)  # fmt: skip
"""Types of nodes that are in no value."""
SCRIPT_VALUE_CLASSES = frozenset({"Date", "Map", "Set", "BigInt"})
"""What a value may be made of with `new`."""


class ScriptExpressions:
    """The same of JavaScript and TypeScript."""

    suffixes = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
    own_names = SCRIPT_GLOBALS
    importable: Mapping[str, str] = MappingProxyType({})

    def free_names(self, text: str) -> frozenset[str] | None:
        """See `PythonExpressions`."""
        tree = script_tree(text)
        if tree is None:
            return None
        used: set[str] = set()
        bound = set(self.own_names)
        for node in named_nodes(tree):
            if node.type == "identifier":
                binds = node.parent is not None and node.parent.type in {
                    "formal_parameters",
                    "arrow_function",
                }
                (bound if binds else used).add(node_text(node))
        return frozenset(used - bound)

    def has_call(self, text: str) -> bool:
        """See `PythonExpressions`."""
        tree = script_tree(text)
        return tree is not None and any(node.type in SCRIPT_CALLS for node in named_nodes(tree))

    def is_value(self, text: str) -> bool:
        """See `PythonExpressions`."""
        tree = script_tree(text)
        if tree is None:
            return False
        nodes = list(named_nodes(tree))
        kinds = {node.type for node in nodes}
        names = {node_text(node) for node in nodes if node.type == "identifier"}
        return (
            not kinds & SCRIPT_NO_VALUES
            and names <= {"undefined", "NaN", "Infinity", *SCRIPT_VALUE_CLASSES}
            and ("new_expression" in kinds or not names & SCRIPT_VALUE_CLASSES)
        )

    def called(self, text: str) -> tuple[str, ...]:
        """See `PythonExpressions`."""
        tree = script_tree(text)
        calls = (node for node in named_nodes(tree) if node.type in SCRIPT_CALLS) if tree else ()
        return tuple(dict.fromkeys(name for name in map(_callee_name, calls) if name))

    def comparison(self, text: str) -> tuple[str, str] | None:
        """See `PythonExpressions`."""
        found = re.fullmatch(r"(.+\))\s*={2,3}\s*(.+)", text.strip(), re.DOTALL)
        if found is None or self.free_names(found[1]) is None or not self.is_value(found[2]):
            return None
        return found[1], found[2]

    def effects(self, statement: str) -> tuple[set[str], set[str], set[str]]:
        """See `PythonExpressions`."""
        found = SCRIPT_SETUP.match(statement)
        if found is not None:
            return {found["name"]}, set(self.free_names(found["value"]) or ()), set()
        root = re.match(r"(?:await )?([A-Za-z_$][\w$]*)[.\[]", statement)
        return set(), set(self.free_names(statement) or ()), {root[1]} if root else set()


Expressions = PythonExpressions | ScriptExpressions


def script_tree(text: str) -> Node | None:
    """The tree of a JavaScript expression; None if it is none."""
    try:
        root = parse(f"({text.strip()}\n)".encode("utf-8", "replace"), "javascript").root_node
    except ParseGivenUp:
        return None
    statements = root.named_children
    if root.has_error or len(statements) != 1 or statements[0].type != "expression_statement":
        return None
    if any(node.type in {"sequence_expression", "labeled_statement"} for node in named_nodes(root)):
        return None
    return statements[0].named_children[0]


def _callee_name(call: Node) -> str:
    """`a.b.c` as it is written; in a chain after a call, without that call's arguments; "" for what has no name."""
    names: list[str] = []
    node: Node | None = call
    while node is not None:
        if node.type == "member_expression":
            names.append(node_text(node.child_by_field_name("property") or node))
        elif node.type == "identifier":
            names.append(node_text(node))
        node = next(filter(None, map(node.child_by_field_name, ("function", "constructor", "object"))), None)
    return ".".join(reversed(names))


def balanced_end(text: str, start: int) -> int:
    """Where the bracket at `start` is closed (the place behind it), with strings read as such; -1 if it is not, within
    `MAX_CHARS`.
    """
    stack: list[str] = []
    place, end = start, min(len(text), start + MAX_CHARS)
    while place < end:
        char = text[place]
        if char in "\"'":
            place = string_end(text, place)
            if place < 0:
                return -1
            continue
        if char in OPENING:
            stack.append(char)
        elif char in CLOSING:
            if not stack or stack.pop() != PAIRS[char]:
                return -1
            if not stack:
                return place + 1
        place += 1
    return -1


def string_end(text: str, start: int) -> int:
    """The place behind the string that begins at `start`, on the same line; -1 if it does not end."""
    mark = text[start] * 3 if text.startswith(text[start] * 3, start) else text[start]
    place = start + len(mark)
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text.startswith(mark, place):
            return place + len(mark)
        elif text[place] == "\n" and len(mark) == 1:
            return -1
        else:
            place += 1
    return -1


CALL_START = re.compile(r"(?<![\w.$@/-])(?:(?:new|await|not) )?[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*\(")
TRAILER = re.compile(r"\.[A-Za-z_$][\w$]*|[(\[]")


def call_spans(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each balanced call with what follows it directly (`f(1).g[0]`), outermost only."""
    place = 0
    while found := CALL_START.search(text, place):
        end = balanced_end(text, found.end() - 1)
        if end < 0:
            place = found.end()
            continue
        while trailer := TRAILER.match(text, end):
            if trailer[0][0] == ".":
                end = trailer.end()
                continue
            closed = balanced_end(text, end)
            if closed < 0:
                break
            end = closed
        yield found.start(), end
        place = end
