import hashlib
from typing import Any

import pytest
from testing.prompt_inputs import INPUTS

from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    META_PLAN,
    PART_PLAN,
)
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.prompt import Prompt

RENDERED = {
    "goal_test": "67d7147713ab",
    "meta_plan": "2835f2ab9a9f",
    "change_points": "42e2fc4cfc1b",
    "same_part": "b1e6c2b623bf",
    "part_dependency": "c76b7c065a9a",
    "part_plan": "fd658f77f2a7",
    "symbol_targets": "559b37c987e6",
    "step_design": "2e7db6814e07",
    "step_dependency": "25b4fc6c0da4",
    "implement": "d0af1805ddd3",
    "function": "32827c56d296",
    "lines": "5bdd71cc4b2d",
    "doctor": "81e718e836ab",
    "adjustment": "35cf6b3f716c",
    "adjustment_step_viability": "1e3e2c4bc3b8",
    "adjustment_root_cause": "f954a7258ec1",
    "adjustment_new_step": "8d69338dc9b7",
    "adjustment_finalize": "ecd7c8660b2e",
    "goal_check": "7aa2a0beb734",
}
"""The beginning of the SHA-256 of each prompt about `testing/prompt_inputs.py`."""


@pytest.mark.parametrize(
    "prompt", [META_PLAN, PART_PLAN, ADJUSTMENT, IMPLEMENT], ids=lambda prompt: prompt.name
)
def test_a_prompt_keeps_the_rules_of_all_prompts(prompt: Prompt[Any, Any]) -> None:
    text = prompt.render(INPUTS[prompt.name])
    assert text.startswith("# Context\n\n## Task\n")
    assert text.index("## Task") < text.index(f"\n{prompt.heading}\n") < text.index(prompt.example)
    assert "nothing else" in text
    assert not isinstance(prompt.parse(prompt.example), ParseFault)


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
        (IMPLEMENT, "def f(): pass", "empty"),
        (IMPLEMENT, IMPLEMENT.example.partition("</create>")[0], "truncated"),
        (IMPLEMENT, "<edit>\n<search>\nx\n</search>\n<replacement>\ny\n</replacement>\n</edit>", "format"),
    ],
)
def test_a_broken_answer_is_a_typed_failure(prompt: Prompt[Any, Any], text: str, kind: str) -> None:
    bad = prompt.parse(text)
    assert isinstance(bad, ParseFault)
    assert bad.kind == kind


def test_small_slips_in_a_plan_are_tolerated() -> None:
    text = '{"analysis": "a", "steps": [{"id": 1, "description": "d", "files": ["./a.py", {"path": "b.py", "role": "New"}]}], "summary": "s"}'
    answer = PART_PLAN.parse(text)
    assert not isinstance(answer, ParseFault)
    assert answer.steps[0].id == "1"
    assert [(file.path, file.role) for file in answer.steps[0].files] == [
        ("a.py", "modify"),
        ("b.py", "create"),
    ]


def test_prompts_are_those_that_recordings_and_figures_were_made_with() -> None:
    """Whoever means to change a prompt changes its line here, and records the demo anew."""
    digests = {
        name: hashlib.sha256(BY_NAME[name].render(INPUTS[name]).encode()).hexdigest()[:12]
        for name in RENDERED
    }
    assert digests == RENDERED
