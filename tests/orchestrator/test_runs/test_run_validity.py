import sys
from collections.abc import Mapping
from typing import Any

import pytest
from tests.orchestrator.test_runs.tiny_project import Runner, Write

from clean_room_agent.artifacts.test_results import TestReport
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.command_runner import (
    passed_again,
    require_judging,
    rerun_command,
    unstable,
)
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun


def run_of(command: str) -> TestRun:
    return TestRun(command=command, end=CommandEnd(returncode=1), report=TestReport(runner="pytest"))


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("pytest -q", "pytest -q 't.py::a[x y]'"),
        ("pytest tests other -k 'a or b' --tb short -x", "pytest -k 'a or b' --tb short -x 't.py::a[x y]'"),
        (".venv/bin/python -m pytest -n 4 tests", ".venv/bin/python -m pytest -n 4 't.py::a[x y]'"),
        ("uv run pytest t.py::a", "uv run pytest 't.py::a[x y]'"),
        ("""pytest -k "it's" tests""", """pytest -k "it's" 't.py::a[x y]'"""),
        ("""X="o'neil" ~/o\\'neil/pytest -q""", """X="o'neil" ~/o\\'neil/pytest -q 't.py::a[x y]'"""),
        ("pytest -q # all of them, -k none", "pytest -q 't.py::a[x y]'"),
        ("pytest -q # it's all of them", None),
        ("make test", None),
        ("pytest a && pytest b", None),
        ("pytest 'unclosed", None),
    ],
)
def test_a_plain_pytest_command_is_narrowed(command: str, alone: str | None) -> None:
    assert rerun_command(run_of(command), ["t.py::a[x y]"]) == alone


def test_several_tests_are_one_command() -> None:
    assert rerun_command(run_of("pytest -q"), ["t.py::a", "t.py::b"]) == "pytest -q t.py::a t.py::b"


@pytest.mark.parametrize(
    ("runner", "command", "alone"),
    [
        ("unittest", "python -m unittest -v", "python -m unittest -v -k a.A.test_b"),
        (
            "unittest",
            "python -m unittest discover -s tests",
            "python -m unittest discover -s tests -k a.A.test_b",
        ),
        ("unittest", "make test", None),
        ("node", "node --test", "node --test --test-name-pattern='f\\(1\\) is 2'"),
        ("node", "node --test test/", "node --test --test-name-pattern='f\\(1\\) is 2' test/"),
        ("node", "make test", None),
        ("vitest", "npx vitest run", "npx vitest run -t 'f\\(1\\) is 2'"),
        ("jest", "npm test", "npm test -- -t 'f\\(1\\) is 2'"),
        ("jest", "npm run test -- --ci", "npm run test -- --ci -t 'f\\(1\\) is 2'"),
        ("mocha", "npx mocha", "npx mocha -g 'f\\(1\\) is 2'"),
        ("mocha", "tsc && mocha", None),
        ("unknown", "node --test", None),
    ],
)
def test_other_runners_are_narrowed_by_name(runner: Any, command: str, alone: str | None) -> None:
    run = TestRun(command=command, end=CommandEnd(returncode=1), report=TestReport(runner=runner))
    assert rerun_command(run, ["a.A.test_b" if runner == "unittest" else "t.js > suite > f(1) is 2"]) == alone


def test_several_titles_are_one_pattern() -> None:
    run = TestRun(command="npx jest", end=CommandEnd(returncode=1), report=TestReport(runner="jest"))
    assert rerun_command(run, ["t.js > a", "t.js > b"]) == "npx jest -t 'a|b'"


def test_the_outcome_is_told_by_the_test_s_own_name() -> None:
    run = TestRun(
        command="pytest t.py::a",
        end=CommandEnd(returncode=1),
        report=TestReport(runner="pytest", outcomes={"t.py::a": "skipped"}),
    )
    assert passed_again(run, ["t.py::a", "t.py::b"]) == {"t.py::a": True}
    assert (
        passed_again(
            TestRun(command="pytest", end=CommandEnd(returncode=0), report=TestReport(whole=False)),
            ["t.py::a"],
        )
        == {}
    )


