"""Reads the results of Python's runners: pytest's JUnit report, unittest's output, and the guard's records."""

import contextlib
import json
import re
import xml.etree.ElementTree as ET
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct, field, structs

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.json_values import from_json
from clean_room_agent.orchestrator.testing.results import (
    RED,
    Failure,
    Outcome,
    Reading,
    TestReport,
    merge,
    worst,
)
from clean_room_agent.orchestrator.testing.test_commands import GuardReader, TooMuchError, guard_folder
from clean_room_agent.safe_open import read_bytes

PROPERTY = "cra_failure"
"""The property of a test case in pytest's report that holds the guard's record."""
MAX_BYTES = 30_000_000
"""Of all records of one command; later failures have no record."""
MAX_LOG_BYTES = 100_000_000
MAX_REPORT_BYTES = 100_000_000
MAX_DIGITS = 10
MAX_DEPTH = 50
"""The deepest nesting at which a test file is looked for."""
RAN = re.compile(r"^Ran (\d{1,9}) tests? in [\d.]+s$", re.MULTILINE)
VERDICT = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[^)]*)\))?$", re.MULTILINE)
COUNT = re.compile(r"([a-z ]+)=(\d{1,9})(?!\d)")
OUTCOMES = frozenset(get_args(Outcome))
RULE = "=" * 70
THIN_RULE = "-" * 70
HEADING = re.compile(
    r"(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<method>\S+) \((?P<where>[\w.]+)\)(?P<sub> [(\[].*)?"
)
TEST = re.compile(r"(?P<method>\w+) \((?P<where>[\w.]+)\)(?: \.\.\. ?(?P<rest>.*))?")
STATUS = re.compile(
    r"(?:.*? \.\.\. ?)?(?P<word>ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)"
)
WORDS: dict[str, Outcome] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "skipped": "skipped",
    "expected failure": "xfailed",
    "unexpected success": "failed",
}


class Record(Struct, frozen=True, kw_only=True):
    """One failure as the guard wrote it; nothing of it is normalised."""

    operator: str
    left: str
    right: str
    frames: list[tuple[str, int, str]]
    when: str = ""
    """pytest's phase, or unittest's ERROR and FAIL."""
    name: str = ""
    """unittest's id of the test."""


def read_records(lines: Iterable[str | bytes]) -> tuple[Record, ...]:
    """Those of `lines` that are records, in order."""
    found = []
    for line in lines:
        try:
            found.append(from_json(line, Record))
        except ValueError:
            continue
    return tuple(found)


def with_record(failure: Failure, record: Record) -> Failure:
    """The failure with the values and frames of its record."""
    return structs.replace(
        failure,
        operator=record.operator,
        actual=record.left,
        expected=record.right,
        frames=tuple(StackFrame(path=path, line=line, function=name) for path, line, name in record.frames),
    )


def with_records_of_unittest(reading: Reading, report: Path) -> Reading:
    """The failures that unittest printed, each with its record from the guard.

    unittest prints errors before failures, each kind in the order in which they came, as the records of a name are
    taken here.
    """
    waiting: dict[str, deque[Record]] = defaultdict(deque)
    for record in sorted(_left_by_unittest(guard_folder(report)), key=lambda record: record.when):
        waiting[record.name].append(record)
    failures = tuple(
        with_record(failure, waiting[failure.name].popleft()) if waiting.get(failure.name) else failure
        for failure in reading.failures
    )
    return structs.replace(reading, failures=failures)


def _left_by_unittest(folder: Path) -> tuple[Record, ...]:
    lines: list[bytes] = []
    reader = GuardReader(folder, max_bytes=MAX_BYTES)
    with contextlib.suppress(TooMuchError):
        for name in reader.names("python-*.failures"):
            with contextlib.suppress(OSError):
                lines += reader.read(name).splitlines()
    return read_records(lines)


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


def read_report(report: Path, exists: Callable[[str], bool]) -> Reading:
    """Read the report at `report`; the reading is incomplete if it is truncated, too large, or says that pytest itself
    broke.

    `exists` knows the files below the folder that the tests ran in, by relative path.
    """
    try:
        data = read_bytes(report.parent, report.name, max_bytes=MAX_REPORT_BYTES + 1)
    except OSError as exc:
        return _unreadable(f"pytest's report cannot be read: {exc.strerror}")
    if len(data) > MAX_REPORT_BYTES:
        return _unreadable(f"pytest's report is larger than {MAX_REPORT_BYTES} bytes")
    try:
        # pytest writes UTF-8; what another encoding is declared, or is not one, is no report of its.
        root = ET.fromstring(data, ET.XMLParser(target=_Elements(), encoding="utf-8"))  # noqa: S314 - without a document type, nothing is expanded
    except _DocumentTypeError:
        return _unreadable("the report is not one that pytest writes")
    except ET.ParseError:
        return _unreadable("pytest's report is cut short: its process ended before the report was complete")
    return _read(root, exists)


class _DocumentTypeError(Exception):
    """The report contains a document type, which may define entities that expand to more than memory holds."""


