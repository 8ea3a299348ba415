from typing import Any

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from testing.packages import shown_file, shown_symbol
from tests.execute.step_context import CODE, IMPLEMENT_INPUTS, SCAFFOLD_INPUTS, TEST

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    META_PLAN,
    PART_PLAN,
    AdjustmentInputs,
    MetaPlanInputs,
    PartPlanInputs,
)
from clean_room_agent.execute.scaffold import SCAFFOLD
from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.llm.prompt import Prompt

CONTEXT = section_texts((CODE, replace(TEST, section="tests")))
NO_CONTEXT = section_texts(())
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
PROMPTS: list[tuple[Prompt[Any, Any], Any]] = [
    (META_PLAN, META_INPUTS),
    (PART_PLAN, PART_INPUTS),
    (ADJUSTMENT, ADJUSTMENT_INPUTS),
    (IMPLEMENT, IMPLEMENT_INPUTS),
    (SCAFFOLD, SCAFFOLD_INPUTS),
]
IDS = [prompt.name for prompt, _ in PROMPTS]
CALC_CODE = shown_file("src/calc.py", "def add(a, b):\n    return a - b\n")
CALC_TEST = shown_symbol(
    "tests/test_calc.py",
    "def test_add():\n    assert add(1, 2) == 3\n",
    "test_add",
    1,
    2,
    detail="supporting",
)
CALC_CONTEXT = section_texts((CALC_CODE, replace(CALC_TEST, section="tests")))


@pytest.mark.parametrize(("prompt", "inputs"), PROMPTS, ids=IDS)
def test_a_prompt_keeps_the_rules_of_all_prompts(prompt: Prompt[Any, Any], inputs: Any) -> None:
    text = prompt.render(inputs)
    assert text.startswith("# Context\n\n## Task\n")
    assert text.index("## Task") < text.index(f"\n{prompt.heading}\n") < text.index(prompt.example)
    assert "nothing else" in text
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


def test_the_adjustment_prompt_reads_so() -> None:
    assert ADJUSTMENT.render(ADJUSTMENT_INPUTS) == snapshot("""\
# Context

## Task
add() subtracts.

## The part of it under way
Let add() add.

## Changes made so far (the code above already has them)
diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-x
+y

## Steps so far
- s1, done: Change the sign.

# Instructions: Revise the remaining steps of a plan

A plan for the task above is under way. What was done stands above; you get the steps that remain. Say which steps remain now.

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

## Remaining steps
{"description": "Export add.", "files": [], "id": "s2", "needs": [], "symbols": []}

Which steps remain now? Use at most 15. Answer with the JSON object.\
""")