class Again:
    """Answers run after run, and keeps what was asked for."""

    def __init__(self, *answers: Mapping[str, bool]) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._answers = iter(answers)

    def __call__(self, names: tuple[str, ...]) -> Mapping[str, bool]:
        self.asked.append(names)
        return next(self._answers)


RED, GREEN = {"a": False, "b": False}, {"a": True, "b": True}


def test_what_fails_each_time_here_and_passes_at_the_base_is_stable() -> None:
    here, base = Again(RED, RED), Again(GREEN, GREEN)
    assert unstable(["b", "a"], here=here, base=base) == ()
    assert [*here.asked, *base.asked] == [("a", "b")] * 4


def test_what_passes_once_here_is_unstable() -> None:
    here, base = Again({"a": False, "b": True}, {"a": True}), Again()
    assert unstable(["a", "b"], here=here, base=base) == ("a", "b")
    assert (here.asked, base.asked) == ([("a", "b"), ("a",)], [])


def test_what_fails_at_the_base_is_unstable() -> None:
    assert unstable(["b", "a"], here=Again(RED, RED), base=Again({"a": False, "b": True}, {"b": True})) == (
        "a",
    )


def test_what_cannot_be_run_stays_in_the_gate() -> None:
    assert unstable(["a"], here=Again({}), base=Again()) == ()
    assert unstable(["a"], here=Again({"a": False}, {"a": False}), base=Again({})) == ()


def test_many_failures_are_a_break_and_are_not_run_again() -> None:
    here = Again()
    assert unstable([str(number) for number in range(11)], here=here, base=here) == ()
    assert here.asked == []


CANNOT_JUDGE = {
    "no such program": ("no-such-runner --all", 127, "no-such-runner: not found"),
    "an open quote": ("python -m unittest -k it's", 2, "nterminated"),
    "not executable": ("./money.py", 126, "ermission denied"),
    "an option of a plugin that is not there": (
        f"{sys.executable} -m pytest --no-such-plugin",
        4,
        "--no-such-plugin",
    ),
    # -S: without site-packages
    "a Python without the runner": (f"{sys.executable} -S -m pytest", 1, "No module named pytest"),
}


@pytest.mark.parametrize("name", sorted(CANNOT_JUDGE))
def test_a_command_that_cannot_be_started_is_no_standard(name: str, write: Write, run: Runner) -> None:
    command, code, said = CANNOT_JUDGE[name]
    write({"money.py": "cents = 1\n"})
    config = TestingConfig(test_command=command)
    with pytest.raises(ConfigError) as caught:
        require_judging(run(command), config, "test_command", sandboxed=False)
    message = f"[testing] test_command cannot be started: {command!r} exits with {code}: "
    assert str(caught.value).startswith(message)
    assert said in str(caught.value)
    remedies = {
        "an option of a plugin that is not there": "--no-such-plugin is an option of a plugin of pytest: install that",
        "no such program": "install no-such-runner, or name another command: test_command in [testing]",
        "a Python without the runner": "install pytest for that Python, or name in test_command",
    }
    assert caught.value.hint.startswith(remedies.get(name, "fix test_command in [testing]"))


def test_a_command_that_succeeds_without_a_test_is_no_standard(run: Runner) -> None:
    command = f"{sys.executable} -m pytest --version"
    done = run(command)
    assert done.end.returncode == 0
    with pytest.raises(ConfigError) as caught:
        require_judging(done, TestingConfig(test_command=command), "test_command", sandboxed=False)
    assert "exits with 0, and no test is seen to run" in caught.value.message
    untested = TestingConfig(test_command=command, accept="untested")
    require_judging(done, untested, "test_command", sandboxed=False)


def test_a_command_that_hangs_before_any_edit_is_no_standard(run: Runner) -> None:
    done = run("sleep 600", timeout=0.3)
    assert done.end.timed_out
    config = TestingConfig(test_command="sleep 600", timeout=0.3)
    with pytest.raises(ConfigError) as caught:
        require_judging(done, config, "test_command", sandboxed=False)
    assert str(caught.value).startswith(
        "[testing] test_command did not end within 0.3 s, before anything was changed"
    )
    assert caught.value.hint.startswith("is it a watch mode")
    assert caught.value.hint.endswith(
        "raise timeout in [testing] above that, or let step_test_command judge by a part of them"
    )
