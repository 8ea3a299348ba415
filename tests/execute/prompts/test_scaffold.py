from inline_snapshot import snapshot
from tests.execute.prompts.step_context import SCAFFOLD_INPUTS

from clean_room_agent.execute.prompts.scaffold import SCAFFOLD


def test_the_scaffold_prompt_reads_so() -> None:
    assert SCAFFOLD.render(SCAFFOLD_INPUTS) == snapshot('''\
# Context

## Task
Add mul().

## What the tests show now
Failing test: tests/test_calc.py::test_mul
  error: ImportError: cannot import name 'mul'

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

# Instructions: Declare what one step adds

You get one step of the task above. The code that it is about stands above, too. Write the declarations that the step adds: imports, signatures and docstrings. The bodies are written later.

Each edit is one block. Take the form that fits:
- <create>: a new file, if the step says so.
- <insert>: add a new function, method or class to a file. after= or before= names the one beside it; in= names the class to add it to.
- <edit> with <search> and <replacement>: change some lines, such as the imports.

Example answer with two blocks (these files are made up):
<create file="quokka_zoo/food.py">
"""What the quokkas eat."""

from quokka_zoo.pen import QuokkaPen

MEALS_A_DAY = 2


class QuokkaMenu:
    """The meals of one pen."""

    def __init__(self, pen: QuokkaPen) -> None:
        """A menu without meals."""
        raise NotImplementedError

    def add(self, meal: str) -> int:
        """Adds a meal; how many there are then."""
        raise NotImplementedError
</create>
<insert file="quokka_zoo/pen.py" after="QuokkaPen.open">
    def close(self) -> None:
        """Shuts the gate."""
        raise NotImplementedError
</insert>

Rules:
- Declare each function, method and class that the step adds, with its parameters and a docstring of one line.
- The body of each function is one statement: raise NotImplementedError. In JavaScript and TypeScript: throw new Error("not implemented");
- Write no other code. Constants, and fields of a class, are declarations.
- Import what the bodies are going to need, from modules that exist.
- Use the names and parameters that the tests and the callers use.
- Do not change or remove the functions that are there.
- search: copy whole lines from what stands under "Code to change", character for character.
- Write edit blocks and nothing else: no explanation, no other form.

## The step to do now
Add mul() beside add().
Files: modify src/calc.py
To declare: mul

## An earlier answer was refused
Its faults:
- src/calc.py, line 5: the body of mul is no stub

Write all declarations again without these faults. The bodies come after this step.\
''')
