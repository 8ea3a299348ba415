from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot
from testing.packages import shown_file, shown_symbol

from clean_room_agent.artifacts.package import section_texts
from clean_room_agent.execute.prompts.adjustment import ADJUSTMENT, AdjustmentInputs
from clean_room_agent.execute.prompts.doctor import DOCTOR, DoctorInputs
from clean_room_agent.execute.prompts.implement import IMPLEMENT, FailedAttempt, ImplementInputs
from clean_room_agent.execute.prompts.meta_plan import META_PLAN, MetaPlanInputs
from clean_room_agent.execute.prompts.part_plan import PART_PLAN, PartPlanInputs
from clean_room_agent.execute.prompts.scaffold import SCAFFOLD, ScaffoldInputs
from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.llm.prompt import Prompt

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
CONTEXT = section_texts((CODE, replace(TEST, section="tests")))
NO_CONTEXT = section_texts(())
STEP_CONTEXT = section_texts(
    (
        CODE,
        replace(TEST, section="tests"),
        replace(USED, section="uses"),
        replace(LINE, section="callers"),
        replace(GREEN, section="green"),
    )
)
DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n"
META_INPUTS = MetaPlanInputs(
    context=CONTEXT,
    others=("src/other.py",),
    evidence="Failing tests:\n- tests/test_calc.py::test_add",
    max_parts=10,
    task="add() subtracts.",
    rejected='{"parts": []}',
    faults=("at least one part is needed",),
)
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
ADJUSTMENT_INPUTS = AdjustmentInputs(
    context=NO_CONTEXT,
    diff=DIFF,
    task="add() subtracts.",
    part="Let add() add.",
    done=("- s1, done: Change the sign.",),
    remaining='{"description": "Export add.", "files": [], "id": "s2", "needs": [], "symbols": []}',
    max_steps=15,
    rejected="",
    faults=(),
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
        FailedAttempt(
            number=1, edits="", feedback="tests_failed: newly failing: tests/test_calc.py::test_sub"
        ),
        FailedAttempt(
            number=2, edits='<delete file="src/calc.py"/>', feedback="Result: refused. Not planned."
        ),
    ),
    hint="",
)
SCAFFOLD_INPUTS = ScaffoldInputs(
    context=STEP_CONTEXT,
    diff="",
    evidence="Failing test: tests/test_calc.py::test_mul\n  error: ImportError: cannot import name 'mul'",
    task="Add mul().",
    part="",
    constraints="",
    step="Add mul() beside add().",
    targets=("modify src/calc.py",),
    symbols=("mul",),
    rejected="",
    faults=("src/calc.py, line 5: the body of mul is no stub",),
)
PROMPTS: list[tuple[Prompt[Any, Any], Any]] = [
    (META_PLAN, META_INPUTS),
    (PART_PLAN, PART_INPUTS),
    (ADJUSTMENT, ADJUSTMENT_INPUTS),
    (IMPLEMENT, IMPLEMENT_INPUTS),
    (SCAFFOLD, SCAFFOLD_INPUTS),
]
IDS = [prompt.name for prompt, _ in PROMPTS]


def test_the_meta_plan_prompt_reads_so() -> None:
    assert META_PLAN.render(META_INPUTS) == snapshot("""\
# Divide a task into parts

You get a task and the code of a repository that it is about. Divide the task into parts.

Rules:
- Use as few parts as possible. A small task is one part.
- A part is a change that makes sense on its own. A change and its callers belong into one part.
- Do not plan parts for reading, searching, running tests or reviewing.
- Do not plan tests unless the task asks for them.
- analysis: one or two sentences: what is wrong or missing, and where.
- files: the paths that the part changes, exactly as they are written below. New files are allowed.
- id: a short name in small letters, like "parser" or "p1".
- needs: the ids of parts that must be done before. Empty if there are none.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young, and the quokka menu relies on it.", "parts": [{"description": "Let count_quokkas count the young too.", "files": ["quokka_zoo/pen.py"], "id": "quokka-count", "needs": []}, {"description": "Order two meals a day for each quokka.", "files": ["quokka_zoo/menu.py"], "id": "quokka-menu", "needs": ["quokka-count"]}], "summary": "Feed the young quokkas too."}

## Code
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end


## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end


## Other files that may matter (not shown)
src/other.py

## What the tests show now
Failing tests:
- tests/test_calc.py::test_add

## Task
add() subtracts.

## An earlier plan was refused
{"parts": []}
Its faults:
- at least one part is needed
Write the plan again without these faults.

Which parts does this task have? Use at most 10. Answer with the JSON object.\
""")


