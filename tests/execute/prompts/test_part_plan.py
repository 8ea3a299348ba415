from dataclasses import replace

from inline_snapshot import snapshot
from testing.packages import shown_file, shown_symbol

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.prompts.part_plan import PART_PLAN, PartPlanInputs

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


DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n"


PART_INPUTS = PartPlanInputs(
    context=CONTEXT,
    others=(),
    diff=DIFF,
    evidence="",
    task="add() subtracts.",
    goal="Mend add().",
    part="Let add() add.",
    files=("src/calc.py",),
    max_steps=15,
    max_lines=200,
    rejected="",
    faults=(),
)


def test_the_part_plan_prompt_reads_so() -> None:
    assert PART_PLAN.render(PART_INPUTS) == snapshot("""\
# Context

## Task
add() subtracts.

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

## Changes made so far (the code above already has them)
diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-x
+y

# Instructions: Divide a part of a task into steps

You get one part of the task above; the code that it is about stands above, too. Divide the part into steps. A programmer will do one step at a time, and tests run after each.

Rules:
- Use as few steps as possible. A small part is one step.
- After each step the code must work. Changes that only work together are one step.
- Do not plan steps for reading, searching, running tests or reviewing.
- analysis: one or two sentences: what must change, and where.
- description: what the step changes, in one or two sentences, so exact that a programmer needs nothing else.
- files: each file that the step changes, with its role: modify (it exists), create (it does not exist), delete.
- Write paths exactly as they are written above.
- symbols: names of the functions, classes or methods that the step changes, like "parse" or "Parser.parse".
- id: s1, s2, s3 and so on.
- needs: the ids of steps that must be done before. Empty if there are none.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "steps": [{"description": "Add the young to the sum in count_quokkas.", "files": [{"path": "quokka_zoo/pen.py", "role": "modify"}], "id": "s1", "needs": [], "symbols": ["count_quokkas"]}, {"description": "Order two meals a day for each quokka, not one.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], "symbols": ["QuokkaMenu.order"]}], "summary": "Feed the young quokkas too."}

## Plan for the whole task
Mend add().

## The part to divide now
Let add() add.
Files: src/calc.py

Which steps does this part have? Use at most 15. The edits of one step can have at most 200 lines, old and new together: divide a longer change. Answer with the JSON object.\
""")
