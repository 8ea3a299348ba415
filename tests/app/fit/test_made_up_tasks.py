"""The made-up tasks, and that their checks tell right from wrong."""

import pytest
from testing.sandboxes import installed

from clean_room_agent.app.fit.checks import checking
from clean_room_agent.app.fit.made_up_tasks import FILE, made_up_tasks
from clean_room_agent.execute.forms.place import Parsed, shown
from clean_room_agent.orchestrator.run_config import SandboxConfig


def test_each_function_fails_its_check_until_it_is_mended() -> None:
    told: list[str] = []
    with checking(SandboxConfig(mode="none"), told.append) as holds:
        found = {
            task.name: (holds(task, task.text), holds(task, task.mended))
            for task in made_up_tasks().functions
        }
    assert set(found.values()) == {(False, True)}, found
    assert told == ["no sandbox: the tests run model-written code with your privileges"]


def test_what_never_ends_its_program_well_does_not_hold() -> None:
    task = made_up_tasks().functions[0]
    with checking(SandboxConfig(mode="none"), lambda _: None) as holds:
        assert not holds(task, "raise SystemExit(0)\n")
        assert not holds(task, "def (\n")


def test_each_function_can_be_shown_with_its_wrong_line() -> None:
    for task in made_up_tasks().functions:
        place = task.target.place
        assert shown(Parsed(FILE, task.text), place) is not None, task.name
        assert not task.wrong or task.text.split("\n")[place.lines[0] - 1] == task.wrong


@pytest.mark.parametrize("kind", ["functions", "questions", "plans"])
def test_a_third_of_each_kind_is_held_and_names_differ(kind: str) -> None:
    tasks = made_up_tasks()
    names = [task.name for task in getattr(tasks, kind)]
    assert len(set(names)) == len(names)
    assert 3 * sum(map(tasks.is_held, names)) == len(names)


def test_there_are_some_forty() -> None:
    tasks = made_up_tasks()
    asked = sum(len(question.files) for question in tasks.questions)
    assert 40 <= len(tasks.functions) + asked + len(tasks.plans) <= 50
    for plan in tasks.plans:
        assert set(plan.right) < {file.path for file in plan.files}


def test_what_a_model_wrote_runs_in_the_sandbox() -> None:
    installed()
    task = made_up_tasks().functions[0]
    told: list[str] = []
    with checking(SandboxConfig(mode="bwrap"), told.append) as holds:
        assert holds(task, task.mended)
        assert holds(task, "open('here', 'w')\n" + task.mended)
        assert not holds(task, "open('/usr/made-up', 'w')\n" + task.mended)
        assert holds(
            task,
            "import socket\nassert [name for _, name in socket.if_nameindex()] == ['lo']\n" + task.mended,
        )
    assert told == []
