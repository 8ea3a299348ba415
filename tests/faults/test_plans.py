"""Plans that do not work out: what becomes of the part."""

import json
import re
import signal
import threading
from dataclasses import replace
from typing import Any

import pytest
from testing.framed_items import FramedItem, framed_items
from testing.runs.solving import MENDED_MONEY, Project, Script, Told, serving
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.meta_plan import META_PLAN
from clean_room_agent.execute.prompts.part_plan import PART_PLAN

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


def test_a_part_whose_plan_names_the_wrong_file_is_planned_again_from_what_failed(till: Project) -> None:
    told = till.solve_scripted({PART_PLAN.title: [WRONG, WRONG], IMPLEMENT.title: ["I cannot."] * 6})
    assert (told.code, told.traces) == (0, {})
    second = told.recorded.calls_of("part_plan")[-1]
    assert second.site.pass_id.endswith(":part_plan:p1:replan_1")
    assert "Mend the receipt." in second.request.prompt
    assert "step s1 failed: no_edits" in second.request.prompt
    assert told.recorded.calls_of("implement")[-1].site.pass_id.endswith(":impl:p1:s1-2")


def test_who_could_not_plan_a_part_is_not_asked_again_where_no_test_says_anything_new(till: Project) -> None:
    told = till.solve_scripted({PART_PLAN.title: ["No plan."] * 9, IMPLEMENT.title: ["I cannot."] * 6})
    assert (told.code, told.traces) == (1, {})
    assert not [call for call in told.recorded.calls if "replan" in call.site.pass_id]
    assert [event for event in told.recorded.events if event.kind == "replan"] == []


def test_who_could_not_plan_a_part_is_asked_again_about_what_its_tests_said(till: Project) -> None:
    def spoil(_: ChatCall, right: str) -> str:
        before, word, after = right.rpartition("return")
        return f"{before}{word} 1 or{after}"

    told = till.solve_scripted({PART_PLAN.title: ["No plan."] * 4, IMPLEMENT.title: [spoil] * 3})
    assert (told.code, told.traces) == (0, {}), told.err
    assert [call for call in told.recorded.calls if call.site.pass_id.endswith(":part_plan:p1:replan_1")]


def test_a_step_whose_answers_are_too_long_is_planned_again_in_shorter_ones(till: Project) -> None:
    def cut(_: ChatCall, right: str) -> Answer:
        return Answer(text=right[: len(right) // 2], done_reason="length")

    told = till.solve_scripted({IMPLEMENT.title: [cut, *["I cannot."] * 4]})
    assert (told.code, told.traces) == (0, {})
    first, second = told.recorded.calls_of("part_plan")
    assert "step s1 failed: no_edits" in second.request.prompt
    assert "(an answer was cut off: its edits are too long for one step)" in second.request.prompt
    assert 0 < lines_allowed(second.request.prompt) < lines_allowed(first.request.prompt)


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
    # Each time two drafts, for the plan names another file than its part.
    assert (told.code, told.traces, len(plans)) == (1, {}, 4)
    assert told.recorded.ending[1].startswith("s1-2: no_edits")


def part_plan_calls(told: Told) -> list[str]:
    """The prompts asked under the first plan of part p1."""
    return [
        call.site.call_type for call in told.recorded.calls if call.site.pass_id.endswith(":part_plan:p1")
    ]


def code_of(prompt: str) -> list[FramedItem]:
    return [replace(item, at=0) for item in framed_items(prompt)]


def test_the_only_part_is_planned_with_the_context_of_the_meta_plan(till: Project) -> None:
    told = till.solve_scripted()
    assert (told.code, told.traces) == (0, {}), told.err
    assert part_plan_calls(told) == ["part_plan"]
    (meta,), (part,) = told.recorded.calls_of("meta_plan"), told.recorded.calls_of("part_plan")
    assert code_of(part.request.prompt) == code_of(meta.request.prompt) != []
    used = [(row.task_id, row.detail) for row in told.recorded.events if row.kind == "context_of"]
    assert used == [(part.site.pass_id, "meta_plan")]
    shown = till.cra("show", f"{meta.site.pass_id[:8]}/part_plan:p1").out
    assert "what meta_plan was shown" in shown, shown
    line = part.request.prompt.split("\n").index("def split(cents, people):") + 1
    why = till.cra("show", meta.site.pass_id[:8], "--why", f"call:{part.id}:{line}")
    assert re.search(r"it is there because of:\n +in +scope +till/money\.py", why.out), why.out


@pytest.mark.parametrize(
    "change",
    [
        {"files": ["till/money.py", "till/receipt.py", "tests/__init__.py"]},
        {"more": {"id": "p2", "description": "Say sum.", "files": ["till/receipt.py"], "needs": ["p1"]}},
    ],
    ids=["a file that is not shown", "two parts"],
)
def test_a_part_that_needs_more_has_a_context_of_its_own(till: Project, change: dict[str, Any]) -> None:
    def changed(_: ChatCall, right: str) -> str:
        plan = json.loads(right)
        (part,) = plan["parts"]
        more = [change["more"]] if "more" in change else []
        return json.dumps({**plan, "parts": [{**part, "files": change.get("files", part["files"])}, *more]})

    told = till.solve_scripted({META_PLAN.title: [changed]})
    assert part_plan_calls(told)
    assert not [row for row in told.recorded.events if row.kind == "context_of"]


def test_a_part_that_is_planned_again_has_a_context_of_its_own(till: Project) -> None:
    told = till.solve_scripted({IMPLEMENT.title: ["No."] * 6})
    assert (told.code, told.traces) == (0, {}), told.err
    (used,) = [row.task_id for row in told.recorded.events if row.kind == "context_of"]
    assert used.endswith(":part_plan:p1")
    assert [call for call in told.recorded.calls if call.site.pass_id.endswith(":part_plan:p1:replan_1")]


def press(_: ChatCall, right: str) -> str:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return right


def test_a_run_without_any_plan_goes_on_after_an_interruption_and_replays(till: Project) -> None:
    script = Script(till.oracle, {**NO_PLAN, IMPLEMENT.title: [press]})
    with serving(till, script) as server:
        broken_off = till.solve(server)
        assert broken_off.code == 130, broken_off.err
        assert broken_off.recorded.run is not None
        run = broken_off.recorded.run.task_id
        asked = len(broken_off.recorded.calls_of("meta_plan")) + len(
            broken_off.recorded.calls_of("part_plan")
        )
        resumed = till.cra("solve", "--resume", run)
    assert resumed.code == 0, resumed.err
    again = resumed.recorded
    assert len(again.calls_of("meta_plan")) + len(again.calls_of("part_plan")) == asked
    assert again.actions == ["fallback", "fallback"]
    assert json.loads(again.recoveries[0].state) == {"faults": ["the answer holds no JSON object"]}
    assert [entry.task_id.partition(":")[2] for entry in again.recoveries] == ["meta_plan", "part_plan:whole"]
    assert resumed.out.count("in its place: till/money.py") == 2
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    replayed = till.cra("replay", run)
    assert (replayed.code, replayed.out[:9]) == (0, "the same:"), replayed.err


def test_an_answer_that_is_cut_off_again_and_again_is_a_refusal_like_any_other(till: Project) -> None:
    def cut(_: ChatCall, right: str) -> Answer:
        return Answer(text=right[: len(right) // 2], done_reason="length")

    told = till.solve_scripted({META_PLAN.title: [cut] * 9})
    assert told.code == 0, told.err
    assert told.recorded.actions == ["fallback"]
