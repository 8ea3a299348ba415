import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.client.model_client import NOW
from testing.runs.memory_run import TASK_ID, MemoryProject, memory_project, part_plan, step

from clean_room_agent.app.resumption import (
    changes_since,
    given_to,
    recorded_config,
    resumable,
    with_earlier_flags,
)
from clean_room_agent.app.settings import Overrides, flags_text
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.db.raw.runs import EventRow, append_event
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.orchestrator.task import Hint, PlanGiven


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, {}, lambda _: {}) as made:
        made.open(lambda _: "")
        yield made


def note(project: MemoryProject, kind: EventKind, detail: str, owner: str = TASK_ID) -> None:
    project.record.write(append_event, EventRow(task_id=owner, kind=kind, detail=detail, timestamp=NOW))


def test_a_run_that_has_not_ended_can_be_resumed(project: MemoryProject) -> None:
    assert project.record.write(resumable, TASK_ID).task_id == TASK_ID


def test_a_complete_run_cannot_be_resumed(project: MemoryProject) -> None:
    project.open(lambda _: "").run.recorder.ended(RunStatus.COMPLETE)
    with pytest.raises(UsageError, match="is complete"):
        project.record.write(resumable, TASK_ID)


def test_an_unproven_run_has_ended(project: MemoryProject) -> None:
    project.open(lambda _: "").run.recorder.ended(RunStatus.UNPROVEN, reason="nothing shows it")
    with pytest.raises(UsageError, match="is unproven: there is nothing to resume") as caught:
        project.record.write(resumable, TASK_ID)
    assert "--check" in caught.value.hint


@pytest.mark.parametrize("kind", [EventKind.DISCARDED, EventKind.PRUNED])
def test_a_run_whose_data_is_gone_cannot_be_resumed(project: MemoryProject, kind: EventKind) -> None:
    note(project, kind, "")
    with pytest.raises(UsageError, match=kind.value):
        project.record.write(resumable, TASK_ID)


def test_no_run_at_all_cannot_be_resumed(project: MemoryProject) -> None:
    with pytest.raises(UsageError, match="not a run"):
        project.record.write(resumable, "f" * 36)


@pytest.mark.parametrize(
    "given",
    [
        PlanGiven(single=part_plan(step("s1", "a.py"))),
        PlanGiven(meta_plan=MetaPlan(task_summary="x", parts=())),
        PlanGiven(),
        PlanGiven(evidence=GivenEvidence(checks=("assert f() == 'ü'",), tests=("t.py::a",), files=("a.py",))),
        PlanGiven(single=part_plan(step("s1", "a.py")), evidence=GivenEvidence(files=("a.py",))),
    ],
)
def test_a_run_that_was_cut_before_its_worktree_has_the_plan_that_it_was_given(
    tmp_path: Path, given: PlanGiven
) -> None:
    with memory_project(tmp_path, {}, lambda _: {}) as made:
        made.open(lambda _: "", given=given)
        assert made.record.write(given_to, TASK_ID) == given


def test_what_the_user_decided_is_read_from_the_record(project: MemoryProject) -> None:
    plan = part_plan(step("s1", "a.py"))
    note(project, EventKind.PLAN_GIVEN, plan.model_dump_json())
    note(project, EventKind.HINT, "use divmod")
    note(project, EventKind.HINT, "mind the rest")
    note(project, EventKind.HINT_SHOWN, "use divmod", f"{TASK_ID}:impl:p1:s1")
    given = project.record.write(given_to, TASK_ID)
    assert given.single == plan
    assert given.meta_plan is None
    assert given.hints == (Hint(text="use divmod", since="impl:p1:s1"), Hint(text="mind the rest"))


def test_flags_of_now_stand_over_those_of_before(project: MemoryProject) -> None:
    note(project, EventKind.FLAGS, flags_text(Overrides(max_attempts=2, samples=3)))
    both = project.record.write(with_earlier_flags, TASK_ID, Overrides(max_attempts=5))
    assert both == Overrides(max_attempts=5, samples=3)


def test_a_path_among_earlier_flags_means_the_same_file_in_another_folder(
    project: MemoryProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    note(project, EventKind.FLAGS, flags_text(Overrides(budget_config=Path("b.toml"))))
    assert project.record.write(with_earlier_flags, TASK_ID, Overrides()).budget_config == tmp_path / "b.toml"


def test_without_flags_nothing_is_noted() -> None:
    assert flags_text(Overrides()) == ""


def test_a_resumed_run_had_the_configuration_of_the_last_time(project: MemoryProject) -> None:
    run = project.record.write(resumable, TASK_ID)
    assert project.record.write(recorded_config, run) == {}
    note(project, EventKind.RESUMED_WITH, json.dumps({"config": {"solve": {"max_attempts": 9}}}))
    assert project.record.write(recorded_config, run) == {"solve": {"max_attempts": 9}}


def test_what_is_configured_differently_is_told_in_words() -> None:
    then = {"solve": {"max_attempts": 3}, "testing": {"test_command": "pytest"}}
    now = {"solve": {"max_attempts": 5}, "testing": {"test_command": "pytest"}}
    assert changes_since(then, now, source="config.toml") == ("[solve] max_attempts: was 3, is 5",)


def test_a_default_that_is_written_out_is_no_difference() -> None:
    written = {"worktree": {"link": [".venv", "venv", "node_modules"]}, "edit": {}}
    assert changes_since({"solve": {"samples": 1}}, written, source="config.toml") == ()
    now = {"solve": {"samples": 4}}
    assert changes_since({}, now, source="config.toml") == ("[solve] samples: was 1, is 4",)


def test_another_test_command_cannot_judge_what_is_done() -> None:
    then, now = {"testing": {"test_command": "pytest"}}, {"testing": {"test_command": "tox"}}
    with pytest.raises(ConfigError, match=r"test_command was 'pytest' when the run began and is 'tox' now"):
        changes_since(then, now, source="config.toml")
