"""Code as a step's prompts show it: what changes, its test, what it uses, who calls it, and what is green."""

from msgspec.structs import replace
from testing.packages import shown_file, shown_symbol

from clean_room_agent.artifacts.context import section_texts

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
