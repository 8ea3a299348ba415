"""pytest: its JUnit report, which it is asked for by PYTEST_ADDOPTS, with the guard's records in it.

A test is named by its node id, `path::Class::test[param]`; a file that could not be collected by its path.
"""

import re
import shlex
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial, reduce
from itertools import pairwise, zip_longest
from pathlib import Path

from msgspec import structs

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import (
    RED,
    Failure,
    Outcome,
    Reading,
    TestReport,
    merge,
    together,
    unreadable,
    worst,
)
from clean_room_agent.languages.printed_values import values_in
from clean_room_agent.languages.python import project
from clean_room_agent.languages.python.frames import frames_in, words_after_frames
from clean_room_agent.languages.python.test_log import (
    read_failure_records,
    read_test_log,
    root_of,
    with_logged,
    with_record,
)
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.shell_words import shell_words
from clean_room_agent.languages.test_runner import EndedCommand, ReportRequest, TestRunner
from clean_room_agent.safe_open import is_file, read_bytes

REFUSED = "pytest refused its command line or configuration"
"""How the problem begins of a run whose options, or the plugin that they belong to, pytest does not know."""
OVERWRITTEN = (
    "each later one takes the place of that before. The command sets PYTHONPATH, it seems: "
    "let it keep what is there, as in PYTHONPATH=src:$PYTHONPATH"
)
"""What else is said where several processes that the guard did not see wrote to one place."""
REPORT_OPTIONS = ("-o", "junit_family=xunit1", "-o", "junit_logging=no", "--continue-on-collection-errors")
"""xunit1 names each test's file, and `record_property` warns under xunit2; captured output would swell the report; and
a file that cannot be imported must not hide the results of all others: the run fails in either case.
"""
VALUED = re.compile(
    r"-[kmpcoWnr]|--(?:rootdir|confcutdir|maxfail|durations|tb|import-mode|basetemp|timeout|dist|override-ini|color"
    r"|capture|log-level|cov-report|cov-config)"
)
"""Options whose value is the next word."""
STARTED = re.compile(r"(?:^|[\s/;&|(])(?:py\.test|pytest)(?=\s|$|[;&|)])")
TRACE = re.compile(r"^=+ test session starts =+$|^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
SUMMARY = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
SUMMARY_RED = re.compile(r"\d+ (?:failed|errors?)\b")
NOTE = re.compile(r"\n?\[[^\[\]]*full report in element text\]\Z")
PROPERTY = "cra_failure"
"""The property of a test case in the report that holds the guard's record."""
MAX_REPORT_BYTES = 100_000_000
MAX_DIGITS = 10
MAX_DEPTH = 50
"""The deepest nesting at which a test file is looked for."""


class PytestRunner(TestRunner):
    """See `TestRunner`."""

    name = "pytest"
    has_log = True
    is_exact = True
    traced = "tests"
    absent = (
        r"No module named '(?P<module>[\w.]+)'|cannot import name '(?P<name>\w+)' from '(?P<package>[\w.]+)'"
    )
    holder = r"^[^:>]*\.py\Z"

    def detect(self, files: RepositoryFiles) -> str:
        return project.pytest_command(files)

    def environment(self, env: Mapping[str, str], request: ReportRequest) -> dict[str, str]:
        options = shlex.join((f"--junitxml={request.report}", *REPORT_OPTIONS))
        return {"PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} {options}".strip()}

    def read(self, ended: EndedCommand) -> Reading | None:
        """The reports of its processes; where one was seen to start and left none, why the run is incomplete."""
        found = _read_all(ended)
        if found is not None:
            return found
        seen = "pytest" in ended.started or TRACE.search(ended.text)
        if STARTED.search(ended.command) or (seen and ended.started.keys() <= {"", "pytest", "unittest"}):
            return unreadable("pytest", _without_report(ended.returncode, ended.text))
        return None

    def only(self, command: str, names: Collection[str]) -> str | None:
        """The command for these node ids; None where it is not seen to start pytest."""
        try:
            shlex.split(command)
        except ValueError:  # a quote that is never closed
            return None
        words = shell_words(command)
        start = next(
            (i for i, word in enumerate(words) if re.fullmatch(r"(?:.*/)?(?:pytest|py\.test)", word.text)),
            None,
        )
        if start is None:
            return None
        kept = [word.written for word in words[: start + 1]]
        for previous, word in pairwise(words[start:]):
            if word.text.startswith("-") or VALUED.fullmatch(previous.text):
                kept.append(word.written)
        return " ".join([*kept, shlex.join(names)])

    def full_name(self, path: str, test: str) -> str:
        return f"{path}::{test}"

    def frames(self, text: str) -> Iterator[StackFrame]:
        return frames_in(text)


def _read_all(ended: EndedCommand) -> Reading | None:
    """The reports, one of each process; None if there is none. Where the guard did not see one, that at `report` counts, which
    else comes from a pytest that tests started.
    """
    exists = partial(is_file, ended.cwd)
    left = [ended.folder / name for name in ended.reports(".xml")]
    if not left and is_file(ended.report.parent, ended.report.name):
        left = [ended.report]
    if not left:
        return None
    times = len(SUMMARY.findall(ended.text))
    if times > 1 and left == [ended.report]:
        return unreadable("pytest", f"pytest ran {times} times and left one report: {OVERWRITTEN}")
    found = _check_against_summary(reduce(together, (_read_below(one, exists) for one in left)), ended.text)
    return with_logged(found, read_test_log(ended.report), every=ended.started.get("pytest", 0) > len(left))


def _read_below(report: Path, exists: Callable[[str], bool]) -> Reading:
    """The report of one process, in which names begin where pytest's do there, with names from the tree's top on."""
    root = root_of(report.parent, report.stem)
    reading = read_report(report, lambda path: exists(f"{root}{path}"))
    if not root:
        return reading
    outcomes = {f"{root}{name}": outcome for name, outcome in reading.report.outcomes.items()}
    failures = tuple(
        structs.replace(one, name=f"{root}{one.name}", path=one.path and f"{root}{one.path}")
        for one in reading.failures
    )
    return Reading(report=structs.replace(reading.report, outcomes=outcomes), failures=failures)


def _check_against_summary(reading: Reading, text: str) -> Reading:
    """`reading`, unless pytest's last line mentions failures that its report lacks."""
    summaries = SUMMARY.findall(text)
    if not summaries or not SUMMARY_RED.search(summaries[-1]) or RED & set(reading.report.outcomes.values()):
        return reading
    problem = f"pytest's report has no failure, and its last line says {summaries[-1].strip(' =')!r}"
    return structs.replace(reading, report=structs.replace(reading.report, whole=False, problem=problem))


def _without_report(returncode: int, text: str) -> str:
    if returncode == 4:
        said = [line for line in text.split("\n") if "error" in line.lower()][-3:]
        return f"{REFUSED}: " + " ".join(line.strip() for line in said)
    if returncode in {126, 127}:
        return "the test command could not be started: " + text.strip()[-300:]
    return (
        f"pytest left no report (exit {returncode}): its process ended before the tests did, or the command does not "
        "pass PYTEST_ADDOPTS on (tox: add it to pass_env)"
    )


def read_report(report: Path, exists: Callable[[str], bool]) -> Reading:
    """Read the report at `report`; the reading is incomplete if it is truncated, too large, or says that pytest itself
    broke.

    `exists` knows the files below the folder that the tests ran in, by relative path.
    """
    try:
        data = read_bytes(report.parent, report.name, max_bytes=MAX_REPORT_BYTES + 1)
    except OSError as exc:
        return unreadable("pytest", f"pytest's report cannot be read: {exc.strerror}")
    if len(data) > MAX_REPORT_BYTES:
        return unreadable("pytest", f"pytest's report is larger than {MAX_REPORT_BYTES} bytes")
    try:
        # pytest writes UTF-8; what another encoding is declared, or is not one, is no report of its.
        root = ET.fromstring(data, ET.XMLParser(target=_Elements(), encoding="utf-8"))  # noqa: S314 - without a document type, nothing is expanded
    except _DocumentTypeError:
        return unreadable("pytest", "the report is not one that pytest writes")
    except ET.ParseError:
        return unreadable(
            "pytest", "pytest's report is cut short: its process ended before the report was complete"
        )
    return _read_report(root, exists)


class _DocumentTypeError(Exception):
    """The report contains a document type, which may define entities that expand to more than memory holds."""


class _Elements(ET.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _DocumentTypeError(name, pubid, system)


def _read_report(root: ET.Element, exists: Callable[[str], bool]) -> Reading:
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
        outcome = _case_outcome(case)
        if not classname:
            uncollected.add(node)
        results.append((node, outcome))
        failures.extend(_case_failures(case, node))
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


def _case_outcome(case: ET.Element) -> Outcome:
    found: list[Outcome] = ["passed"]
    for child in case:
        if child.tag == "failure":
            found.append("failed")
        elif child.tag == "error":
            found.append("error")
        elif child.tag == "skipped":
            found.append("xfailed" if child.get("type") == "pytest.xfail" else "skipped")
    return worst(found)


def _case_failures(case: ET.Element, node: str) -> list[Failure]:
    """The failures of a test; records of earlier runs of a rerun test come before those of its last, and do not count."""
    zero_based = case.get("line", "")
    records = read_failure_records(
        entry.get("value", "") for entry in case.iter("property") if entry.get("name") == PROPERTY
    )
    found = []
    for tag in ("failure", "error"):
        children = [child for child in case if child.tag == tag]
        told = [record for record in records if (record.when == "call") == (tag == "failure")]
        for child, record in zip_longest(children, told[-len(children) :] if children else ()):
            detail, message = child.text or "", NOTE.sub("", child.get("message", ""))
            expected, actual = values_in(message or detail)  # of a mock, whose calls are no comparison
            failure = Failure(
                name=node,
                detail=detail,
                message=_failure_message(detail, message),
                expected=expected,
                actual=actual,
                path=case.get("file", ""),
                line=int(zero_based) + 1 if zero_based.isdecimal() and len(zero_based) < MAX_DIGITS else 0,
            )
            found.append(failure if record is None else with_record(failure, record))
    return found


def _failure_message(detail: str, message: str) -> str:
    """The lines that pytest marks by `E`, else the report's message, else what stands at the end."""
    marked = [line[1:] for line in detail.split("\n") if re.match(r"E(?:\s|\Z)", line)]
    if marked:
        return textwrap.dedent("\n".join(marked))
    return message if message.strip() else words_after_frames(detail)


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
