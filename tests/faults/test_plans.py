"""Plans that do not work out: what becomes of the part."""

import json
import re

from tests.fakes.ollama_script import Answer, ChatCall
from tests.fakes.solving import Project

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.part_plan import PART_PLAN

WRONG = json.dumps(
    {
        "analysis": "the receipt is wrong",
        "steps": [
            {
                "description": "Mend the receipt.",
                "files": [{"path": "till/receipt.py", "role": "modify"}],
                "id": "s1",
                "needs": [],
                "symbols": [],
            }
        ],
        "summary": "mend",
    }
)


def test_a_part_whose_plan_names_the_wrong_file_is_planned_again_from_what_failed(till: Project) -> None:
    told = till.solve_scripted({PART_PLAN.title: [WRONG], IMPLEMENT.title: ["I cannot."] * 6})
    assert (told.code, told.traces) == (0, {})
    second = told.recorded.calls_of("part_plan")[-1]
    assert second.task_id.endswith(":part_plan:p1:replan_1")
    assert "Mend the receipt." in second.prompt
    assert "step s1 failed: no_edits" in second.prompt
    assert told.recorded.calls_of("implement")[-1].task_id.endswith(":impl:p1:s1-2")


def test_a_step_whose_answers_are_too_long_is_planned_again_in_shorter_ones(till: Project) -> None:
    def cut(_: ChatCall, right: str) -> Answer:
        return Answer(text=right[: len(right) // 2], done_reason="length")

    told = till.solve_scripted({IMPLEMENT.title: [cut, *["I cannot."] * 4]})
    assert (told.code, told.traces) == (0, {})
    first, second = told.recorded.calls_of("part_plan")
    assert "step s1 failed: no_edits" in second.prompt
    assert "(an answer was cut off: its edits are too long for one step)" in second.prompt
    assert 0 < lines_allowed(second.prompt) < lines_allowed(first.prompt)


def lines_allowed(prompt: str) -> int:
    found = re.search(r"The edits of one step can have at most (\d+) lines", prompt)
    assert found is not None
    return int(found[1])


def test_a_part_is_planned_again_once_and_no_more(till: Project) -> None:
    plans: list[str] = []

    def plan_wrongly(call: ChatCall, right: str) -> str:
        plans.append(right)
        return WRONG

    def write_nothing(call: ChatCall, right: str) -> str:
        return f"I cannot do it, and this is attempt {len(call.prompt)}."

    told = till.solve_scripted({PART_PLAN.title: [plan_wrongly] * 9, IMPLEMENT.title: [write_nothing] * 30})
    assert (told.code, told.traces, len(plans)) == (1, {}, 2)
    assert told.recorded.ending[1].startswith("s1-2: no_edits")
