"""What an assertion in a repository's own test calls and wants, so that a model can be told the failure in one line.

values = [1, 2]
result = double(values)
assert result == [2, 4]          calls `double([1, 2])`, and wants `[2, 4]`
"""

import ast
import re
from collections.abc import Mapping

from msgspec import Struct

from clean_room_agent.execute.goals.expressions import CLOSING, OPENING, ScriptExpressions

MOST_CHARS = 300
"""Of a call; a longer one says less than the test's failure."""
MOST_INLINED = 4
"""Names in the place of which their values are put, one in another."""
EQUAL = re.compile(r"assert(?:\w*Equals?|Is)\Z")
TRUE, FALSE = re.compile(r"assertTrue\Z"), re.compile(r"assertFalse\Z")
EXPECTED = re.compile(r"\.(?:toBe|toEqual|toStrictEqual)\((?P<wanted>.*)\)\s*;?\Z", re.DOTALL)
COMPARED = re.compile(
    r"assert\.(?:equal|strictEqual|deepEqual|deepStrictEqual)\((?P<sides>.*)\)\s*;?\Z", re.DOTALL
)


class Asserted(Struct, frozen=True, kw_only=True):
    """One assertion that compares a call with a value, as source text."""

    call: str
    wanted: str
    swapped: bool = False
    """Whether the call stands on the right, where runners look for the expected value."""


def asserted(statement: str, function: str = "") -> Asserted | None:
    """The call and the value that the Python statement compares; None if it does not compare a call.

    Names that `function`, the source of the test's own function, assigns once are replaced by what is assigned.
    """
    sides = _sides(statement)
    if sides is None:
        return None
    values = _assigned_once(function)
    left, right = (_inlined(side, values) for side in sides)
    swapped = not _calls(left) and _calls(right)
    call, wanted = (right, left) if swapped else (left, right)
    if not _calls(call) or len(call) > MOST_CHARS:
        return None
    return Asserted(call=call, wanted=wanted, swapped=swapped)


def script_asserted(statement: str) -> Asserted | None:
    """As `asserted`, for a statement of JavaScript: `expect(CALL).toBe(VALUE)` and the like, `assert.equal(CALL, VALUE)`."""
    text = statement.strip().removeprefix("await ")
    if text.startswith("expect("):
        end = _closing(text, len("expect"))
        found = EXPECTED.match(text, end + 1)
        pair = (text[len("expect(") : end], found["wanted"]) if found else None
    else:
        compared = COMPARED.match(text)
        parts = _split(compared["sides"]) if compared else []
        pair = (parts[0], parts[1]) if len(parts) > 1 else None
    if pair is None or not ScriptExpressions().has_call(pair[0]) or len(pair[0]) > MOST_CHARS:
        return None
    return Asserted(call=pair[0].strip(), wanted=pair[1].strip().rstrip(","))


def _sides(statement: str) -> tuple[ast.expr, ast.expr] | None:
    """What is compared for being equal, or true, or false."""
    try:
        (only,) = ast.parse(statement.strip()).body
    except (SyntaxError, ValueError, RecursionError):
        return None
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
    if call.args and (TRUE.match(name) or FALSE.match(name)):
        return call.args[0], ast.Constant(value=TRUE.match(name) is not None)
    return None


def _assigned_once(function: str) -> Mapping[str, ast.expr]:
    """The names that the source binds in one place alone, by a plain assignment."""
    try:
        tree = ast.parse(function)
    except (SyntaxError, ValueError, RecursionError):
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


def _inlined(side: ast.expr, values: Mapping[str, ast.expr]) -> str:
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

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that has a value is that value."""
        return self._values.get(node.id, node)


def _calls(source: str) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(source)))


def _closing(text: str, opening: int) -> int:
    """Where the bracket at `opening` is closed; the end if it is not."""
    depth, place = 0, opening
    while place < len(text):
        if text[place] in "\"'`":
            place = _string_end(text, place)
        elif text[place] in OPENING:
            depth += 1
        elif text[place] in CLOSING:
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return len(text)


def _split(text: str) -> list[str]:
    """The arguments, separated by commas outside of brackets and strings."""
    parts, start, place = [], 0, 0
    while place < len(text):
        if text[place] == ",":
            parts.append(text[start:place])
            start = place + 1
        elif text[place] in OPENING:
            place = _closing(text, place)
        elif text[place] in "\"'`":
            place = _string_end(text, place)
        place += 1
    return [*parts, text[start:]]


def _string_end(text: str, opening: int) -> int:
    """Where the string that begins at `opening` ends."""
    place = opening + 1
    while place < len(text) and (text[place] != text[opening] or text[place - 1] == "\\"):
        place += 1
    return place
