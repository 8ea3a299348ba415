"""Plans that do not work out, in whole runs in memory: what becomes of the part."""

import json
import re

from testing.runs.memory_till import MemoryTill, MemoryTold
from testing.runs.solving import MENDED_MONEY, Script
from testing.runs.spoiled_answers import cut
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN

NO_PLAN = {META_PLAN.title: ["No plan."] * 9, PART_PLAN.title: ["No plan."] * 9}
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


def planned_again(told: MemoryTold) -> list[str]:
    """The passes in which part p1 was planned again, once for each call."""
    return [
        call.site.pass_id.partition(":")[2] for call in told.recorded.calls if "replan" in call.site.pass_id
    ]


def test_a_part_whose_plan_names_the_wrong_file_is_planned_again_from_what_failed(till: MemoryTill) -> None:
    told = till.solve_scripted({PART_PLAN.title: [WRONG, WRONG], IMPLEMENT.title: ["I cannot."] * 6})
    assert told.ending == ("complete", "")
    second = told.recorded.calls_of("part_plan")[-1]
    assert second.site.pass_id.endswith(":part_plan:p1:replan_1")
    assert "Mend the receipt." in second.request.prompt
    assert "step s1 failed: no_edits" in second.request.prompt
    assert told.recorded.calls_of("implement")[-1].site.pass_id.endswith(":impl:p1:s1-2")


def test_who_could_not_plan_a_part_is_asked_again_about_what_its_tests_said(till: MemoryTill) -> None:
    def spoil(_: ChatCall, right: str) -> str:
        before, word, after = right.rpartition("return")
        return f"{before}{word} 1 or{after}"

    told = till.solve_scripted({PART_PLAN.title: ["No plan."] * 4, IMPLEMENT.title: [spoil] * 3})
    assert told.ending == ("complete", "")
    assert "part_plan:p1:replan_1" in planned_again(told)


def test_a_step_whose_answers_are_too_long_is_planned_again_in_shorter_ones(till: MemoryTill) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [cut, *["I cannot."] * 4]})
    assert told.ending == ("complete", "")
    first, second = told.recorded.calls_of("part_plan")
    assert "step s1 failed: no_edits" in second.request.prompt
    assert "(an answer was cut off: its edits are too long for one step)" in second.request.prompt
    assert 0 < lines_allowed(second.request.prompt) < lines_allowed(first.request.prompt)


def lines_allowed(prompt: str) -> int:
    found = re.search(r"The edits of one step can have at most (\d+) lines", prompt)
    assert found is not None
    return int(found[1])


def test_a_part_that_names_the_wrong_file_is_planned_again_with_what_the_task_is_about(
    till: MemoryTill,
) -> None:
    def elsewhere(_: ChatCall, right: str) -> str:
        plan = json.loads(right)
        return json.dumps({**plan, "parts": [{**plan["parts"][0], "files": ["till/receipt.py"]}]})

    told = till.solve_scripted(
        {META_PLAN.title: [elsewhere], PART_PLAN.title: [WRONG], IMPLEMENT.title: ["I cannot."] * 6}
    )
    second = told.recorded.calls_of("part_plan")[-1]
    assert ":replan_1" in second.site.pass_id
    assert "def receipt(" in second.request.prompt
    assert second.request.prompt.count("def split(") == 1
    assert told.ending == ("complete", "")
    assert till.replay().ending == ("complete", "")


def press(_: ChatCall, __: str) -> str:
    """Ctrl-C while the model writes."""
    raise KeyboardInterrupt


def test_a_run_without_any_plan_goes_on_after_an_interruption_and_replays(till: MemoryTill) -> None:
    script = Script(till.oracle, {**NO_PLAN, IMPLEMENT.title: [press]})
    broken_off = till.solve(script)
    assert broken_off.ending[0] == "interrupted"
    asked = len(broken_off.recorded.calls_of("meta_plan")) + len(broken_off.recorded.calls_of("part_plan"))
    told = till.resume(script)
    assert told.ending == ("complete", "")
    again = told.recorded
    assert len(again.calls_of("meta_plan")) + len(again.calls_of("part_plan")) == asked
    assert again.actions == ["fallback", "fallback"]
    assert json.loads(again.recoveries[0].state) == {"faults": ["the answer holds no JSON object"]}
    assert [entry.task_id.partition(":")[2] for entry in again.recoveries] == ["meta_plan", "part_plan:whole"]
    assert told.files["till/money.py"] == MENDED_MONEY
    replayed = till.replay()
    assert (replayed.ending, replayed.files) == (told.ending, told.files)


def test_a_part_whose_plan_does_not_fit_fails_and_the_others_are_done(till: MemoryTill) -> None:
    def parts(_: ChatCall, right: str) -> str:
        plan = json.loads(right)
        (first,) = plan["parts"]
        receipt = {**first, "id": "receipt", "description": "Say sum.", "files": ["till/receipt.py"]}
        return json.dumps({**plan, "parts": [receipt, first]})

    too_long = Answer(status=400, error="the input length exceeds the context length")
    told = till.solve_scripted({META_PLAN.title: [parts], PART_PLAN.title: [too_long]})
    status, reason = told.ending
    assert status == "partial"
    assert reason.startswith("1 of 2 parts are not done: part receipt: ")
    assert told.files["till/money.py"] == MENDED_MONEY
    again = till.resume(Script(till.oracle))
    plans = [call.site.pass_id.rpartition(":")[2] for call in again.recorded.calls_of("part_plan")]
    # Once too long; then two drafts, for the stand-in's plan names another file than the part.
    assert plans.count("receipt") == 3, plans


def test_a_task_is_done_without_asking_for_a_plan_and_replayed(till: MemoryTill) -> None:
    told = till.solve_scripted(orchestrator={"planning": "none"}, judgments={"route": "rank"})
    assert told.ending == ("complete", "")
    asked = {call.site.call_type for call in told.recorded.calls}
    assert {"meta_plan", "part_plan"}.isdisjoint(asked)
    assert not any("judgment" in name or "batch" in name for name in asked)
    assert "no model is asked for a plan" in till.shown()
    assert till.replay().ending == told.ending
