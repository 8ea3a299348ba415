"""The results of a test command, as readers, runner and gate share them, and as evidence for retrieval."""

import re
from collections.abc import Collection
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.artifacts.test_results import RED, SEVERITY, UNKNOWN, TestReport, merge
from clean_room_agent.languages.test_names import SEPARATOR, is_of_file
from clean_room_agent.orchestrator.test_runs.deciding import NO_TRACE, Trace
from clean_room_agent.orchestrator.test_runs.test_commands import Watched

EXCERPT_BOUND = 20_000
NUMBER_MARK = "~"


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a test command ended, and what it printed."""

    returncode: int
    timed_out: bool = False
    duration_ms: int = 0
    output: str = ""
    """As it was printed, for the record: standard output, then standard error; of long streams the beginning and the
    end, with a mark between.
    """
    excerpt: str = ""
    """The normalised output for a prompt; beyond `EXCERPT_BOUND` characters the beginning and the end, with a mark
    between.
    """


class TestRun(Struct, frozen=True, kw_only=True):
    """One run of a test command, read as far as its runner allows."""

    __test__: ClassVar[bool] = False

    command: str
    end: CommandEnd
    report: TestReport = field(default_factory=TestReport)
    failing: tuple[FailingTest, ...] = ()
    """Files that could not be collected first, then by name."""
    frames: tuple[StackFrame, ...] = ()
    """Frames of the failures, in their order, innermost first, without duplicates; only files of the tree."""
    watched: Watched = field(default_factory=Watched)
    trace: Trace = NO_TRACE
    """What its processes depended on; only the baseline's is recorded."""

    @property
    def is_empty(self) -> bool:
        """Whether the runner finished and found no test."""
        report = self.report
        return report.whole and report.runner != UNKNOWN and not (report.collected or report.outcomes)

    @property
    def is_known(self) -> bool:
        """Whether the runner named all tests that there are, by running them."""
        report = self.report
        return report.whole and report.runner != "unknown" and not report.written and not report.uncounted

    def red(self) -> frozenset[str]:
        """The names that failed or broke."""
        return frozenset(name for name, outcome in self.report.outcomes.items() if outcome in RED)

    def green(self) -> frozenset[str]:
        """The names that passed."""
        return frozenset(name for name, outcome in self.report.outcomes.items() if outcome == "passed")

    def ran(self) -> frozenset[str]:
        """The names that passed, failed or broke: not those that were skipped or expected to fail."""
        return self.green() | self.red()


class ChangingNames(Struct, kw_only=True):
    """The names of tests that the unchanged tree gives only once: with a random number, a date, an id. By such a name no test can be
    missed; these tests of one function, or of one class or suite, are numbered instead, those that passed first:

        one run                 the next one             both count as
        t.py::f[a]  passed      t.py::f[a]  passed       t.py::f[a]  passed
        t.py::f[17] failed      t.py::f[4]  passed       t.py::f[~1] passed
        t.py::f[23] passed      t.py::f[86] failed       t.py::f[~2] failed

    So a test that an edit takes away is missed nonetheless.
    """

    stable: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of each group with names that change, those that do not."""
    least: dict[str, int] = field(default_factory=dict)
    """How many others each run of the unchanged tree has."""

    def learn(self, first: TestRun, again: TestRun) -> tuple[str, ...]:
        """The groups, sorted, of which two runs of one tree do not have the same names."""
        if not (first.report.whole and again.report.whole and first.report.named and again.report.named):
            return ()
        had, has = _by_group(first), _by_group(again)
        changing = [group for group, names in had.items() if names - has.get(group, set())]
        groups = sorted({_test_group(group) if _is_renamed(group, had, has) else group for group in changing})
        for group in groups:
            one, other = (
                {name for name in run.report.outcomes if _is_in(name, group)} for run in (first, again)
            )
            stable = self.stable.get(group, frozenset(one)) & one & other
            counts = (len(one - stable), len(other - stable), self.least.get(group, len(one)))
            self.stable[group], self.least[group] = stable, min(counts)
        return tuple(groups)

    def numbers(self, run: TestRun) -> dict[str, str]:
        """What each name that changes counts as in the run; "" for tests that passed and are more than there have to be."""
        numbered: dict[str, str] = {}
        for group, stable in self.stable.items():
            outcomes = run.report.outcomes
            names = [name for name in outcomes if _is_in(name, group) and name not in stable]
            names.sort(key=lambda name: (SEVERITY.index(outcomes[name]), name))
            passed = sum(outcomes[name] == "passed" for name in names)
            more = min(max(len(names) - self.least[group], 0), passed)
            numbered.update(dict.fromkeys(names[:more], ""))
            numbered.update(
                (name, _numbered_name(group, name, at)) for at, name in enumerate(names[more:], 1)
            )
        return numbered

    def of(self, run: TestRun) -> TestRun:
        """The run, in which these tests have their numbers as names."""
        if not (self.stable and run.report.named):
            return run
        numbered = self.numbers(run)
        outcomes = ((numbered.get(name, name), outcome) for name, outcome in run.report.outcomes.items())
        failing = (replace(test, name=numbered.get(test.name, test.name)) for test in run.failing)
        report = replace(run.report, outcomes=merge(pair for pair in outcomes if pair[0]))
        return replace(run, report=report, failing=tuple(failing))


def has_replaced(before: TestRun, after: TestRun) -> bool:
    """Whether tests are missing in `after` where it has others that `before` lacks, or of which it has others with other
    parameters.
    """
    had, has = _by_group(before), _by_group(after)
    comparable = before.report.named and after.report.named and before.command == after.command
    return comparable and any(
        (names - has[group] and (has[group] - names or f"{group}[" in min(names)))
        if group in has
        else _is_renamed(group, had, has)
        for group, names in had.items()
    )


def _is_renamed(group: str, had: Collection[str], has: Collection[str]) -> bool:
    """Whether the class or suite is not there any more, and one beside it is new."""
    holder = _test_group(group)
    return (
        bool(holder) and group not in has and any(_test_group(one) == holder for one in has if one not in had)
    )


def _is_in(name: str, group: str) -> bool:
    """Whether the test is of the group, or of a class or suite in it."""
    return not is_of_file(name) and group in {_test_group(name), _test_group(_test_group(name))}


def _by_group(run: TestRun) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in run.report.outcomes:
        if not is_of_file(name):
            found.setdefault(_test_group(name), set()).add(name)
    return found


def _test_group(name: str) -> str:
    """The function of a test with parameters; of another one, its class or suite."""
    if "::" in name and name.endswith("]"):
        return name.partition("[")[0]
    return _split_test_name(name)[0]


def _split_test_name(name: str) -> tuple[str, str, str]:
    """A test's name up to its last part, the mark before that, and that; a title may hold dots."""
    mark = next((mark for mark in (SEPARATOR, "::") if mark in name), "" if " " in name else ".")
    return name.rpartition(mark) if mark else ("", "", name)


