"""Candidates of the direct route: what was answered for a place, what the tests said, and which of several counts.

Goal tests alone judge them first: they take a fraction of the whole suite's time.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import Goals, GoalTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.orchestrator.run import Run, Tried
from clean_room_agent.orchestrator.steps.attempt import ChangeJudgment
from clean_room_agent.orchestrator.steps.checked_attempt import normalised_diff
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner
from clean_room_agent.orchestrator.test_runs.results import TestRun

MOST_TRIED = 3
"""Changes of which the planned route is told."""
MOST_CHARACTERS = 160
"""Of such a change, and of its result."""
ERROR = re.compile(r"[\w.]*(?:Error|Exception|Warning)\b")
"""Begins what a test gave that did not come to a value."""
TOKEN = re.compile(r"\w+|[^\w\s]")
LEAST_SECONDS, TIMES = 30.0, 10
"""A candidate's goal tests may take this long, since what failed at once before may take longer when it is right, and so many times
as long as the tests took before: a loop that a change made endless is not waited for any longer.
"""
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

    def is_nearer(self, than: "GoalRun", wanted: Mapping[str, str]) -> bool:
        """Whether more of them pass, or each ran and one came nearer to what is `wanted`, by name; where that is no value, or the
        test did not come to one, whether it failed in another way.
        """
        if len(self.green) != len(than.green):
            return len(self.green) > len(than.green)
        before = dict(than.said)
        return self.whole and any(
            _came_nearer(said, before.get(name, said), wanted.get(name, "")) for name, said in self.said
        )

    def closeness(self, wanted: Mapping[str, str]) -> float:
        """How many of them pass, and how alike what the others gave is to what is `wanted`; more is nearer."""
        return len(self.green) + sum(_likeness(said, wanted.get(name, "")) for name, said in self.said)


def _came_nearer(said: str, before: str, wanted: str) -> bool:
    if not wanted or wanted.startswith("raises ") or ERROR.match(before):
        return said != before
    if ERROR.match(said):
        return False
    try:
        return abs(float(said) - float(wanted)) < abs(float(before) - float(wanted))
    except ValueError:
        return _likeness(said, wanted) > _likeness(before, wanted)


def _likeness(one: str, other: str) -> float:
    """From 0 to 1: of the texts, or of their tokens, where these are more alike."""
    pairs: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
        (one, other),
        (TOKEN.findall(one), TOKEN.findall(other)),
    )
    return max(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs)


class GoalsAtBase(Struct, frozen=True, kw_only=True):
    """The goal tests before any candidate."""

    ran: GoalRun
    standard: TestRun
    """The step's tests with them: what the tests of a candidate are compared with."""
    took_ms: int = 0
    """By the goal tests that are tests."""


class Answered(Struct, frozen=True, kw_only=True):
    """What a model answered to a question."""

    text: str
    call_id: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: int = 0
    likelihood: float | None = None
    """Mean log-probability of its tokens; None if the server gives none."""
    fault: str = ""
    """Why it cannot be read; "" if it can."""


class TriedAnswer(Struct, frozen=True, kw_only=True):
    """One answer, and what came of it."""

    number: int
    """From 1."""
    item: str
    """What was asked: the place, the form and how it was put."""
    path: str
    symbol: str
    """The definition, qualified."""
    base: int = 0
    """The candidate from which it was gone on; 0: the run's head."""
    answer: Answered
    fault: str = ""
    """Why nothing was tested; "" if it was."""
    text: str = ""
    """The file with it, for a candidate to go on from; "" if nothing was tested."""
    commit: str = ""
    diff: str = ""
    goals: GoalRun | None = None
    broken: str = ""
    """What it breaks though more goal tests are green: a documented example, tests that passed; "" for nothing."""
    counter: GoalTest | None = None
    """The first of that which makes a call, with what it gave before as `wanted`, or the first of what it has `left`; None if there
    is none.
    """
    judgment: ChangeJudgment | None = None
    """Of the step's tests, for one whose goal tests are all green."""
    left: tuple[str, ...] = ()
    """Of the red tests of what the task names (`Goals.related`), those that are red in these."""

    def is_green(self, goals: int) -> bool:
        """Whether each of so many goal tests passes."""
        return self.goals is not None and len(self.goals.green) == goals

    @property
    def breaks(self) -> bool:
        """Whether it is known to break something that held before."""
        return bool(self.broken) or (self.judgment is not None and not self.judgment.verdict.passed)

    @property
    def holds(self) -> bool:
        """Whether the step's tests pass as well."""
        return self.judgment is not None and self.judgment.verdict.passed

    @property
    def settles(self) -> bool:
        """Whether it holds, and no test of what the task names is red: nothing else is looked for then."""
        return self.holds and not self.left


def likeliest_first(candidates: Sequence[TriedAnswer]) -> list[TriedAnswer]:
    """By the likelihood of the answer, then by the size of the change, then by number."""
    return sorted(candidates, key=lambda one: (-_likelihood(one), size_of(one), one.number))


def choose(candidates: Sequence[TriedAnswer]) -> TriedAnswer | None:
    """Of those that hold with most tests green, the smallest of the changes that most of them make, the likeliest of those alike; None
    if none holds.
    """
    by_green = [
        (len(one.judgment.tests.green()), one) for one in candidates if one.judgment is not None and one.holds
    ]
    most_green = max((green for green, _ in by_green), default=0)
    held = [one for green, one in by_green if green == most_green]
    if not held:
        return None
    diffs = [normalised_diff(one.diff) for one in held]
    most = max(map(diffs.count, diffs))
    common = [one for one, diff in zip(held, diffs, strict=True) if diffs.count(diff) == most]
    return min(likeliest_first(common), key=size_of)


