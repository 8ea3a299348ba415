import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from testing.forked import Forked
from testing.patience import PATIENCE
from testing.runs.solving import TASK, Project, Script, make_project, serving
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent import proc
from clean_room_agent.app.batch import BatchJob, JobOutcome, read_jobs
from clean_room_agent.app.settings import Overrides
from clean_room_agent.cli.batch import as_object, exit_code, line, summary, verdict
from clean_room_agent.errors import UsageError
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.orchestrator.task import PlanGiven


def job(number: int) -> BatchJob:
    return BatchJob(
        name=f"t{number}",
        line=number,
        repo=Path("/repo"),
        task_id=f"{number:08}-0000",
        task="Mend it\nplease",
        given=PlanGiven(),
        overrides=Overrides(),
        retry=False,
    )


def outcome(number: int, status: str, code: int, how: str = "new", **more: Any) -> JobOutcome:
    return JobOutcome(
        job=job(number), status=status, exit_code=code, how=how, detail={"calls": 2, "tokens": 10}, **more
    )


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((0, 0), 0),
        ((0, 4), 4),
        ((4, 1), 1),
        ((1, 3), 3),
        ((3, 2), 2),
        ((2, 130), 130),
        ((0, 5), 5),
        ((5, 4), 4),
    ],
)
def test_the_most_serious_code_is_the_batch_s(codes: tuple[int, ...], code: int) -> None:
    outcomes = [outcome(number, "x", each) for number, each in enumerate(codes)]
    assert exit_code([each.job for each in outcomes], outcomes) == code


def test_a_batch_with_tasks_left_was_interrupted() -> None:
    assert exit_code([job(1), job(2)], [outcome(1, "complete", 0)]) == 130


def test_the_summary_counts_and_the_verdict_says_what_to_do() -> None:
    outcomes = [outcome(1, "complete", 0, "known"), outcome(2, "needs_human", 4)]
    told = summary([job(1), job(2), job(3)], outcomes, 4)
    assert told["statuses"] == {"complete": 1, "needs_human": 1}
    assert (told["not_begun"], told["known"], told["calls"]) == (1, 1, 4)
    words = verdict(told)
    assert "3 tasks: 1 complete, 1 needs human, 1 not started; 4 calls, 20 tokens" in words
    assert "--retry" in words


def test_errors_are_counted_as_words_are() -> None:
    outcomes = [outcome(number, "error", 2) for number in (1, 2)]
    assert "2 tasks: 2 errors" in verdict(summary([job(1), job(2)], outcomes, 2))


def test_of_unproven_tasks_the_verdict_says_what_would_show_them() -> None:
    outcomes = [outcome(1, "complete", 0), outcome(2, "unproven", 5)]
    words = verdict(summary([job(1), job(2)], outcomes, 5))
    assert "2 tasks: 1 complete, 1 unproven" in words
    assert "check" in words
    assert "--retry" not in words


def test_an_outcome_in_a_line_and_as_an_object() -> None:
    broken = outcome(1, "error", 3, error="no server\nat all", hint="start it")
    assert line(broken) == "t1: error: no server"
    assert as_object(broken)["hint"] == "start it"
    assert "error" not in as_object(outcome(2, "complete", 0))


def write(project: Project, *lines: object) -> Path:
    path = project.top.parent / "tasks.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def batch_here(project: Project, path: Path, *flags: str) -> tuple[int, str, str]:
    """`cra batch` in this process; those of its tasks are forked from it, while a batch that is stopped spawns them."""
    forking = multiprocessing.get_context("fork")
    with patch.object(multiprocessing, "get_context", lambda _: forking):
        return project.run_here("batch", str(path), "--json", *flags)


