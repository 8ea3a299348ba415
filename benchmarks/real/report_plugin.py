"""A pytest plugin for the projects under test: outcomes, and what failing comparisons got and expected, in a JSON file.

It is copied beside the work folder's environment and loaded with `-p report_plugin`; the file's name is in REAL_REPORT.
Only what can be told in one line to somebody without the tests is kept: a call on literal values. With REAL_LINES, the lines
that ran below the current folder are in the report, too; that is slow.
"""

import ast
import builtins
import copy
import json
import os
import sys
import types
from pathlib import Path
from typing import Any, cast

import pytest

LONGEST = 250
OUTCOMES: dict[str, str] = {}
COMPARISONS: list[dict[str, str]] = []
LINES: set[tuple[str, int]] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test has passed if no phase and no subtest of it failed."""
    if report.outcome != "passed":
        OUTCOMES[report.nodeid] = report.outcome
    elif report.when == "call":
        OUTCOMES.setdefault(report.nodeid, report.outcome)


def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[object]) -> None:
    """Note what the failing statement of the test compared."""
    if call.excinfo is None:
        return
    tree = ast.parse(node.path.read_bytes())
    for entry in reversed(call.excinfo.traceback):  # a helper may have compared what the test gave it
        if Path(str(entry.path)) == node.path:
            told = told_at(tree, entry.lineno + 1, entry.frame.raw, call.excinfo.value)
            if told:
                COMPARISONS.append({"test": node.nodeid, **told})
                return


def told_at(tree: ast.Module, line: int, frame: types.FrameType, error: BaseException) -> dict[str, str]:
    """What the statement in this line compared; empty if that cannot be told."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt) and statement.lineno <= line <= (statement.end_lineno or 0):
            left, right = compared(statement) or (None, None)
            if left and right:
                spelled = Spelled(frame, tree, line)
                return spelled.told(left, right, error) or spelled.told(right, left, error)
    return {}


def compared(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of an assertion of equality."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return left, right
        case ast.Expr(value=ast.Call(func=function, args=[left, right, *_])):
            name = ast.unparse(function).rpartition(".")[2].lower()
            return (
                (left, right) if name.startswith("assert") and "equal" in name and "not" not in name else None
            )
    return None


class Spelled(ast.NodeTransformer):
    """An expression as somebody outside would write it: local variables replaced, modules left out.

    Raises:
        ValueError: a local variable has no literal value.
    """

    def __init__(self, frame: types.FrameType, tree: ast.Module, line: int) -> None:
        self.frame = frame
        self.tree = tree
        self.line = line

    def told(self, actual: ast.expr, expected: ast.expr, error: BaseException) -> dict[str, str]:
        """Call, got and expected as texts; empty where they cannot be told, or nothing of the project is called."""
        try:
            spelled = ast.fix_missing_locations(self.visit(copy.deepcopy(actual)))
            wanted, got = repr(self.value(expected)), f"{type(error).__name__}: {error}"
            if isinstance(error, AssertionError):
                got = repr(self.value(actual))
        except Exception:  # noqa: BLE001 (whatever a foreign test does, it is no sentence)
            return {}
        call = ast.unparse(spelled)
        if got == wanted or not any(is_of_project(part) for part in ast.walk(spelled)):
            return {}
        if any(" at 0x" in text or "\n" in text or len(text) > LONGEST for text in (call, got, wanted)):
            return {}
        raised = "" if isinstance(error, AssertionError) else "1"
        return {"call": call, "got": got, "expected": wanted, "raised": raised}

    def value(self, expression: ast.expr) -> Any:
        """What it is where the test stands."""
        code = compile(ast.Expression(expression), "<comparison>", "eval")
        return eval(code, self.frame.f_globals, dict(self.frame.f_locals))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`module.name` is `name`."""
        if isinstance(node.value, ast.Name) and isinstance(
            self.frame.f_globals.get(node.value.id), types.ModuleType
        ):
            return ast.Name(node.attr, ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`f(*(1, 2))` is `f(1, 2)`."""
        self.generic_visit(node)
        found: list[ast.expr] = []
        for argument in node.args:
            match argument:
                case ast.Starred(value=ast.Tuple(elts=parts) | ast.List(elts=parts)):
                    found += parts
                case _:
                    found.append(argument)
        node.args = found
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A local variable is the call that it was last given, or its value."""
        if node.id not in self.frame.f_locals or node.id in self.frame.f_globals:
            return node
        given = self.last_given(node.id)
        if given and any(isinstance(part, ast.Call) for part in ast.walk(given)):
            earlier = Spelled(self.frame, self.tree, given.lineno)
            return cast("ast.AST", earlier.visit(copy.deepcopy(given)))
        text = repr(self.frame.f_locals[node.id])
        ast.literal_eval(text)
        return ast.parse(text, mode="eval").body

    def last_given(self, name: str) -> ast.expr | None:
        """What the variable was last given before the line, in the same function."""
        found = None
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef) and function.lineno <= self.line <= (
                function.end_lineno or 0
            ):
                for node in ast.walk(function):
                    match node:
                        case ast.Assign(targets=[ast.Name(id=target)], value=value) if (
                            node.lineno < self.line
                        ):
                            found = value if target == name else found
        return found


def is_of_project(node: ast.AST) -> bool:
    """Whether it calls something by a name that is no builtin: not only a method of a literal."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and not hasattr(builtins, function.id)


def trace(frame: types.FrameType, event: str, _: object) -> Any:
    """Note each line of the project that runs."""
    if not frame.f_code.co_filename.startswith(HERE):
        return None
    if event == "line":
        LINES.add((frame.f_code.co_filename.removeprefix(HERE), frame.f_lineno))
    return trace


HERE = f"{Path.cwd()}/"
if "REAL_LINES" in os.environ:
    sys.settrace(trace)


def pytest_sessionfinish() -> None:
    """All of it is in the file."""
    sys.settrace(None)
    report = {"outcomes": OUTCOMES, "comparisons": COMPARISONS, "lines": sorted(LINES)}
    Path(os.environ["REAL_REPORT"]).write_text(json.dumps(report), encoding="utf-8")
