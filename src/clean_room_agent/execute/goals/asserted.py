"""What an assertion in a repository's own test calls and wants, so that a model can be told the failure in one line.

values = [1, 2]
result = double(values)
assert result == [2, 4]          calls `double([1, 2])`, and wants `[2, 4]`
"""

import ast
import re
from collections.abc import Mapping

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.execute.goals.expressions import (
    ScriptExpressions,
    python_module,
    python_tree,
    script_tree,
)
from clean_room_agent.syntax import node_text

MOST_CHARS = 300
"""Of a call; a longer one says less than the test's failure."""
NO_ARGUMENTS: Mapping[str, str] = {}
MOST_INLINED = 4
"""Names in the place of which their values are put, one in another."""
EQUAL = re.compile(r"assert(?:\w*Equals?|Is)\Z")
EXPECTED = frozenset({"toBe", "toEqual", "toStrictEqual"})
COMPARED = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual"})
"""The methods of what `expect` gives, and of Node's `assert`, that compare two values for being equal."""


class Asserted(Struct, frozen=True, kw_only=True):
    """One assertion that compares a call with a value, as source text."""

    call: str
    wanted: str
    swapped: bool = False
    """Whether the call stands on the right, where runners look for the expected value."""


def asserted(
    statement: str, function: str = "", arguments: Mapping[str, str] = NO_ARGUMENTS
) -> Asserted | None:
    """The call and the value that the Python statement compares; None if it does not compare a call.

    Names that `function`, the source of the test's own function, assigns once are replaced by what is assigned, and its
    `arguments`, of which the source is known, by that.
    """
    sides = _compared_sides(statement)
    if sides is None:
        return None
    given = {name: tree for name, text in arguments.items() if (tree := python_tree(text)) is not None}
    values = {**given, **_assigned_once(function)}
    left, right = (_inline_values(side, values) for side in sides)
    swapped = not _has_call(left) and _has_call(right)
    call, wanted = (right, left) if swapped else (left, right)
    if not _has_call(call) or len(call) > MOST_CHARS:
        return None
    return Asserted(call=call, wanted=wanted, swapped=swapped)


def asserted_by_helper(text: str, line: int, calling: str) -> Asserted | None:
    """As `asserted`, for the statement at the line (1-based) of a function that the test's statement `calling` calls with
    positional arguments, both in the file with this text.
    """
    tree, caller = python_module(text), python_tree(calling)
    if tree is None or not isinstance(caller, ast.Call) or not isinstance(caller.func, ast.Name):
        return None
    name = caller.func.id
    helper = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name == name
            and node.lineno <= line <= (node.end_lineno or 0)
        ),
        None,
    )
    if helper is None or any(isinstance(one, ast.Starred) for one in caller.args):
        return None
    statements = [
        node
        for node in ast.walk(helper)
        if isinstance(node, ast.Assert | ast.Expr) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if len(statements) != 1:
        return None
    names = [one.arg for one in helper.args.args]
    arguments = dict(zip(names, map(ast.unparse, caller.args), strict=False))
    return asserted(ast.unparse(statements[0]), ast.unparse(helper), arguments)


def script_asserted(statement: str) -> Asserted | None:
    """As `asserted`, for a statement of JavaScript: `expect(CALL).toBe(VALUE)` and the like, `assert.equal(CALL, VALUE)`."""
    tree = script_tree(statement.strip().removesuffix(";").removeprefix("await "))
    if tree is not None and tree.type == "parenthesized_expression":
        tree = tree.named_children[0]
    sides = () if tree is None else _script_sides(tree)
    if len(sides) < 2 or len(sides[0]) > MOST_CHARS or not ScriptExpressions().has_call(sides[0]):
        return None
    return Asserted(call=sides[0], wanted=sides[1])


def _script_sides(tree: Node) -> tuple[str, ...]:
    """What is compared for being equal."""
    function, arguments = _call_parts(tree)
    owner = function.child_by_field_name("object") if function else None
    name = function.child_by_field_name("property") if function else None
    if owner is None or name is None:
        return ()
    expect, expected = _call_parts(owner)
    if expect is not None and expect.text == b"expect" and node_text(name) in EXPECTED:
        return (*expected[:1], *arguments[:1])
    return arguments if owner.text == b"assert" and node_text(name) in COMPARED else ()


def _call_parts(node: Node) -> tuple[Node | None, tuple[str, ...]]:
    """What the node calls, and the arguments; None if it is no call."""
    if node.type != "call_expression":
        return None, ()
    given = node.child_by_field_name("arguments")
    arguments = given.named_children if given is not None else []
    return node.child_by_field_name("function"), tuple(
        node_text(one) for one in arguments if one.type != "comment"
    )


def _compared_sides(statement: str) -> tuple[ast.expr, ast.expr] | None:
    """What is compared for being equal, or true, or false."""
    tree = python_module(statement.strip())
    if tree is None or len(tree.body) != 1:
        return None
    (only,) = tree.body
    while isinstance(only, ast.FunctionDef | ast.AsyncFunctionDef):  # on one line
        only = only.body[-1]
    if isinstance(only, ast.Assert):
        return _sides_of_test(only.test)
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Call):
        return _sides_of_method(only.value)
    return None


def _sides_of_test(test: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(test, ast.Compare):
        is_equality = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)
        return (test.left, test.comparators[0]) if is_equality else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, ast.Constant(value=False)
    return test, ast.Constant(value=True)


def _sides_of_method(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Those of unittest's methods."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if EQUAL.match(name) and len(call.args) > 1:
        return call.args[0], call.args[1]
    if call.args and name in {"assertTrue", "assertFalse"}:
        return call.args[0], ast.Constant(value=name == "assertTrue")
    return None


def _assigned_once(function: str) -> Mapping[str, ast.expr]:
    """The names that the source binds in one place alone, by a plain assignment."""
    tree = python_module(function)
    if tree is None:
        return {}
    bound = [
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    return {name: value for name, value in assigned.items() if bound.count(name) == 1}


def _inline_values(side: ast.expr, values: Mapping[str, ast.expr]) -> str:
    """The source of the expression with the values in the place of their names."""
    tree: ast.expr = side
    for _ in range(MOST_INLINED):
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if not names & values.keys():
            break
        tree = _Inliner(values).visit(ast.parse(ast.unparse(tree), mode="eval").body)
    return ast.unparse(tree)


class _Inliner(ast.NodeTransformer):
    """Puts values in the place of their names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`f(*[1, 2])` is `f(1, 2)`."""
        self.generic_visit(node)
        unpacked = [
            one.value.elts
            if isinstance(one, ast.Starred) and isinstance(one.value, ast.List | ast.Tuple)
            else [one]
            for one in node.args
        ]
        node.args = [each for some in unpacked for each in some]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that has a value is that value."""
        return self._values.get(node.id, node)


def _has_call(source: str) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(source)))
