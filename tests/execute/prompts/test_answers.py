from typing import Any

import pytest
from msgspec.structs import replace
from tests.execute.prompts.step_context import CODE, STEP_CONTEXT, TEST

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.prompts.implement import IMPLEMENT, FailedAttempt, ImplementInputs
from clean_room_agent.execute.prompts.plans import (
    ADJUSTMENT,
    META_PLAN,
    PART_PLAN,
    AdjustmentInputs,
    MetaPlanInputs,
    PartPlanInputs,
)
from clean_room_agent.execute.prompts.scaffold import SCAFFOLD, ScaffoldInputs
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
