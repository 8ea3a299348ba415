import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from testing.repositories import git, make_repository
from testing.runs.memory_run import TASK_ID, MemoryProject, memory_project

from clean_room_agent.app.settings import Settings
from clean_room_agent.app.solving import exit_code, note_resumption, plan_given
from clean_room_agent.artifacts.goals import TRUST, GoalOutcome, GoalSource
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import get_orchestrator_run
from clean_room_agent.db.session import Session
from clean_room_agent.errors import ArtifactError, ConfigError, UsageError
from clean_room_agent.execute.plan_file import load_plan
from clean_room_agent.orchestrator.events import Note
from clean_room_agent.orchestrator.run_config import Accept
from clean_room_agent.orchestrator.task import Hint, PlanGiven
from clean_room_agent.workspace import Workspace

META = MetaPlan.model_validate(
    {
        "task_summary": "Keep every cent.",
        "parts": [{"id": "p1", "description": "Split.", "affected_files": ["a.py"]}],
    }
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(repo=make_repository(tmp_path / "project", {"a.py": "a = 0\n"}))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, {}, lambda _: {}) as made:
        yield made


class Opened(Struct):
    """What a run's beginning looks at of the services."""

    record: Record
    session: Session
    settings: Settings


def resumed(project: MemoryProject, **settings: Any) -> PlanGiven:
    row = project.record.write(get_orchestrator_run, TASK_ID)
    assert row is not None
    opened: Any = Opened(project.record, project.session, Settings(source="config.toml", data=settings))
    return note_resumption(opened, row, project.observer, hint="use divmod", flags='{"a": 1}')


def goal(source: GoalSource, *, green: bool) -> GoalOutcome:
    return GoalOutcome(name="t", source=source, trust=TRUST[source], green=green)


@pytest.mark.parametrize(
    ("status", "evidence", "accept", "code"),
    [
        (RunStatus.COMPLETE, (), "all-pass", 0),
        (RunStatus.UNPROVEN, (), "all-pass", 5),
        (RunStatus.UNPROVEN, (), "no-new-failures", 5),
        (RunStatus.UNPROVEN, (), "green", 0),
        (RunStatus.UNPROVEN, (), "untested", 0),
        (RunStatus.UNPROVEN, (goal(GoalSource.STATED, green=False),), "green", 5),
        (RunStatus.UNPROVEN, (goal(GoalSource.WRITTEN, green=False),), "green", 0),
        (RunStatus.PARTIAL, (), "green", 4),
        (RunStatus.FAILED, (), "green", 1),
        (RunStatus.INTERRUPTED, (), "green", 1),
    ],
)
def test_the_exit_code_says_whether_anything_shows_the_task_done(
    status: RunStatus, evidence: tuple[GoalOutcome, ...], accept: Accept, code: int
) -> None:
    assert exit_code(status, evidence, accept) == code


def test_without_a_file_the_run_plans_by_itself(workspace: Workspace) -> None:
    assert plan_given(workspace, None, None) == (PlanGiven(), "")


def test_a_reviewed_plan_of_parts_is_followed_from_the_parts_on(workspace: Workspace) -> None:
    file = workspace.repo / "plan.json"
    file.write_text(META.model_dump_json())
    given, task = plan_given(workspace, None, file)
    assert (given.meta_plan, given.single, task) == (META, None, "")


def test_a_plan_of_parts_is_no_plan_of_steps(workspace: Workspace) -> None:
    file = workspace.repo / "plan.json"
    file.write_text(META.model_dump_json())
    with pytest.raises(ArtifactError, match="this has only parts"):
        plan_given(workspace, file, None)


@pytest.mark.parametrize("kind", ["written", "artifact"])
def test_a_plan_for_a_path_where_no_file_can_be_is_refused_at_once(workspace: Workspace, kind: str) -> None:
    (workspace.repo / "link.py").symlink_to("a.py")
    git(workspace.repo, "add", "-A")
    written = '{"task": "t", "steps": [{"description": "d", "files": ["b.py", "c.py"]}]}'
    file = workspace.repo / "plan.json"
    file.write_text(written)
    if kind == "artifact":
        written = load_plan(written, str(file)).model_dump_json()
    file.write_text(written.replace("b.py", "a.py/b.py").replace("c.py", "link.py"))
    with pytest.raises(ArtifactError, match=r"a\.py is a file.*; .*link\.py is a link"):
        plan_given(workspace, file, None)


def test_two_plans_exclude_one_another(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        plan_given(workspace, Path("a"), Path("b"))


def test_a_resumed_run_has_what_the_record_has_and_tells_what_changed(project: MemoryProject) -> None:
    project.open(lambda _: "")
    given = resumed(project, solve={"max_attempts": 5})
    assert given.hints == (Hint(text="use divmod"),)
    kinds = [kind for kind, _ in project.events()]
    assert kinds == ["flags", "resumed", "resumed_with", "hint"]
    recorded = dict(project.events())
    assert "[solve] max_attempts: was None, is 5" in recorded["resumed"]
    assert json.loads(recorded["resumed_with"])["config"] == {"solve": {"max_attempts": 5}}
    told = [event.text for event in project.observer.events if isinstance(event, Note)]
    assert told[0].startswith("resuming ")
    assert "changed since, and applies from here on: [solve] max_attempts: was None, is 5" in told


def test_a_run_judged_by_another_command_does_not_go_on(project: MemoryProject) -> None:
    project.open(lambda _: "")
    with pytest.raises(ConfigError, match="was judged by the old value"):
        resumed(project, testing={"test_command": "tox"})
