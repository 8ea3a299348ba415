from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_run import TASK_ID, MemoryProject, memory_project, step

from clean_room_agent.db.raw.runs import get_orchestrator_run
from clean_room_agent.orchestrator.run import StepDone, StepFailed
from clean_room_agent.orchestrator.task import Hint


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, {"a.py": ""}, lambda _: {}) as made:
        yield made


def test_a_part_is_planned_again_as_often_as_its_limit_and_the_runs_allow(project: MemoryProject) -> None:
    run = project.open(lambda _: "", recovery={"replans_per_part": 2, "replans_per_run": 3}).run
    assert [run.replans_left("p1", number) for number in (1, 2, 3)] == [2, 1, 0]
    run.progress.plan.replans = 2
    assert run.replans_left("p1", 1) == 1


def test_each_hint_allows_one_more_plan(project: MemoryProject) -> None:
    run = project.open(lambda _: "", hints=(Hint(text="use divmod"),), recovery={"replans_per_part": 0}).run
    assert run.replans_left("p1", 1) == 1


def test_counts_are_on_record_unless_a_resumed_run_is_behind(project: MemoryProject) -> None:
    run = project.open(lambda _: "").run
    run.progress.plan.total_steps = 4
    run.progress.plan.done.append(StepDone(part_id="p1", step=step("s1", "a.py"), commit="c0ffee"))
    run.report_progress()
    again = project.open(lambda _: "", resumed=True).run
    again.report_progress()
    row = project.record.write(get_orchestrator_run, TASK_ID)
    assert row is not None
    assert (row.total_steps, row.steps_completed) == (4, 1)


def test_a_planner_is_told_when_an_answer_was_too_long() -> None:
    failed = StepFailed(part_id="p1", step=step("s1", "a.py"), why="truncated", cut_off=True)
    assert failed.fault == (
        "step s1 failed: truncated (an answer was cut off: its edits are too long for one step)"
    )
