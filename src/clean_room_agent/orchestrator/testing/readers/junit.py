"""Reading pytest's JUnit report (family xunit1, which also says each test's file) back into node ids."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from clean_room_agent.orchestrator.testing.readers.python_record import PROPERTY, read_records, with_record
from clean_room_agent.orchestrator.testing.results import Failure, Outcome, Reading, TestReport, merge, worst
from clean_room_agent.safe_open import read_bytes

MAX_REPORT_BYTES = 100_000_000
MAX_DIGITS = 10
MAX_DEPTH = 50
"""Folders of a test file that is looked for."""


def read_report(report: Path, exists: Callable[[str], bool]) -> Reading:
    """What the report at `report` says; not whole when it is cut, too large, or tells of a broken pytest.

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
    """A document type begins, wherever it stands: entities may follow, and may stand for more than memory holds."""


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
    """The failures of a test; the records of a rerun's earlier turns come before those of its last, and are none."""
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
    """The node id, pytest's own name of a test (`path::Class::test[param]`), as well as the report tells it.

    `classname` is the test file's path with dots, then its classes; `file` is where the function is written, which
    for an inherited test is another file: then the longest prefix of `classname` that `exists` is taken. A file that
    could not be collected has no `classname`; its path is its name.
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
