"""What a run does where no valid plan comes."""

import json
import signal
import threading
from pathlib import Path

import pytest
from testing.runs.solving import MENDED_MONEY, Project, Script, make_project, serving
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.meta_plan import META_PLAN
from clean_room_agent.execute.prompts.part_plan import PART_PLAN

NO_PLAN = {META_PLAN.title: ["No plan."] * 9, PART_PLAN.title: ["No plan."] * 9}


@pytest.fixture
def till(tmp_path: Path) -> Project:
    return make_project(tmp_path)


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


def test_a_plan_that_the_model_did_not_make_says_so(till: Project) -> None:
    with serving(till, Script(till.oracle, NO_PLAN)) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task)
    assert told.code == 0, told.err
    plan = json.loads(told.out)
    assert [entry["path"] for entry in plan["affected_files"]] == ["till/money.py"]
    assert plan["rationale"].splitlines() == [
        f"Not planned by the model: {name}: no valid plan: the answer holds no JSON object; "
        f"one {what} in its place: till/money.py."
        for name, what in (("meta_plan", "part"), ("part_plan:whole", "step"))
    ]


def test_where_nothing_is_in_scope_the_end_says_what_to_name(tmp_path: Path) -> None:
    files = {
        "tests/__init__.py": "",
        "tests/test_sum.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
    }
    bare = make_project(tmp_path, files, {}, task="Sums are wrong")
    told = bare.solve_scripted(NO_PLAN)
    assert (told.code, told.branches) == (1, ())
    status, reason = told.recorded.ending
    assert status == "failed"
    assert "nothing is in scope that one step could change: name the files in the task" in reason
    assert reason in told.out


def test_a_part_that_became_one_step_may_leave_some_of_its_files_as_they_are(till: Project) -> None:
    part = {
        "description": "Split every cent.",
        "files": ["till/money.py", "till/receipt.py"],
        "id": "p1",
        "needs": [],
    }
    parts = json.dumps({"analysis": "x", "parts": [part], "summary": "Split every cent."})
    told = till.solve_scripted({META_PLAN.title: [parts], PART_PLAN.title: ["No plan."] * 9})
    assert told.code == 0, told.err
    assert told.recorded.outcomes == ["applied_and_passed"]
    (asked,) = told.recorded.calls_of("implement")
    assert "Files: modify till/money.py, modify till/receipt.py" in asked.request.prompt
    assert "Change only those of the files that need it." in asked.request.prompt
