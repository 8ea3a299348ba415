"""The verdict by evidence: which goal tests were red before the change and are green after it, and so whether anything shows
that the task is done. Pure functions; nothing here runs anything.

    goal test   source      final    restored   green
    t.py::a     repository  passed   passed     yes: complete
    t.py::b     repository  passed   failed     no: it passes only with what the result changes about the tests
    t.py::c     stated      failed   failed     no: unproven, if nothing else fails
    t.py::d     given       failed   failed     no: partial, since the user asked for it
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import COMMAND_MARK, GoalOutcome, Goals, GoalSource, GoalTest
from clean_room_agent.artifacts.names import counted, listed
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.languages.relations import is_relation
from clean_room_agent.languages.test_names import file_part, is_in, is_of_file
from clean_room_agent.languages.test_runners import HOLDER
from clean_room_agent.orchestrator.test_runs.gate import tests_below
from clean_room_agent.orchestrator.test_runs.results import TestRun, missed_threshold

MAX_RED = 20
"""Red tests of the repository that are kept as evidence: a task need not be about them."""
MAX_LINE = 200
"""Characters of what a goal test gave."""
NOTHING_SHOWS = "nothing fails, and nothing shows that the task is done: no goal test went from red to green"
NOTHING_WILL = "no test is red that would show when this is done; --check 'assert …' gives one"
ONLY_WRITTEN = "nothing fails, but only a test that a model wrote went from red to green"
ONLY_CHANGED = "passes only with what the result changes about the tests"
ASKED = frozenset({GoalSource.DOCUMENTED, GoalSource.STATED})
"""The sources whose tests the task's words gave."""


class CommandRun(Struct, frozen=True, kw_only=True):
    """How the command of a goal test ended on the result."""

    returncode: int
    line: str = ""
    """The last line that it printed."""

    @property
    def words(self) -> str:
        """In one line."""
        return _one_line_excerpt(f"exit {self.returncode}" + (f": {self.line}" if self.line else ""))


def repository_goals(baseline: TestRun) -> Goals:
    """The red tests of the base; where no test is red and the command fails, the command itself, unless it fails because too
    little is covered by tests, which says nothing about the task.
    """
    red = sorted(baseline.red())
    tests = tuple(_of_repository(baseline, name) for name in red)
    if not red and baseline.end.returncode != 0 and not missed_threshold(baseline):
        command = f"{COMMAND_MARK} {baseline.command}"
        got = f"exit {baseline.end.returncode}"
        tests = (GoalTest(name=command, source=GoalSource.REPOSITORY, command=baseline.command, got=got),)
    return Goals(tests=tests)


def told_at_first(goals: Goals) -> tuple[str, ...]:
    """What the user is told before anything is asked: what will show that the task is done, or what would help, unless the
    goals' own notes said so when they were collected.
    """
    guiding = goals.guiding
    nothing = () if goals.deciding or goals.notes else (NOTHING_WILL,)
    if not guiding:
        return nothing
    first, count = guiding[0], len(guiding) - 1
    more = f" (and by {counted(count, 'more test')})" if count else ""
    values = ", wanted ".join(
        filter(None, (_one_line_excerpt(first.got) or "fails", _one_line_excerpt(first.wanted)))
    )
    if first.trust == "hint":
        return (*nothing, f"a model's guess guides the search: {first.call}: {values}{more}")
    return (f"shown by {first.name}: {values}{more}",)


def goal_outcomes(
    goals: Goals,
    baseline: TestRun,
    final: TestRun,
    others: Sequence[TestRun] = (),
    again: tuple[Collection[str], TestRun] | None = None,
    commands: Mapping[str, Sequence[CommandRun]] | None = None,
) -> tuple[GoalOutcome, ...]:
    """What became of each goal test, but of at most `MAX_RED` that are red and the repository's: green are those that pass in
    `final` and in all of `others`, which are runs of the result with tests as they were before; those named in `again` also in its run, which need not have others. `commands`
    says how the goals' commands ended each time, by command.
    """

    def runs(name: str) -> tuple[TestRun, ...]:
        return (final, *others, again[1]) if again is not None and name in again[0] else (final, *others)

    seen = tuple(
        _of_command(goal, baseline, (final, *others), (commands or {}).get(goal.command, ()))
        if goal.command
        else _of_test(goal, baseline, runs(goal.name))
        for goal in goals.tests
    )
    left = [one for one in seen if not one.green and one.source is GoalSource.REPOSITORY][MAX_RED:]
    return tuple(one for one in seen if one not in left) if left else seen


def still_red(goals: Goals, run: TestRun) -> frozenset[str]:
    """The tests added for the run that are red; what this means is for the verdict by evidence, but of the user's own."""
    added = {goal.name for goal in goals.tests if goal.code and goal.source is not GoalSource.GIVEN}
    return run.red() & added


def related_doubt(goals: Goals, final: TestRun) -> str:
    """That tests of what the task names are red although its own call is mended, in words; "" if none is."""
    left = sorted(final.red().intersection(goals.related))
    return f"tests of what the task names are still red: {listed(left, 3)}" if left else ""


