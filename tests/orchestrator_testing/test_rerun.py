import itertools

import pytest

from clean_room_agent.orchestrator.testing.rerun import passed_alone, rerun_command, unstable
from clean_room_agent.orchestrator.testing.results import TestRun


def run_of(command: str) -> TestRun:
    return TestRun(command=command, returncode=1, runner="pytest")


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("pytest -q", "pytest -q 't.py::a[x y]'"),
        ("pytest tests other -k 'a or b' --tb short -x", "pytest -k 'a or b' --tb short -x 't.py::a[x y]'"),
        (".venv/bin/python -m pytest -n 4 tests", ".venv/bin/python -m pytest -n 4 't.py::a[x y]'"),
        ("uv run pytest t.py::a", "uv run pytest 't.py::a[x y]'"),
        ("make test", None),
        ("pytest a && pytest b", None),
        ("pytest 'unclosed", None),
    ],
)
def test_a_plain_pytest_command_is_narrowed_to_one_test(command: str, alone: str | None) -> None:
    assert rerun_command(run_of(command), "t.py::a[x y]") == alone


def test_other_runners_are_not_run_again() -> None:
    assert rerun_command(TestRun(command="pytest", returncode=1, runner="mocha"), "t.py::a") is None


def test_the_outcome_alone_is_told_by_the_test_s_own_name() -> None:
    run = TestRun(command="pytest t.py::a", returncode=1, runner="pytest", outcomes={"t.py::a": "skipped"})
    assert passed_alone(run, "t.py::a") is True
    assert passed_alone(run, "t.py::b") is None
    assert passed_alone(TestRun(command="pytest", returncode=0, whole=False), "t.py::a") is None


def test_what_fails_each_time_here_and_passes_at_the_base_is_stable() -> None:
    assert unstable(["b", "a"], here=lambda _: False, base=lambda _: True) == ()


def test_what_passes_once_here_is_unstable() -> None:
    answers = itertools.cycle([False, True])
    assert unstable(["a"], here=lambda _: next(answers), base=lambda _: True) == ("a",)


def test_what_fails_alone_at_the_base_is_unstable() -> None:
    assert unstable(["b", "a"], here=lambda _: False, base=lambda name: name != "a") == ("a",)


def test_what_cannot_be_run_stays_in_the_gate() -> None:
    assert unstable(["a"], here=lambda _: None, base=lambda _: True) == ()
    assert unstable(["a"], here=lambda _: False, base=lambda _: None) == ()


def test_many_failures_are_a_break_and_are_not_run_again() -> None:
    asked: list[str] = []

    def here(name: str) -> bool:
        asked.append(name)
        return True

    assert unstable([str(number) for number in range(11)], here=here, base=here) == ()
    assert asked == []
