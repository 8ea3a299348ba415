"""A pytest plugin for the projects under test: outcomes, and what failing comparisons got and expected, in a JSON file.

It is copied beside the work folder's environment and loaded with `-p report_plugin`; the file's name is in REAL_REPORT.
Only what can be told in one line to somebody without the tests is kept: a call on literal values. With REAL_LINES, the lines
that ran below the current folder are in the report, too; that is slow.
"""

import ast
import copy
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

LONGEST = 200
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
    entries = [entry for entry in call.excinfo.traceback if Path(str(entry.path)) == node.path]
    if not entries:
        return
    line = entries[-1].lineno + 1
    frame = entries[-1].frame.raw
    error = call.excinfo.value
    for statement in ast.walk(ast.parse(node.path.read_bytes())):
        if isinstance(statement, ast.stmt) and statement.lineno <= line <= (statement.end_lineno or 0):
            pair = compared(statement)
            if pair and (told := told_of(pair, frame, error)):
                COMPARISONS.append({"test": node.nodeid, **told})


def compared(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The actual and the expected expression of an assertion of equality."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            pair = left, right
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_])):
            if not name.startswith("assert") or "Equal" not in name or "Not" in name:
                return None
            pair = left, right
        case _:
            return None
    return pair if any(isinstance(part, ast.Call) for part in ast.walk(pair[0])) else (pair[1], pair[0])


def told_of(pair: tuple[ast.expr, ast.expr], frame: types.FrameType, error: BaseException) -> dict[str, str]:
    """Call, got and expected as texts; empty where they cannot be told."""
    actual, expected = pair
    try:
        spelled = ast.fix_missing_locations(Spelled(frame).visit(copy.deepcopy(actual)))
        call = ast.unparse(spelled)
        wanted = repr(evaluated(expected, frame))
        if isinstance(error, AssertionError):
            got = repr(evaluated(actual, frame))
        else:
            got = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 (whatever a foreign test does, it is no sentence)
        return {}
    texts = (call, got, wanted)
    if not any(isinstance(part, ast.Call) for part in ast.walk(spelled)):
        return {}  # a variable that holds what a call gave
    if got == wanted or any(" at 0x" in text or "\n" in text or len(text) > LONGEST for text in texts):
        return {}
    return {
        "call": call,
        "got": got,
        "expected": wanted,
        "raised": "" if isinstance(error, AssertionError) else "1",
    }


def evaluated(expression: ast.expr, frame: types.FrameType) -> Any:
    """Its value where the test stands."""
    code = compile(ast.Expression(expression), "<comparison>", "eval")
    return eval(code, frame.f_globals, dict(frame.f_locals))


class Spelled(ast.NodeTransformer):
    """An expression as somebody outside would write it: local variables as their values, modules left out.

    Raises:
        ValueError: a local variable has no literal value.
    """

    def __init__(self, frame: types.FrameType) -> None:
        self.frame = frame
        self.bound: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`module.name` is `name`."""
        if isinstance(node.value, ast.Name) and isinstance(
            self.frame.f_globals.get(node.value.id), types.ModuleType
        ):
            return ast.Name(node.attr, ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A local variable is its value."""
        if node.id not in self.frame.f_locals or node.id in self.frame.f_globals:
            return node
        text = repr(self.frame.f_locals[node.id])
        ast.literal_eval(text)
        return ast.parse(text, mode="eval").body


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
