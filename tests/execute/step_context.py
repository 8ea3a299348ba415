"""Code as a step's prompts show it: what changes, its test, what it uses, who calls it, and what is green; and inputs of
prompts with it."""

from msgspec.structs import replace
from testing.packages import shown_file, shown_symbol

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.implement import ImplementInputs
from clean_room_agent.execute.prompt_fitting import Retry

CODE = shown_file("src/calc.py", "def add(a, b):\n    return a - b\n")
TEST = shown_symbol(
    "tests/test_calc.py",
    "def test_add():\n    assert add(1, 2) == 3\n",
    "test_add",
    1,
    2,
    detail="supporting",
)
USED = shown_symbol("src/base.py", "def check(a): ...\n", "check", 1, 1, detail="supporting")
LINE = shown_symbol("src/app.py", "src/app.py:7: return add(x, y)\n", "app", 1, 1, detail="type_context")
GREEN = shown_symbol(
    "tests/test_calc.py", "tests/test_calc.py:9: test_sub\n", "test_sub", 1, 1, detail="type_context"
)
STEP_CONTEXT = section_texts(
    (
        CODE,
        replace(TEST, section="tests"),
        replace(USED, section="uses"),
        replace(LINE, section="callers"),
        replace(GREEN, section="green"),
    )
)
IMPLEMENT_INPUTS = ImplementInputs(
    context=STEP_CONTEXT,
    diff="",
    task="add() subtracts.",
    part="Let add() add.",
    constraints="Keep the signature.",
    evidence="Failing test: tests/test_calc.py::test_add\n  expected: 3\n  actual: -1",
    step="Return the sum.",
    targets=("modify src/calc.py",),
    symbols=("add",),
    unshown=("src/calc.py::add",),
    failures=(
        Retry(number=1, edits="", feedback="tests_failed: newly failing: tests/test_calc.py::test_sub"),
        Retry(number=2, edits='<delete file="src/calc.py"/>', feedback="Result: refused. Not planned."),
    ),
    hint="",
)
