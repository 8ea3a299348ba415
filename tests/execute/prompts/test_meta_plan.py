from dataclasses import replace

from inline_snapshot import snapshot
from testing.packages import shown_file, shown_symbol

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.prompts.meta_plan import META_PLAN, MetaPlanInputs

CODE = shown_file("src/calc.py", "def add(a, b):\n    return a - b\n")


TEST = shown_symbol(
    "tests/test_calc.py",
    "def test_add():\n    assert add(1, 2) == 3\n",
    "test_add",
    1,
    2,
    detail="supporting",
)


CONTEXT = section_texts((CODE, replace(TEST, section="tests")))


META_INPUTS = MetaPlanInputs(
    context=CONTEXT,
    others=("src/other.py",),
    evidence="Failing tests:\n- tests/test_calc.py::test_add",
    max_parts=10,
    task="add() subtracts.",
    rejected='{"parts": []}',
    faults=("at least one part is needed",),
)


def test_the_meta_plan_prompt_reads_so() -> None:
    assert META_PLAN.render(META_INPUTS) == snapshot("""\
# Context

## Task
add() subtracts.

## What the tests show now
Failing tests:
- tests/test_calc.py::test_add

## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end

## Code
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end

## Other files that may matter (not shown)
src/other.py

# Instructions: Divide a task into parts

Divide the task above into parts. The code of the repository that it is about stands above, too.

Rules:
- Use as few parts as possible. A small task is one part.
- A part is a change that makes sense on its own. A change and its callers belong into one part.
- Do not plan parts for reading, searching, running tests or reviewing.
- Do not plan tests unless the task asks for them.
- analysis: one or two sentences: what is wrong or missing, and where.
- files: the paths that the part changes, exactly as they are written above. New files are allowed.
- id: a short name in small letters, like "parser" or "p1".
- needs: the ids of parts that must be done before. Empty if there are none.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young, and the quokka menu relies on it.", "parts": [{"description": "Let count_quokkas count the young too.", "files": ["quokka_zoo/pen.py"], "id": "quokka-count", "needs": []}, {"description": "Order two meals a day for each quokka.", "files": ["quokka_zoo/menu.py"], "id": "quokka-menu", "needs": ["quokka-count"]}], "summary": "Feed the young quokkas too."}

## An earlier plan was refused
{"parts": []}
Its faults:
- at least one part is needed
Write the plan again without these faults.

The task again, in short: add() subtracts.
Which parts does it have? Use at most 10. Answer with the JSON object.\
""")