def test_the_part_plan_prompt_reads_so() -> None:
    assert PART_PLAN.render(PART_INPUTS) == snapshot("""\
# Divide a part of a task into steps

You get one part of a task and the code that it is about. Divide the part into steps. A programmer will do one step at a time, and tests run after each.

Rules:
- Use as few steps as possible. A small part is one step.
- After each step the code must work. Changes that only work together are one step.
- Do not plan steps for reading, searching, running tests or reviewing.
- analysis: one or two sentences: what must change, and where.
- description: what the step changes, in one or two sentences, so exact that a programmer needs nothing else.
- files: each file that the step changes, with its role: modify (it exists), create (it does not exist), delete.
- Write paths exactly as they are written below.
- symbols: names of the functions, classes or methods that the step changes, like "parse" or "Parser.parse".
- id: s1, s2, s3 and so on.
- needs: the ids of steps that must be done before. Empty if there are none.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "steps": [{"description": "Add the young to the sum in count_quokkas.", "files": [{"path": "quokka_zoo/pen.py", "role": "modify"}], "id": "s1", "needs": [], "symbols": ["count_quokkas"]}, {"description": "Order two meals a day for each quokka, not one.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], "symbols": ["QuokkaMenu.order"]}], "summary": "Feed the young quokkas too."}

## Code
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end


## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end


## Changes made so far
diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-x
+y


## Task
add() subtracts.

## Plan for the whole task
Mend add().

## The part to divide now
Let add() add.
Files: src/calc.py

Which steps does this part have? Use at most 15. The edits of one step can have at most 200 lines, old and new together: divide a longer change. Answer with the JSON object.\
""")


def test_the_adjustment_prompt_reads_so() -> None:
    assert ADJUSTMENT.render(ADJUSTMENT_INPUTS) == snapshot("""\
# Revise the remaining steps of a plan

A plan is under way. You get what was done and the steps that remain. Say which steps remain now.

Rules:
- If the remaining steps still fit, give them back unchanged. This is the usual case.
- Leave a step out only if what it asks for is already done.
- Change a step only if what happened makes it wrong.
- Add a step only if the part cannot be finished without it.
- Do not give back steps that are done or that failed. Steps that are done cannot be changed.
- analysis: one or two sentences: what follows from what happened.
- changes: one short sentence for each step that you left out, changed or added. Empty if there are none.
- steps: the steps that remain, each with description, files, id, needs and symbols.
- files: each file that the step changes, with its role: modify (it exists), create (it does not exist), delete.
- needs: ids of steps that are done or remain. Never the id of a step that failed.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "s1 already changed the quokka menu, so s2 only has the export left.", "changes": ["s2: only the export of count_quokkas is left"], "steps": [{"description": "Export count_quokkas from the package.", "files": [{"path": "quokka_zoo/__init__.py", "role": "modify"}], "id": "s2", "needs": ["s1"], "symbols": ["count_quokkas"]}]}

## Changes made so far
diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-x
+y


## Task
add() subtracts.

## The part of it under way
Let add() add.

## Steps so far
- s1, done: Change the sign.

## Remaining steps
{"description": "Export add.", "files": [], "id": "s2", "needs": [], "symbols": []}

Which steps remain now? Use at most 15. Answer with the JSON object.\
""")


def test_the_scaffold_prompt_reads_so() -> None:
    assert SCAFFOLD.render(SCAFFOLD_INPUTS) == snapshot('''\
# Declare what one step adds

You get code and one step of a task. Write the declarations that the step adds: imports, signatures and docstrings. The bodies are written later.

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
- search: copy whole lines from the code below, character for character.
- Write edit blocks and nothing else: no explanation, no other form.

## What the code to change uses
===== reference: src/base.py :: check (lines 1-1)
def check(a): ...
===== end


## Where it is used
src/app.py:7: return add(x, y)


## Tests that pass now and must still pass
tests/test_calc.py:9: test_sub


## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end


## What the tests show now
Failing test: tests/test_calc.py::test_mul
  error: ImportError: cannot import name 'mul'

## Code to change
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end


## Task
Add mul().

## The step to do now
Add mul() beside add().
Files: modify src/calc.py
To declare: mul

## An earlier answer was refused
Its faults:
- src/calc.py, line 5: the body of mul is no stub

Write all declarations again without these faults. The bodies come after this step.\
''')


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
# Write the edits for one step

You get code and one step of a task. Write the edits that do the step.

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
- search: copy whole lines from the code below, character for character, with their indentation.
- search: take enough lines that they stand only once in the file. Three to ten lines are good.
- Write every line out. Never write "..." or "rest unchanged".
- Do not change the same lines in two edits.
- Change only what the step asks for. Keep everything else as it is.
- Edit the files that the step names. Edit another file shown below only if the step cannot work without it.
- Write edit blocks and nothing else: no explanation, no other form.

## What the code to change uses
===== reference: src/base.py :: check (lines 1-1)
def check(a): ...
===== end


## Where it is used
src/app.py:7: return add(x, y)


## Tests that pass now and must still pass
tests/test_calc.py:9: test_sub


## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end


## What the tests show now
Failing test: tests/test_calc.py::test_add
  expected: 3
  actual: -1

## Code to change
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end


## Earlier attempts
- attempt 1: tests_failed: newly failing: tests/test_calc.py::test_sub

## Attempt 2 failed; the code is again as shown above
<delete file="src/calc.py"/>
Result: refused. Not planned.

