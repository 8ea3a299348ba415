from pathlib import Path

import pytest
from testing.runs.memory_run import TASK_ID, MemoryProject, step

from clean_room_agent.artifacts.context import ContextRequest, RefinementRequest
from clean_room_agent.db.raw.runs import get_orchestrator_run
from clean_room_agent.llm.router import Window
from clean_room_agent.orchestrator.run import StepDone, StepFailed, fits
from clean_room_agent.orchestrator.task import Hint

REQUEST = ContextRequest(
    pass_id=f"{TASK_ID}:impl:p1:s1", mode="implement", role="coding", task="x", files=("a.py",)
)
LACKING = RefinementRequest(reason="r", missing_files=("b.py",))


def test_a_pass_has_one_context_however_often_it_asks(project: MemoryProject) -> None:
    first = project.open(lambda _: "")
    package = first.run.context.retrieve(REQUEST)
    assert [item.path for item in package.items] == ["a.py"]
    again = project.open(lambda _: "", resumed=True)
    assert again.run.context.retrieve(REQUEST) == package
    assert again.index.asked == []


def test_another_request_of_the_same_pass_is_looked_up(project: MemoryProject) -> None:
    memory = project.open(lambda _: "")
    memory.run.context.retrieve(REQUEST)
    refined = memory.run.context.refine(LACKING, REQUEST)
    assert [item.path for item in refined.items] == ["a.py", "b.py"]
    assert len(memory.index.asked) == 2


def test_a_context_shows_the_newest_accepted_commit(project: MemoryProject) -> None:
    memory = project.open(lambda _: "")
    commits = memory.run.commits
    commits.head = project.history.add({"a.py": "a = 1\n", "b.py": "b = 0\n"})
    package = memory.run.context.retrieve(REQUEST)
    assert [item.text for item in package.items] == ["a = 1\n"]
    assert (memory.index.described(), memory.runner.tree.clean_at) == (commits.head, commits.head)


def test_a_context_fits_what_the_reserves_leave(project: MemoryProject) -> None:
    package = project.open(lambda _: "").run.context.retrieve(REQUEST)
    used = package.budget.used_tokens
    window = Window(context=used + 100, reserved=40)
    assert fits(package, window, 60)
    assert not fits(package, window, 61)


def test_ctrl_c_is_heard_while_the_index_is_waited_for(
    project: MemoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = project.open(lambda _: "")
    memory.index.refresh(Path(), (), "")
    monkeypatch.setattr(memory.index, "described", memory.run.journal.interrupts.ask)
    with pytest.raises(KeyboardInterrupt):
        memory.run.context.follow_head()
    assert memory.index._described == "", "it was interrupted before anything was done with the index"


def test_a_part_is_planned_again_as_often_as_its_limit_and_the_runs_allow(
    project: MemoryProject,
) -> None:
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
