"""Contexts of plans as the real retrieval makes them, and a run without any plan that is interrupted. What becomes of a part whose
plan does not work out is said in tests/orchestrator/test_planned_runs.py.
"""

import json
import re
import signal
import threading

from msgspec.structs import replace
from testing.framed_items import FramedItem, framed_items
from testing.runs.solving import MENDED_MONEY, Project, Script, Told, serving
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN

NO_PLAN = {META_PLAN.title: ["No plan."] * 9, PART_PLAN.title: ["No plan."] * 9}


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


def test_a_part_about_a_file_that_is_not_shown_has_a_context_of_its_own(till: Project) -> None:
    def changed(_: ChatCall, right: str) -> str:
        plan = json.loads(right)
        (part,) = plan["parts"]
        files = ["till/money.py", "till/receipt.py", "tests/__init__.py"]
        return json.dumps({**plan, "parts": [{**part, "files": files}]})

    told = till.solve_scripted({META_PLAN.title: [changed]})
    assert part_plan_calls(told)
    assert not [row for row in told.recorded.events if row.kind == "context_of"]


def press(_: ChatCall, right: str) -> str:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return right


def test_a_run_without_any_plan_goes_on_after_an_interruption_and_says_what_was_done_instead(
    till: Project,
) -> None:
    script = Script(till.oracle, {**NO_PLAN, IMPLEMENT.title: [press]})
    with serving(till, script) as server:
        broken_off = till.solve(server)
        assert broken_off.code == 130, broken_off.err
        assert broken_off.recorded.run is not None
        resumed = till.cra("solve", "--resume", broken_off.recorded.run.task_id)
    assert resumed.code == 0, resumed.err
    assert resumed.out.count("in its place: till/money.py") == 2
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