class _Elements(ET.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _DocumentTypeError(name, pubid, system)


def _unreadable(problem: str) -> Reading:
    return Reading(report=TestReport(runner="pytest", whole=False, problem=problem))


def _read(root: ET.Element, exists: Callable[[str], bool]) -> Reading:
    results: list[tuple[str, Outcome]] = []
    failures: list[Failure] = []
    uncollected: set[str] = set()
    broken = False
    for case in root.iter("testcase"):
        classname, name = case.get("classname", ""), case.get("name", "")
        if not name:
            continue  # the test that was under way when pytest itself broke
        broken = broken or (classname, name) == ("pytest", "internal")
        node = node_id(classname, name, case.get("file", ""), exists)
        outcome = _outcome(case)
        if not classname:
            uncollected.add(node)
        results.append((node, outcome))
        failures.extend(_failures(case, node))
    outcomes = merge(results)
    return Reading(
        report=TestReport(
            runner="pytest",
            outcomes=outcomes,
            collected=len(outcomes.keys() - uncollected),
            passed=sum(outcome == "passed" for outcome in outcomes.values()),
            named=True,
            whole=not broken,
            problem="pytest itself broke (INTERNALERROR): see the output" if broken else "",
        ),
        failures=tuple(failures),
    )


def _outcome(case: ET.Element) -> Outcome:
    found: list[Outcome] = ["passed"]
    for child in case:
        if child.tag == "failure":
            found.append("failed")
        elif child.tag == "error":
            found.append("error")
        elif child.tag == "skipped":
            found.append("xfailed" if child.get("type") == "pytest.xfail" else "skipped")
    return worst(found)


def _failures(case: ET.Element, node: str) -> list[Failure]:
    """The failures of a test; records of earlier runs of a rerun test come before those of its last, and do not count."""
    zero_based = case.get("line", "")
    records = read_records(
        entry.get("value", "") for entry in case.iter("property") if entry.get("name") == PROPERTY
    )
    found = []
    for tag in ("failure", "error"):
        children = [child for child in case if child.tag == tag]
        told = [record for record in records if (record.when == "call") == (tag == "failure")]
        for child, record in zip_longest(children, told[-len(children) :] if children else ()):
            failure = Failure(
                name=node,
                detail=child.text or "",
                message=child.get("message", ""),
                path=case.get("file", ""),
                line=int(zero_based) + 1 if zero_based.isdecimal() and len(zero_based) < MAX_DIGITS else 0,
            )
            found.append(failure if record is None else with_record(failure, record))
    return found


def node_id(classname: str, name: str, file: str, exists: Callable[[str], bool]) -> str:
    """The node id, pytest's own name of a test (`path::Class::test[param]`), as well as the report shows it.
    `classname` is the test file's path with dots, then its classes. `file` is where the function is written, which for
    an inherited test is another file; then the longest prefix of `classname` that `exists` is used. A file that could
    not be collected has no `classname`; its path is its name.
    """
    if not classname:
        return file or name
    dotted = file.removesuffix(".py").replace("/", ".")
    if dotted and (classname == dotted or classname.startswith(dotted + ".")):
        classes = classname[len(dotted) + 1 :]
        return "::".join((file, *filter(None, classes.split(".")), name))
    parts = classname.split(".")
    for count in range(min(len(parts), MAX_DEPTH), 0, -1):
        path = "/".join(parts[:count]) + ".py"
        if exists(path):
            return "::".join((path, *parts[count:], name))
    return f"{classname}::{name}"


def read_unittest(text: str) -> Reading | None:
    """Read unittest's output; None if it has no summary.

    Without `-v` only failing names are known. A class or module that could not be set up counts as one error.
    """
    ran = list(RAN.finditer(text))
    verdict = VERDICT.search(text, ran[-1].end()) if ran else None
    if verdict is None:
        return None
    collected = int(ran[-1][1])
    counts = {name.strip(): int(number) for name, number in COUNT.findall(verdict["counts"] or "")}
    failures, red = _printed_failures(text[: ran[-1].start()])
    listed = _listed(text[: ran[-1].start()])
    outcomes = merge([*listed, *red])
    unhappy = ("failures", "errors", "skipped", "expected failures", "unexpected successes")
    return Reading(
        report=TestReport(
            runner="unittest",
            outcomes=outcomes,
            collected=collected,
            passed=max(0, collected - sum(counts.get(name, 0) for name in unhappy)),
            named=collected > 0 and len({name for name, _ in listed}) >= collected,
        ),
        failures=failures,
    )


def test_name(method: str, where: str) -> str:
    """`module.Class.method` from either form that Python versions print."""
    return where if where.endswith("." + method) else f"{where}.{method}"


def _printed_failures(text: str) -> tuple[tuple[Failure, ...], list[tuple[str, Outcome]]]:
    """The blocks that follow a line of `=`: (the failures, their names and outcomes)."""
    failures: list[Failure] = []
    red: list[tuple[str, Outcome]] = []
    for block in text.split(RULE + "\n")[1:]:
        head, _, rest = block.partition("\n")
        heading = HEADING.fullmatch(head)
        if heading is None:
            continue
        name = test_name(heading["method"], heading["where"])
        message = "unexpected success" if heading["kind"].startswith("UNEXPECTED") else ""
        failures.append(
            Failure(
                name=name,
                detail=rest.partition(THIN_RULE + "\n")[2].removesuffix(THIN_RULE + "\n"),
                message=message,
            )
        )
        red.append((name, "error" if heading["kind"] == "ERROR" else "failed"))
    return tuple(failures), red


def _listed(text: str) -> list[tuple[str, Outcome]]:
    """The names and outcomes that `-v` prints, one per line or, with a docstring or other output, over several lines."""
    found: list[tuple[str, Outcome]] = []
    name = ""
    for line in text.partition(RULE)[0].split("\n"):
        test = TEST.match(line.strip())
        if test:
            name = test_name(test["method"], test["where"])
        status = STATUS.fullmatch(line.strip())
        if status and name:
            outcome = WORDS["skipped" if status["word"].startswith("skipped") else status["word"]]
            found.append((name, outcome))
            if outcome not in RED:
                name = ""
    return found
