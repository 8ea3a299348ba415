"""What the guard recorded of the tests of Python's runners: each as it is found, begins and ends, and what failing ones compared."""

import contextlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct, field, structs

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import RED, Failure, Outcome, Reading, merge, worst
from clean_room_agent.json_values import from_json
from clean_room_agent.languages.test_runner import GuardReader, TooMuchError, guard_folder

MAX_BYTES = 30_000_000
"""Of all records of one command; later failures have no record."""
MAX_LOG_BYTES = 100_000_000
FIRST_LINES = 3
"""Of a log, among which is where names begin."""
OUTCOMES = frozenset(get_args(Outcome))


class FailureRecord(Struct, frozen=True, kw_only=True):
    """One failure as the guard wrote it; nothing of it is normalised."""

    operator: str
    left: str
    right: str
    frames: list[tuple[str, int, str]]
    when: str = ""
    """pytest's phase, or unittest's ERROR and FAIL."""
    name: str = ""
    """unittest's id of the test."""
    arguments: dict[str, str] = field(default_factory=dict)
    """What pytest's test was parametrized with."""


def read_failure_records(lines: Iterable[str | bytes]) -> tuple[FailureRecord, ...]:
    """Those of `lines` that are records, in order."""
    found = []
    for line in lines:
        try:
            found.append(from_json(line, FailureRecord))
        except ValueError:
            continue
    return tuple(found)


def with_record(failure: Failure, record: FailureRecord) -> Failure:
    """The failure with the frames of its record, and the values, if that has any."""
    frames = tuple(StackFrame(path=path, line=line, function=name) for path, line, name in record.frames)
    failure = structs.replace(failure, arguments=record.arguments, frames=frames)
    if not (record.operator or record.left or record.right):
        return failure
    return structs.replace(failure, operator=record.operator, actual=record.left, expected=record.right)


def with_records_of_unittest(reading: Reading, report: Path) -> Reading:
    """The failures that unittest printed, each with its record from the guard.

    unittest prints errors before failures, each kind in the order in which they came, as the records of a name are
    taken here.
    """
    waiting: dict[str, deque[FailureRecord]] = defaultdict(deque)
    for record in sorted(_left_by_unittest(guard_folder(report)), key=lambda record: record.when):
        waiting[record.name].append(record)
    failures = tuple(
        with_record(failure, waiting[failure.name].popleft()) if waiting.get(failure.name) else failure
        for failure in reading.failures
    )
    return structs.replace(reading, failures=failures)


def _left_by_unittest(folder: Path) -> tuple[FailureRecord, ...]:
    lines: list[bytes] = []
    reader = GuardReader(folder, max_bytes=MAX_BYTES)
    with contextlib.suppress(TooMuchError):
        for name in reader.names("python-*.failures"):
            with contextlib.suppress(OSError):
                lines += reader.read(name).splitlines()
    return read_failure_records(lines)


class TestLog(Struct, kw_only=True):
    """What the guard recorded of the tests of one command, in the runners' own names."""

    __test__ = False

    found: set[str] = field(default_factory=set)
    finished: bool = False
    """Whether the search for tests came to its end."""
    ended: dict[str, Outcome] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Files that could not be loaded."""
    died: set[str] = field(default_factory=set)
    """Tests and files, of which each process had begun one and not ended it."""

    def missing(self) -> set[str]:
        """The tests that were found and neither ended nor died, nor were skipped with their class or module."""
        missing = self.found - self.ended.keys() - self.died
        for name in sorted(missing):
            parts = name.rsplit(".", 2)
            holders = (f"setUpClass ({'.'.join(parts[:-1])})", f"setUpModule ({parts[0]})")
            if any(self.ended.get(holder) == "skipped" for holder in holders):
                missing.discard(name)
        return missing


def read_test_log(report: Path) -> TestLog:
    """The record of the newest command with this `report`; what cannot be read is left out."""
    log = TestLog()
    reader = GuardReader(guard_folder(report), max_bytes=MAX_LOG_BYTES)
    try:
        for name in reader.names("python-*.tests"):
            _add_lines(log, reader.read(name).splitlines())
    except (OSError, TooMuchError):
        return TestLog()
    return log


def root_of(folder: Path, process: str) -> str:
    """The folder that the names of the process `process` of pytest begin at, with a slash; "" for the top."""
    try:
        lines = GuardReader(folder, max_bytes=MAX_LOG_BYTES).read(f"{process}.tests").splitlines()
        told = [json.loads(line) for line in lines[:FIRST_LINES]]
    except (OSError, TooMuchError, ValueError, RecursionError):
        return ""
    roots = [str(line[1]) for line in told if isinstance(line, list) and line[:1] == ["root"] and line[1:]]
    return roots[0] if roots else ""


def with_logged(reading: Reading, log: TestLog, *, every: bool) -> Reading:
    """A complete reading with what the guard recorded of this runner, where the runner does not say it: unittest names its tests
    only if it is told to, a process of pytest may have left no report, and any may have been changed before it was read.
    `every`: also tests that the reading does not name.
    """
    report = reading.report
    if not report.whole or not log.finished or report.runner not in {"pytest", "unittest"}:
        return reading
    of_pytest = report.runner == "pytest"
    known = {
        name: outcome
        for name, outcome in log.ended.items()
        if name in log.found and ("::" in name) is of_pytest
    }
    if not every:
        known = {name: known[name] for name in known.keys() & report.outcomes.keys() if known[name] in RED}
    outcomes = merge([*report.outcomes.items(), *known.items()])
    if outcomes == report.outcomes:
        return reading
    told = {failure.name for failure in reading.failures}
    collected = max(report.collected or 0, len(known)) if report.runner == "unittest" else len(outcomes)
    named = report.named or len(known) >= collected
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    return structs.replace(
        reading,
        report=structs.replace(
            report,
            outcomes=outcomes,
            collected=collected,
            passed=passed if named else report.passed,
            named=named,
        ),
        failures=(
            *reading.failures,
            *(Failure(name=name, detail="") for name in sorted(known.keys() - told) if known[name] in RED),
        ),
    )


def _add_lines(log: TestLog, lines: Iterable[bytes]) -> None:
    begun: list[str] = []
    for line in lines:
        try:
            kind, *words = json.loads(line)
        except (ValueError, RecursionError, TypeError):
            continue
        names = [str(word) for word in words]
        if kind == "found":
            begun.clear()
            log.found.update(names)
            log.finished = True
        elif kind in {"load", "start"} and names:
            begun.append(names[0])
        elif kind in {"loaded", "end"} and names:
            while names[0] in begun:
                begun.remove(names[0])
            outcomes = [cast("Outcome", word) for word in names[1:] if word in OUTCOMES]
            if kind == "end":
                log.ended[names[0]] = worst(outcomes or ["error"])
            elif "failed" in outcomes:
                log.broken.add(names[0])
    log.died.update(begun[-1:])
