"""Runs of the goal tests alone, which judge candidates first: they take a fraction of the whole suite's time."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import Goals, GoalTest
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner
from clean_room_agent.orchestrator.test_runs.results import TestRun

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


class GoalsAtBase(Struct, frozen=True, kw_only=True):
    """The goal tests before any candidate."""

    ran: GoalRun
    standard: TestRun
    """The step's tests with them: what the tests of a candidate are compared with."""


def run_goals(runner: CommandRunner, goals: Sequence[GoalTest], like: TestRun) -> GoalRun:
    """Run the goal tests in the runner's worktree, as the command of `like` runs tests; from any thread."""
    return _ran(runner, goals, _tests(runner, goals, like))


def goals_at_base(runner: CommandRunner, goals: Sequence[GoalTest], base: TestRun) -> GoalsAtBase:
    """Run the goal tests in the runner's worktree, which is at the base with those that were added; `base` are the step's tests
    without these.
    """
    tests = _tests(runner, goals, base)
    return GoalsAtBase(ran=_ran(runner, goals, tests), standard=_joined(base, goals, tests))


def stand_on_goals(run: Run, goals: Goals) -> GoalsAtBase:
    """The goal tests before any change. Those that were added are in the run's head, and in its tests, from now on."""
    base = run.progress.accepted
    assert base is not None, "the baseline runs before goal tests are collected"
    head = goals.commit or run.commits.base
    entry = run.journal.entry(run.task.task_id, "goals_at_base", GoalsAtBase, (head,))
    if entry.value is None:
        run.tests.checkout(head)
        entry.keep(goals_at_base(run.tests, goals.deciding, base))
    assert entry.value is not None
    run.commits.head = head
    run.progress.accepted = run.progress.at_base = entry.value.standard
    return entry.value


def _joined(base: TestRun, goals: Sequence[GoalTest], tests: TestRun | None) -> TestRun:
    """`base`, in which the goal tests that were added have the outcome that they have in `tests`."""
    known = base.report.outcomes
    added = {goal.name for goal in goals if not goal.command and goal.name not in known}
    if tests is None or not added or not base.report.named:
        return base
    if tests.command == base.command:
        return tests
    outcomes = {name: outcome for name, outcome in tests.report.outcomes.items() if name in added}
    report = replace(
        base.report,
        outcomes=dict(sorted({**known, **outcomes}.items())),
        collected=(base.report.collected or 0) + len(outcomes),
    )
    failing = (*base.failing, *(test for test in tests.failing if test.name in added))
    return replace(base, report=report, failing=failing)


def _tests(runner: CommandRunner, goals: Sequence[GoalTest], like: TestRun) -> TestRun | None:
    """The run of the goal tests that are tests; None if there are only commands."""
    names = tuple(goal.name for goal in goals if not goal.command)
    if not names:
        return None
    return runner.run_some_unseen(like, names) or runner.run_step_unseen()


def _ran(runner: CommandRunner, goals: Sequence[GoalTest], tests: TestRun | None) -> GoalRun:
    names = tuple(goal.name for goal in goals if not goal.command)
    green: list[str] = []
    said: list[tuple[str, str]] = []
    whole = True
    if tests is not None:
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
