from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.execute.prompts.step_context import IMPLEMENT_INPUTS

from clean_room_agent.execute.prompts.implement import IMPLEMENT


def test_stubs_are_named_and_one_that_is_asked_for_alone_stands_alone() -> None:
    stubs = ("src/calc.py::mul", "src/calc.py::div")
    inputs = replace(IMPLEMENT_INPUTS, failures=(), stubs=stubs)
    assert IMPLEMENT.render(inputs).partition("Not shown, too large: src/calc.py::add\n")[2] == snapshot("""\

These functions are stubs: each body only says that it is not implemented. Write all of them, and keep their signatures. The form <edit> with symbol= suits best:
- src/calc.py::mul
- src/calc.py::div

Write the edits for this step.\
""")
    alone = replace(inputs, stubs=stubs[:1], apart=True)
    assert IMPLEMENT.render(alone).partition("Not shown, too large: src/calc.py::add\n")[2] == snapshot("""\

This function is a stub: its body only says that it is not implemented. Write it, and keep its signature. Write nothing else: the rest of the step is written apart. The form <edit> with symbol= suits best:
- src/calc.py::mul

Write this one function for this step.\
""")


def test_the_implement_prompt_reads_so() -> None:
    assert IMPLEMENT.render(IMPLEMENT_INPUTS) == snapshot("""\
# Context

## Task
add() subtracts.

## What the tests show now
Failing test: tests/test_calc.py::test_add
  expected: 3
  actual: -1

## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end

## What the code to change uses
===== reference: src/base.py :: check (lines 1-1)
def check(a): ...
===== end

## Where it is used
src/app.py:7: return add(x, y)

## Tests that pass now and must still pass
tests/test_calc.py:9: test_sub

## Code to change
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end

# Instructions: Write the edits for one step

You get one step of the task above. The code that it is about stands above, too. Write the edits that do the step.

Each edit is one block. Take the form that fits:
- <edit> with <search>: change some lines.
- <edit> with symbol=: rewrite one whole function, method or class.
- <insert>: add a new function, method or class. after= or before= names the one beside it; in= names the class to add it to.
- <create> or <delete>: a whole file, if the step says so.

Example answer with each form once (these files are made up; most answers need one or two blocks):
<edit file="quokka_zoo/pen.py">
<search>
    meals = len(quokkas)
    return meals
</search>
<replacement>
    meals = len(quokkas) * MEALS_A_DAY
    return meals
</replacement>
</edit>
<edit file="quokka_zoo/pen.py" symbol="QuokkaPen.open">
<replacement>
    def open(self):
        self.gate = "open"
        return self.gate
</replacement>
</edit>
<insert file="quokka_zoo/pen.py" after="QuokkaPen.open">
    def close(self):
        self.gate = "closed"
</insert>
<create file="quokka_zoo/food.py">
MEALS_A_DAY = 2
</create>
<delete file="quokka_zoo/old_food.py"/>

Rules:
- search: copy whole lines from what stands under "Code to change", character for character, with their indentation.
- search: take enough lines that they stand only once in the file. Three to ten lines are good.
- Write every line out. Never write "..." or "rest unchanged".
- Do not change the same lines in two edits.
- Change only what the step asks for. Keep everything else as it is.
- Edit the files that the step names. Edit another file shown above only if the step cannot work without it.
- Write edit blocks and nothing else: no explanation, no other form.

## Earlier attempts
- attempt 1: tests_failed: newly failing: tests/test_calc.py::test_sub

## Attempt 2 failed; the code is again as shown above
<delete file="src/calc.py"/>
Result: refused. Not planned.

## The part of it under way
Let add() add.

## Keep in mind
Keep the signature.

## The step to do now
Return the sum.
Files: modify src/calc.py
Symbols: add
Not shown, too large: src/calc.py::add

Write edits for this step that avoid what failed before.\
""")