def _numbered_name(group: str, name: str, number: int) -> str:
    if name.startswith(f"{group}["):
        return f"{group}[{NUMBER_MARK}{number}]"
    return f"{group}{_split_test_name(name)[1]}{NUMBER_MARK}{number}"


def function_of_numbered(name: str) -> str:
    """What a runner knows of a test: its name or, if that is a number in place of parameters, its function; "" if nothing."""
    function, marked, _ = name.partition(f"[{NUMBER_MARK}")
    if marked:
        return function
    _, mark, last = _split_test_name(name)
    return "" if mark and last.startswith(NUMBER_MARK) else name


MAX_TESTS = 50
MAX_MESSAGES = 60
MAX_FRAMES = 60
THRESHOLD = re.compile(
    r"coverage failure|required (?:test )?coverage|coverage\b.*\bthreshold\b", re.IGNORECASE
)
"""What tools say of a coverage that is too low."""
REACHED = re.compile(r"required (?:test )?coverage.*(?<!not )reached", re.IGNORECASE)
"""What one of them says of a coverage that is not."""
TELLING = re.compile(r"error|fail|assert|exception|panic|cannot find|not found", re.IGNORECASE)
UNTELLING = re.compile(r"A complete log of this run can be found|npm (?:error|ERR!)(?: \w+)?\Z")
"""What npm prints below an error."""


def evidence_of(run: TestRun, *, left_out: Collection[str] = ()) -> Evidence:
    """The run's failing tests, error lines and frames, without duplicates; of the tests `left_out`, only the names.

    Order: files that could not be collected, then failing tests by name; messages and frames in that order of their
    tests, frames innermost first. Limits cut off the ends. A run whose failures have no names gives the last lines of
    its output about errors; an incomplete one also gives the reason, first.
    """
    shown = [test for test in run.failing if test.name not in left_out]
    others = {frame for test in run.failing if test.name in left_out for frame in test.frames}
    others -= {frame for test in shown for frame in test.frames}
    words = [line for test in shown for line in test.message.split("\n") if line.strip()]
    if not run.failing and run.end.returncode != 0:
        words = telling_lines(run.end.excerpt)
    first: dict[str, FailingTest] = {}
    for test in shown:
        first.setdefault(test.name, test)
    if run.report.problem:
        words.insert(0, run.report.problem)
    return Evidence(
        tests=tuple(first.values())[:MAX_TESTS],
        messages=tuple(dict.fromkeys(words))[:MAX_MESSAGES],
        frames=tuple(frame for frame in run.frames if frame not in others)[:MAX_FRAMES],
        others=tuple(sorted({test.name for test in run.failing if test.name in left_out})),
    )


def telling_lines(output: str) -> list[str]:
    """The lines of `output` about errors, in order: the last `MAX_MESSAGES`, or its last 20 lines if there are none."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    found = [line for line in lines if TELLING.search(line) and not UNTELLING.search(line)]
    return found[-MAX_MESSAGES:] or lines[-20:]


def missed_threshold(run: TestRun) -> str:
    """The line of the output that says that too little is covered by tests; "" if there is none, or the command succeeds."""
    if run.end.returncode == 0:
        return ""
    lines = (line.strip() for line in run.end.excerpt.split("\n"))
    return next((line for line in lines if THRESHOLD.search(line) and not REACHED.search(line)), "")


def reached_threshold(run: TestRun) -> bool:
    """Whether the output says that enough is covered by tests."""
    return REACHED.search(run.end.excerpt) is not None


def exit_without_failure(run: TestRun) -> str:
    """How the command ends although no test fails, with the line of its output that says why; "" for any other end."""
    report = run.report
    if run.end.returncode == 0 or run.red() or not report.whole or report.runner == "unknown" or run.is_empty:
        return ""
    line = missed_threshold(run) or next(reversed(telling_lines(run.end.excerpt)), "")
    return f"exits with {run.end.returncode} though no test fails" + (f": {line}" if line else "")