def read(out: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The tasks' lines by id, and the summary."""
    *lines, last = map(json.loads, out.splitlines())
    return {line["id"]: line for line in lines}, last["summary"]


def test_a_task_that_fails_is_begun_anew_beside_another_and_both_are_known_at_the_next_start(
    till: Project,
) -> None:
    words = till.top.parent / "issue.md"
    words.write_text(f"{TASK}\n")
    path = write(till, {"task": TASK, "id": "first"})
    till.configure("http://127.0.0.1:9")
    code, out, _ = batch_here(till, path)
    tasks, summary = read(out)
    assert code == summary["exit_code"] == 3
    assert tasks["first"]["status"] == "error"
    assert tasks["first"]["hint"]
    path = write(till, {"task": TASK, "id": "first"}, "", {"issue": "issue.md", "repo": "till"})
    with serving(till) as server:
        till.configure(server.base_url)
        code, out, err = batch_here(till, path, "--jobs", "2")
        tasks, summary = read(out)
        assert code == 0, f"{out}\n{err}"  # whole, where a tuple would be abbreviated
        for line in (
            "first:   … plan\n",
            "first:   · baseline tests: 3 passed, 1 failed",
            "3:   ✓ step 1/1 p1/s1",
        ):
            assert line in err
        assert {name: (task["status"], task["how"]) for name, task in tasks.items()} == {
            "first": ("complete", "new"),
            "3": ("complete", "new"),
        }
        assert tasks["first"]["branch"] != tasks["3"]["branch"]
        assert tasks["first"]["tests"]["after"]["passed"] == 4
        assert (summary["tasks"], summary["statuses"], summary["exit_code"]) == (2, {"complete": 2}, 0)
        asked = len(server.calls)
        code, out, _ = batch_here(till, path)
        again, summary = read(out)
        assert code == 0
        assert len(server.calls) == asked, "nothing is asked again"
    assert {task["how"] for task in again.values()} == {"known"}
    assert {name: task["task_id"] for name, task in again.items()} == {
        name: task["task_id"] for name, task in tasks.items()
    }
    assert summary["known"] == 2


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A configured project, which nobody changes."""
    project = make_project(tmp_path_factory.mktemp("ready"))
    project.configure("http://127.0.0.1:9")
    return project


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ({"task": "x", "tsak": "y"}, "unknown key 'tsak'"),
        ({"id": "a"}, "give the task either"),
        ({"task": "x", "issue": "y"}, "give the task either"),
        ({"task": "x", "id": "good"}, "is already used in line 1"),
        ({"task": "x", "id": "a b"}, "id:"),
        ({"task": 3}, "task:"),
        ({"task": "  "}, "the task is empty"),
        ({"task": "x", "repo": "nowhere"}, "nowhere"),
        ({"issue": "none.md"}, "none.md"),
        ({"task": "x", "plan": "none.json"}, "none.json"),
    ],
)
def test_a_bad_line_is_named_before_anything_starts(ready: Project, line: object, said: str) -> None:
    path = write(ready, {"task": TASK, "id": "good"}, line)
    with pytest.raises(UsageError, match="nothing was started") as refused:
        read_jobs(path, repo=ready.top, batch="tasks", overrides=Overrides(), retry=False)
    assert "line 2: " in refused.value.message
    assert "line 1: " not in refused.value.message
    assert said in refused.value.message


def test_a_batch_with_a_bad_line_ends_with_2_and_records_nothing(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    code, out, err = till.run_here("batch", str(write(till, {"task": TASK}, "{")))
    assert (code, out) == (2, "")
    assert "line 2: not JSON" in err
    assert not (till.top / ".clean_room" / "raw.sqlite").exists()


def test_an_empty_file_is_refused(till: Project) -> None:
    code, _, err = till.run_here("batch", str(write(till, "", "")))
    assert code == 2
    assert "contains no task" in err


class Stopping(Script):
    """Stops the batch when the first edits are asked for, and answers only when that has ended."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.oracle)
        self.batch: Forked | None = None
        self.number: signal.Signals | None = None

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.title == IMPLEMENT.title and self.batch is not None and self.number is not None:
            self.batch.send_signal(self.number)
            self.number = None
            with contextlib.suppress(TimeoutError):
                self.batch.wait()
            time.sleep(0.5)  # what it started hears of its end
        return super().__call__(call)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_stopped_at_any_time_the_next_start_goes_on(till: Project, number: signal.Signals, code: int) -> None:
    tasks = ["one", "two"] if code == 130 else ["one"]
    path = write(till, *({"task": TASK, "id": name} for name in tasks))
    script = Stopping(till)
    with serving(till, script) as server:
        till.configure(server.base_url)
        script.number = number
        with Forked(till, "batch", str(path), "--json") as batch:
            script.batch = batch
            out, err = batch.communicate()
        assert batch.returncode == code, err
        if code == 130:
            stopped, summary = read(out)
            assert stopped["one"]["status"] == "interrupted"
            assert summary["not_begun"] == 1
        deadline = time.monotonic() + PATIENCE
        while till.run_here("runs", "--json")[1].count('"running"') and time.monotonic() < deadline:
            time.sleep(0.2)
        done, out_again, err_again = batch_here(till, path)
    assert done == 0, err_again
    ended, _ = read(out_again)
    assert {name: (task["status"], task["how"]) for name, task in ended.items()} == {
        name: ("complete", "resumed" if name == "one" else "new") for name in tasks
    }


def test_ray_is_asked_for_by_its_extra(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    path = write(till, {"task": TASK})
    if (
        proc.run(
            (sys.executable, "-c", "import ray"),
            cwd=till.top,
            env=dict(os.environ),
            timeout=PATIENCE,
            check=False,
        ).returncode
        == 0
    ):
        pytest.skip("ray is installed")
    code, _, err = till.run_here("batch", str(path), "--engine", "ray")
    assert code == 2
    assert "clean-room-agent[cluster]" in err