def outcome_of(one: TriedAnswer) -> tuple[AttemptOutcome, str]:
    """How the candidate ended, and why it was not accepted."""
    if one.judgment is not None:
        verdict = one.judgment.verdict
        if verdict.passed:
            return AttemptOutcome.APPLIED_AND_PASSED, ""
        timed_out = one.judgment.tests.end.timed_out
        return AttemptOutcome.TIMED_OUT if timed_out else AttemptOutcome.TESTS_FAILED, verdict.reason
    if one.broken:
        return AttemptOutcome.TESTS_FAILED, one.broken
    if one.goals is not None:
        said = "; ".join(f"{name}: {what}" for name, what in one.goals.said) or "the goal tests are green"
        return AttemptOutcome.TESTS_FAILED, said
    return AttemptOutcome.REFUSED, one.fault


def in_vain(candidates: Sequence[TriedAnswer]) -> tuple[Tried, ...]:
    """The changes that were tried, a line each: those with most green goal tests first, and one for each result."""
    tested = [one for one in likeliest_first(candidates) if one.goals is not None]
    found: dict[str, Tried] = {}
    for one in sorted(tested, key=lambda one: -len(one.goals.green) if one.goals else 0):
        gave = "; ".join(what for _, what in one.goals.said) if one.goals else ""
        result = one.judgment.verdict.reason if one.judgment else gave
        lines = [line[1:].strip() for line in one.diff.splitlines() if re.match(r"\+(?!\+\+ )", line)]
        words = f"{one.symbol} with {cut(' / '.join(lines))}: {cut(result)}"
        found.setdefault(result, Tried(path=one.path, words=words))
    return tuple(found.values())[:MOST_TRIED]


def cut(text: str) -> str:
    """The text in one line of a bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"


def _likelihood(one: TriedAnswer) -> float:
    return float("-inf") if one.answer.likelihood is None else one.answer.likelihood


def size_of(one: TriedAnswer) -> int:
    """`changed_tokens` of the candidate's change."""
    return changed_tokens(one.diff)


def changed_tokens(diff: str) -> int:
    """How many tokens a unified diff adds and takes away; those that only move are not counted."""
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    new, old = (
        Counter(token for line in lines if line.startswith(sign) for token in TOKEN.findall(line[1:]))
        for sign in "+-"
    )
    return (new - old).total() + (old - new).total()


def run_goals(runner: CommandRunner, goals: Sequence[GoalTest], like: TestRun, took_ms: int) -> GoalRun:
    """Run the goal tests in the runner's worktree, as the command of `like` runs tests; from any thread. They took `took_ms` before
    the change that is judged.
    """
    seconds = LEAST_SECONDS + TIMES * took_ms / 1000
    return _goal_run(runner, goals, _run_tests(runner, goals, like, seconds))


def goals_at_base(runner: CommandRunner, goals: Sequence[GoalTest], base: TestRun) -> GoalsAtBase:
    """Run the goal tests in the runner's worktree, which is at the base with those that were added; `base` are the step's tests
    without these.
    """
    tests = _run_tests(runner, goals, base)
    return GoalsAtBase(
        ran=_goal_run(runner, goals, tests),
        standard=_with_added(base, goals, tests),
        took_ms=0 if tests is None else tests.end.duration_ms,
    )


def stand_on_goals(run: Run, goals: Goals) -> GoalsAtBase:
    """The goal tests before any change. Those that were added are in the run's head, and in its tests, from now on."""
    base = run.progress.accepted
    assert base is not None, "the baseline runs before goal tests are collected"
    head = goals.commit or run.commits.base
    entry = run.journal.entry(run.task.task_id, "goals_at_base", GoalsAtBase, (head,))
    at_base = entry.value
    if at_base is None:
        run.tests.checkout(head)
        at_base = entry.keep(goals_at_base(run.tests, goals.guiding, base))
    run.commits.head = head
    run.progress.accepted = run.progress.at_base = at_base.standard
    return at_base


def _with_added(base: TestRun, goals: Sequence[GoalTest], tests: TestRun | None) -> TestRun:
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


def _run_tests(
    runner: CommandRunner, goals: Sequence[GoalTest], like: TestRun, seconds: float | None = None
) -> TestRun | None:
    """The run of the goal tests that are tests; None if there are only commands."""
    names = tuple(goal.name for goal in goals if not goal.command)
    if not names:
        return None
    return runner.run_some_unseen(like, names, seconds) or runner.run_step_unseen(seconds)


def _goal_run(runner: CommandRunner, goals: Sequence[GoalTest], tests: TestRun | None) -> GoalRun:
    names = tuple(goal.name for goal in goals if not goal.command)
    green: list[str] = []
    said: list[tuple[str, str]] = []
    if tests is not None:
        passed = tests.green()
        failing = {test.name: test for test in tests.failing}
        green += [name for name in names if name in passed]
        said += [(name, _failure_line(failing.get(name), tests)) for name in names if name not in passed]
    for goal in goals:
        if goal.command:
            code, output = runner.run_apart(goal.command)
            last = output.strip().rpartition("\n")[2][:SAID_CHARS]
            if code == 0:
                green.append(goal.name)
            else:
                said.append((goal.name, f"exit {code}: {last}" if last else f"exit {code}"))
    whole = tests is None or (tests.report.whole and all(name in tests.report.outcomes for name in names))
    return GoalRun(green=tuple(green), said=tuple(said), whole=whole)


def _failure_line(test: FailingTest | None, tests: TestRun) -> str:
    """What a test gave, in a line."""
    if test is None:
        return tests.report.problem or "it did not run"
    if test.actual and test.actual != test.expected:
        return test.actual.partition("\n")[0][:SAID_CHARS]
    return test.message.partition("\n")[0][:SAID_CHARS]