## Task
add() subtracts.

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


@pytest.mark.parametrize(("prompt", "inputs"), PROMPTS, ids=IDS)
def test_a_prompt_keeps_the_rules_of_all_prompts(prompt: Prompt[Any, Any], inputs: Any) -> None:
    text = prompt.render(inputs)
    assert text.startswith(f"# {prompt.title}\n")
    assert "nothing else" in text
    assert text.index(prompt.example) < text.index("## Task")
    assert not isinstance(prompt.parse(prompt.example), BadAnswer)


def test_titles_and_names_are_unique() -> None:
    assert (
        len({prompt.title for prompt, _ in PROMPTS})
        == len({prompt.name for prompt, _ in PROMPTS})
        == len(PROMPTS)
    )


@pytest.mark.parametrize("prompt", [META_PLAN, PART_PLAN, ADJUSTMENT], ids=lambda prompt: prompt.name)
def test_keys_of_plans_do_not_mind_being_sorted(prompt: Prompt[Any, Any]) -> None:
    schema = prompt.schema
    assert schema is not None
    for shape in (schema, *schema["$defs"].values()):
        assert list(shape["properties"]) == sorted(shape["properties"])


@pytest.mark.parametrize(
    ("prompt", "text", "kind"),
    [
        (META_PLAN, "", "empty"),
        (META_PLAN, "no plan", "not_json"),
        (META_PLAN, META_PLAN.example[:60], "not_json"),
        (META_PLAN, '{"analysis": "", "parts": [], "summary": ""}', "schema"),
        (META_PLAN, '{"parts": [{"id": "a"}]}', "schema"),
        (PART_PLAN, '{"analysis": "", "steps": [{"id": "a", "description": ""}], "summary": ""}', "schema"),
        (PART_PLAN, PART_PLAN.example.replace('"modify"', '"burn"'), "schema"),
        (ADJUSTMENT, '{"analysis": ""}', "schema"),
        (SCAFFOLD, "def f(): pass", "empty"),
        (SCAFFOLD, SCAFFOLD.example.removesuffix("</insert>"), "truncated"),
        (IMPLEMENT, "def f(): pass", "empty"),
        (IMPLEMENT, IMPLEMENT.example.partition("</create>")[0], "truncated"),
        (IMPLEMENT, "<edit>\n<search>\nx\n</search>\n<replacement>\ny\n</replacement>\n</edit>", "format"),
    ],
)
def test_a_broken_answer_is_a_typed_failure(prompt: Prompt[Any, Any], text: str, kind: str) -> None:
    bad = prompt.parse(text)
    assert isinstance(bad, BadAnswer)
    assert bad.kind == kind


def test_small_slips_in_a_plan_are_tolerated() -> None:
    text = '{"analysis": "a", "steps": [{"id": 1, "description": "d", "files": ["./a.py", {"path": "b.py", "role": "New"}]}], "summary": "s"}'
    answer = PART_PLAN.parse(text)
    assert not isinstance(answer, BadAnswer)
    assert answer.steps[0].id == "1"
    assert [(file.path, file.role) for file in answer.steps[0].files] == [
        ("a.py", "modify"),
        ("b.py", "create"),
    ]


def test_the_doctor_sees_what_became_of_each_attempt_and_the_newest_edits() -> None:
    inputs = DoctorInputs(
        task="add() subtracts.",
        step="Change the sign.",
        targets=("modify src/calc.py",),
        attempts=("refused: NO_MATCH", "tests failed: AssertionError: 0 != 3"),
        edits='<edit file="src/calc.py">',
    )
    text = DOCTOR.render(inputs)
    assert text[text.index("## Task") :] == snapshot("""\
## Task
add() subtracts.

## The step
Change the sign.
Files: modify src/calc.py

## Attempts
- refused: NO_MATCH
- tests failed: AssertionError: 0 != 3

## The newest attempt's edits
<edit file="src/calc.py">

Why does the step fail, and what is to be done? Answer with the JSON object.\
""")
    assert "newest attempt" not in DOCTOR.render(replace(inputs, edits=""))


@pytest.mark.parametrize(
    ("confidence", "read"), [("80", 80), ("0.8", 80), ("1.0", 100)], ids=["percent", "share", "whole share"]
)
def test_a_diagnosis_says_how_sure_it_is_in_percent_or_as_a_share(confidence: str, read: int) -> None:
    text = DOCTOR.example.replace('"confidence": 80', f'"confidence": {confidence}')
    answer = DOCTOR.parse(text)
    assert not isinstance(answer, BadAnswer)
    assert (answer.confidence, answer.decision) == (read, "retry_with_fix")


@pytest.mark.parametrize("confidence", ["-1e999", "1e999", "-0.5"])
def test_a_confidence_that_is_no_share_is_a_fault_of_the_answer(confidence: str) -> None:
    answer = DOCTOR.parse(DOCTOR.example.replace('"confidence": 80', f'"confidence": {confidence}'))
    assert isinstance(answer, BadAnswer)
    assert answer.kind == "schema"
