"""What a run of a test command showed, as readers, runner and gate know it; and as evidence for retrieval."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.orchestrator.testing.test_commands import Watched

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed"]
Runner = Literal["pytest", "unittest", "mocha", "jest", "vitest", "node", "unknown"]

RED: frozenset[Outcome] = frozenset({"failed", "error"})
EXCERPT_BOUND = 20_000
SEVERITY: tuple[Outcome, ...] = ("passed", "skipped", "xfailed", "failed", "error")
"""When one name stands for several results, the last of these counts."""


class Failure(Struct, frozen=True, kw_only=True):
    """A failing test in its runner's own words, not normalised."""

    name: str
    detail: str
    """The whole report of this failure."""
    message: str = ""
    path: str = ""
    line: int = 0
    """1-based; 0 where unknown."""
    expected: str = ""
    """The value that the runner says was expected; with an `operator`, its right side."""
    actual: str = ""
    """What came instead; with an `operator`, its left side."""
    operator: str = ""
    """How the two were compared, where the runner knows left and right alone."""
    frames: tuple[StackFrame, ...] = ()
    """Innermost first, of whatever files; empty where `detail` alone tells."""


class TestReport(Struct, frozen=True, kw_only=True):
    """What the runner said of its tests; in a `TestRun`, names and words are normalised."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    runner: Runner = "unknown"
    """With "unknown", nothing but the exit code is known."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By test name, sorted; pytest's names are node ids."""
    named: bool = False
    """Whether `outcomes` names every test that ran, or (False) only those that failed."""
    collected: int | None = None
    """Tests that were found; None where the runner did not say."""
    passed: int = 0
    whole: bool = True
    """Whether the run came to its end and reported it: no time-out, no report that is missing or cut."""
    problem: str = ""
    """Why the run is not whole, and what to do; "" when it is."""


class Reading(Struct, frozen=True, kw_only=True):
    """What a reader understood of one runner's report or output, before it is normalised."""

    report: TestReport
    failures: tuple[Failure, ...] = ()


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a test command ended, and what it printed."""

    returncode: int
    timed_out: bool = False
    duration_ms: int = 0
    output: str = ""
    """As it was printed, for the record: standard output, then standard error; over-long streams as head and tail
    with the cut marked."""
    excerpt: str = ""
    """The output normalised, as a prompt may hold it; beyond `EXCERPT_BOUND` characters head and tail, cut marked."""


class TestRun(Struct, frozen=True, kw_only=True):
    """One run of a test command, read as far as its runner allows."""

    __test__: ClassVar[bool] = False

    command: str
    end: CommandEnd
    report: TestReport = field(default_factory=TestReport)
    failing: tuple[FailingTest, ...] = ()
    """Files that could not be collected first, then by name."""
    frames: tuple[StackFrame, ...] = ()
    """Of the failures, in their order, innermost first, each once; only files of the tree."""
    watched: Watched = field(default_factory=Watched)

    @property
    def is_empty(self) -> bool:
        """Whether the runner came to its end and found no test."""
        return (
            self.report.whole
            and self.report.runner != "unknown"
            and not self.report.collected
            and not self.report.outcomes
        )

    def red(self) -> frozenset[str]:
        """The names that failed or broke."""
        return frozenset(name for name, outcome in self.report.outcomes.items() if outcome in RED)

    def green(self) -> frozenset[str]:
        """The names that passed."""
        return frozenset(name for name, outcome in self.report.outcomes.items() if outcome == "passed")


def upgrade_test_run(kept: Any) -> Any:
    """What an earlier version kept of a test run (one flat object) with the parts that a `TestRun` has now."""
    if not isinstance(kept, dict) or "returncode" not in kept:
        return kept
    of_end, of_report = CommandEnd.__struct_fields__, TestReport.__struct_fields__
    own = {key: value for key, value in kept.items() if key not in {*of_end, *of_report}}
    end = {key: value for key, value in kept.items() if key in of_end}
    report = {key: value for key, value in kept.items() if key in of_report}
    return {**own, "end": end, "report": report}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The result that counts where one name has several; `outcomes` is not empty."""
    return max(outcomes, key=SEVERITY.index)


def merge(pairs: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """One outcome a name, sorted by name; the worst where a name comes more than once."""
    found: dict[str, Outcome] = {}
    for name, outcome in pairs:
        found[name] = worst((outcome, found.get(name, outcome)))
    return dict(sorted(found.items()))


MAX_TESTS = 50
MAX_MESSAGES = 60
MAX_FRAMES = 60
TELLING = re.compile(r"error|fail|assert|exception|panic|cannot find|not found", re.IGNORECASE)


def evidence_of(run: TestRun) -> Evidence:
    """The run's failing tests, error lines and frames, each once.

    Order: files that could not be collected, then failing tests by name; messages and frames in that order of their
    tests, frames innermost first. The caps cut the ends. A run whose failures have no names gives the last lines of
    its output that speak of errors; one that is not whole also gives why, first.
    """
    words = [line for test in run.failing for line in test.message.split("\n") if line.strip()]
    if not run.failing and run.end.returncode != 0:
        words = telling_lines(run.end.excerpt)
    first: dict[str, FailingTest] = {}
    for test in run.failing:
        first.setdefault(test.name, test)
    if run.report.problem:
        words.insert(0, run.report.problem)
    return Evidence(
        tests=tuple(first.values())[:MAX_TESTS],
        messages=tuple(dict.fromkeys(words))[:MAX_MESSAGES],
        frames=run.frames[:MAX_FRAMES],
    )


def telling_lines(output: str) -> list[str]:
    """The lines of `output` that speak of errors, in order: the last `MAX_MESSAGES`, or its last 20 if none does."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    return [line for line in lines if TELLING.search(line)][-MAX_MESSAGES:] or lines[-20:]