def verdict_of(
    evidence: Collection[GoalOutcome], *, untested: str = "", doubt: str = ""
) -> tuple[RunStatus, str]:
    """The status of a result in which nothing fails that passed before, and why it is not complete; `untested` says that
    no test ran at all, `doubt` why goal tests that only the task's words gave do not decide.
    """
    red = [one for one in evidence if not one.green]
    given = [one.name for one in red if one.source is GoalSource.GIVEN]
    if given:
        return (
            RunStatus.PARTIAL,
            f"what was given to show that the task is done still fails: {listed(given, 3)}",
        )
    asked = next((one for one in red if one.source in ASKED), None)
    if asked is not None:
        return RunStatus.UNPROVEN, f"what the task's words ask for is still red: {asked.words}"
    if any(one.shows and (not doubt or one.trust == "proof") for one in evidence):
        return RunStatus.COMPLETE, ""
    changed = next((f"{one.name} {ONLY_CHANGED}" for one in red if one.after == ONLY_CHANGED), "")
    hint = next((f"{ONLY_WRITTEN}: {one.words}" for one in evidence if one.green), "")
    return RunStatus.UNPROVEN, doubt or changed or hint or untested or NOTHING_SHOWS


def has_open_goal(evidence: Collection[GoalOutcome]) -> bool:
    """Whether a goal test that decides is still red, so that the task is one that tests can show."""
    return any(one.trust != "hint" and not one.green for one in evidence)


def changed_goals(goals: Goals, changed: Collection[str]) -> tuple[str, ...]:
    """The goal tests that may stand in one of the `changed` test files, as far as their names show."""

    def may_stand_there(goal: GoalTest) -> bool:
        is_placed = goal.path or is_of_file(goal.name) or file_part(goal.name) != goal.name
        return not is_placed or goal.path in changed or is_in(goal.name, changed)

    tests = [goal for goal in goals.tests if changed and not goal.command and goal.trust != "hint"]
    return tuple(goal.name for goal in tests if may_stand_there(goal))


def _of_repository(baseline: TestRun, name: str) -> GoalTest:
    failure = _find_failure(baseline, name) or FailingTest(name=name)
    got, wanted = failure.actual or _first_line(failure.message), failure.expected
    got, wanted = given_and_wanted(got, wanted)
    return GoalTest(
        name=name,
        source=GoalSource.REPOSITORY,
        path=failure.path if is_in(name, (failure.path,)) else "",
        wanted=wanted,
        got=got,
    )


def given_and_wanted(got: str, expected: str) -> tuple[str, str]:
    """What a test gave, and the value that it wanted; a relation is told with the former, since what it gives once it passes is not
    known by that.
    """
    return (f"{got}, wanted {expected}", "") if is_relation(expected) else (got, expected)


def _of_test(goal: GoalTest, baseline: TestRun, runs: Sequence[TestRun]) -> GoalOutcome:
    if goal.trust == "hint" and goal.name not in runs[0].report.outcomes:
        return _goal_outcome(goal, "", green=False)  # it is in no tree
    green = [_is_passing(goal.name, baseline, run) for run in runs]
    if all(green):
        after = _one_line_excerpt(goal.wanted) or "passes"
    elif green[0]:
        after = ONLY_CHANGED
    else:
        after = _given_by(goal.name, runs[0])
    return _goal_outcome(goal, after, green=all(green))


def _of_command(
    goal: GoalTest, baseline: TestRun, runs: Sequence[TestRun], ends: Sequence[CommandRun]
) -> GoalOutcome:
    if goal.command == baseline.command:  # the tests themselves, which ran
        ends = tuple(CommandRun(returncode=run.end.returncode) for run in runs)
    if not ends:
        return _goal_outcome(goal, "", green=False)
    failed = next((end for end in ends if end.returncode != 0), None)
    if failed is None:
        return _goal_outcome(goal, "exit 0", green=True)
    return _goal_outcome(goal, ONLY_CHANGED if ends[0].returncode == 0 else failed.words, green=False)


def _goal_outcome(goal: GoalTest, after: str, *, green: bool) -> GoalOutcome:
    return GoalOutcome(
        name=goal.name,
        source=goal.source,
        trust=goal.trust,
        before=_one_line_excerpt(goal.got),
        after=after,
        green=green,
        check=goal.comparison if goal.trust == "hint" else "",
    )


def _is_passing(name: str, baseline: TestRun, run: TestRun) -> bool:
    """Whether the test passes; of a file, class or hook that could not be loaded, whether tests pass that did not."""
    outcome = run.report.outcomes.get(name)
    if outcome is not None or not run.report.whole:
        return outcome == "passed"
    if not run.report.named:
        return run.report.passed > baseline.report.passed
    if HOLDER.search(name) is None:
        return False
    new = run.green() - baseline.green()
    return bool(new & tests_below(name, run)) if is_of_file(name) else bool(new)


def _given_by(name: str, run: TestRun) -> str:
    outcome = run.report.outcomes.get(name)
    if outcome in {"skipped", "xfailed"}:
        return "skipped"
    if outcome is None:
        return "missing"
    failure = _find_failure(run, name)
    return _one_line_excerpt(failure.actual or _first_line(failure.message) if failure else "") or "fails"


def _find_failure(run: TestRun, name: str) -> FailingTest | None:
    return next((test for test in run.failing if test.name == name), None)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _one_line_excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
