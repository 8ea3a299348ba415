"""What a test runner reported, as those that read its reports and those that judge them share it."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from msgspec import Struct, field

from clean_room_agent.artifacts.evidence import StackFrame

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed"]

RED: frozenset[Outcome] = frozenset({"failed", "error"})
SEVERITY: tuple[Outcome, ...] = ("passed", "skipped", "xfailed", "failed", "error")
"""If one name has several results, the last in this order counts."""
UNKNOWN = "unknown"
"""In place of a runner's name, if only the exit code is known."""


class Failure(Struct, frozen=True, kw_only=True):
    """A failing test in its runner's own words, not normalised."""

    name: str
    detail: str
    """The whole report of this failure."""
    message: str = ""
    path: str = ""
    line: int = 0
    """1-based; 0 if unknown."""
    expected: str = ""
    """The value that the runner says was expected; with an `operator`, its right side."""
    actual: str = ""
    """The actual value; with an `operator`, its left side."""
    operator: str = ""
    """How the two were compared, if the runner only knows left and right."""
    frames: tuple[StackFrame, ...] = ()
    """Innermost first, in any files; empty if they are only in `detail`."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Name -> repr of what the test was parametrized with, before it ran."""


class TestReport(Struct, frozen=True, kw_only=True):
    """What the runner reported about its tests; in a `TestRun`, names and messages are normalised."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    runner: str = UNKNOWN
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By test name, sorted; pytest's names are node ids."""
    named: bool = False
    """Whether `outcomes` names every test that ran, or (False) only those that failed."""
    collected: int | None = None
    """Tests that were found; None if the runner did not say."""
    passed: int = 0
    whole: bool = True
    """Whether the run finished and reported it: no timeout, no missing or truncated report."""
    problem: str = ""
    """Why the run is incomplete, and what to do; "" if it is complete."""
    counted: bool = False
    """Whether all tests of an incomplete run are known nonetheless: by further runs, or from the text of the tests."""
    written: Mapping[str, bool] = field(default_factory=dict)
    """Tests (`path::Class::test`, without parameters) of files that could not be loaded, as their text has them; and
    whether each runs in any case, or (False) may be skipped. Only of a run at the base.
    """
    uncounted: tuple[str, ...] = ()
    """The names in `outcomes` of files that could not be loaded and whose tests are unknown. Only of a run at the base."""


class Reading(Struct, frozen=True, kw_only=True):
    """What a reader understood of one runner's report or output, before it is normalised."""

    report: TestReport
    failures: tuple[Failure, ...] = ()
    shown: str = ""
    """The command's output as it is shown, where a report stands in it; "" for the output as it is."""


def unreadable(runner: str, problem: str) -> Reading:
    """Of a run that the runner did not report, and why."""
    return Reading(report=TestReport(runner=runner, whole=False, problem=problem))


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The result that counts if one name has several; `outcomes` is not empty."""
    return max(outcomes, key=SEVERITY.index)


def merge(pairs: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """One outcome per name, sorted by name; the worst if a name occurs more than once."""
    found: dict[str, Outcome] = {}
    for name, outcome in pairs:
        found[name] = worst((outcome, found.get(name, outcome)))
    return dict(sorted(found.items()))


def together(first: Reading, second: Reading) -> Reading:
    """The combined results of two processes of one command, under the name of the first's runner."""
    one, other = first.report, second.report
    outcomes = merge((*one.outcomes.items(), *other.outcomes.items()))
    named = one.named and other.named
    twice = len(one.outcomes) + len(other.outcomes) - len(outcomes)
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    return Reading(
        report=TestReport(
            runner=one.runner,
            outcomes=outcomes,
            collected=(one.collected or 0) + (other.collected or 0) - twice,
            passed=passed if named else one.passed + other.passed,
            named=named,
            whole=one.whole and other.whole,
            problem=one.problem or other.problem,
        ),
        failures=(*first.failures, *second.failures),
        shown=first.shown or second.shown,
    )
