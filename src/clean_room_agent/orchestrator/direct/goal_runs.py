"""Runs of the goal tests alone, which judge candidates first: they take a fraction of the whole suite's time."""

from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import GoalTest
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.test_runner import TestRunner

SAID_CHARS = 200
"""Of what a command printed last."""


class GoalRun(Struct, frozen=True, kw_only=True):
    """What the goal tests gave in one tree."""

    green: tuple[str, ...]
    """Names of those that passed."""
    said: tuple[tuple[str, str], ...] = ()
    """(name, what it gave, in a line) of each other one."""
    whole: bool = True
    """Whether each of them ran: an error of the whole file, or a process that ended, says nothing about one of them."""

    def is_nearer(self, than: "GoalRun") -> bool:
        """Whether more of them pass, or each ran and one failed in another way."""
        if len(self.green) != len(than.green):
            return len(self.green) > len(than.green)
        return self.whole and self.said != than.said


def run_goals(runner: TestRunner, goals: Sequence[GoalTest], like: TestRun) -> GoalRun:
    """Run the goal tests in the runner's worktree, as the command of `like` runs tests; from any thread."""
    names = tuple(goal.name for goal in goals if not goal.command)
    green: list[str] = []
    said: list[tuple[str, str]] = []
    whole = True
    if names:
        tests = runner.run_some_unseen(like, names) or runner.run_step_unseen()
        passed = tests.green()
        failing = {test.name: test for test in tests.failing}
        green += [name for name in names if name in passed]
        said += [(name, _said(failing.get(name), tests)) for name in names if name not in passed]
        whole = tests.report.whole and all(name in tests.report.outcomes for name in names)
    for goal in goals:
        if goal.command:
            code, output = runner.run_apart(goal.command)
            if code == 0:
                green.append(goal.name)
            else:
                last = output.strip().rpartition("\n")[2][:SAID_CHARS]
                said.append((goal.name, f"exit {code}: {last}" if last else f"exit {code}"))
    return GoalRun(green=tuple(green), said=tuple(said), whole=whole)


def _said(test: FailingTest | None, tests: TestRun) -> str:
    """What a test gave, in a line."""
    if test is None:
        return tests.report.problem or "it did not run"
    if test.actual and test.actual != test.expected:
        return test.actual.partition("\n")[0][:SAID_CHARS]
    return test.message.partition("\n")[0][:SAID_CHARS]
