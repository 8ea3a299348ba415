import json
import os
import time
from pathlib import Path

import pytest

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.orchestrator.testing.python_reports import (
    read_records,
    read_report,
    read_unittest,
    with_record,
    with_records_of_unittest,
)
from clean_room_agent.orchestrator.testing.results import Failure, Reading, TestReport
from clean_room_agent.orchestrator.testing.test_commands import guard_folder

BROKEN_OFF = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="0" skipped="0" tests="2">
<testcase classname="tests.test_a" name="test_one" file="tests/test_a.py" line="0" time="0.001" />
<testcase time="0.000" />
<testcase classname="pytest" name="internal" time="0.000"><error message="internal error">boom</error></testcase>
</testsuite></testsuites>
"""
OUTPUT = "test_a (t.Box.test_a) ... skipped {}\n\n" + "-" * 70 + "\nRan 1 test in 0.001s\n\nOK (skipped=1)\n"


def record(name: str = "", left: str = "1", when: str = "FAIL") -> str:
    return json.dumps(
        {
            "operator": "==",
            "left": left,
            "right": "2",
            "frames": [["a.py", 3, "split"]],
            "when": when,
            "name": name,
        }
    )


def test_what_is_no_record_is_left_out() -> None:
    assert [one.left for one in read_records([record(), "{", "{}", b"\xff"])] == ["1"]


def test_a_failure_has_the_values_that_were_compared_and_where() -> None:
    (read,) = read_records([record()])
    failure = with_record(Failure(name="t", detail="d"), read)
    assert (failure.actual, failure.operator, failure.expected) == ("1", "==", "2")
    assert failure.frames == (StackFrame(path="a.py", line=3, function="split"),)


def test_failures_of_one_name_get_their_records_in_order_errors_first(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    folder = guard_folder(report)
    folder.mkdir()
    left = [record("t", "fail 1"), record("t", "error", "ERROR"), record("t", "fail 2")]
    (folder / "python-1.failures").write_text("\n".join(left))
    failures = tuple(Failure(name="t", detail="d") for _ in range(4))
    read = with_records_of_unittest(Reading(report=TestReport(runner="unittest"), failures=failures), report)
    assert [failure.actual for failure in read.failures] == ["error", "fail 1", "fail 2", ""]


def test_the_nameless_test_under_which_pytest_broke_is_no_result(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    report.write_text(BROKEN_OFF, encoding="utf-8")
    reading = read_report(report, lambda _path: True)
    assert not reading.report.whole
    assert "" not in reading.report.outcomes
    assert reading.report.outcomes["tests/test_a.py::test_one"] == "passed"


@pytest.mark.parametrize("encoding", ["no-such", "utf-16", "euc_jp", "idna"])
def test_a_report_that_declares_another_encoding_is_read_or_refused(encoding: str, tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    report.write_text(BROKEN_OFF.replace("utf-8", encoding), encoding="utf-8")
    assert not read_report(report, lambda _path: True).report.whole


def test_numbers_and_names_without_end_are_bounded(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    text = BROKEN_OFF.replace('line="0"', f'line="{"9" * 5000}"').replace("tests.test_a", "a." * 50_000)
    report.write_text(text, encoding="utf-8")
    started = time.process_time()
    read_report(report, lambda _path: False)
    assert time.process_time() - started < 2


def test_a_report_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results.xml")
    assert "cannot be read" in read_report(tmp_path / "results.xml", lambda _path: True).report.problem


@pytest.mark.parametrize("before", ["", "<!-- " + "x" * 5_000 + " -->", " " * 5_000])
def test_a_document_type_is_refused_wherever_it_stands(before: str, tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    head = f'<?xml version="1.0"?>{before}<!DOCTYPE t [<!ENTITY e0 "x">{entities}]>'
    (tmp_path / "r.xml").write_text(f'{head}<testsuites><testcase name="&e12;" classname="a"/></testsuites>')
    reading = read_report(tmp_path / "r.xml", lambda _: False)
    assert (reading.report.whole, reading.report.outcomes) == (False, {})
    assert reading.report.problem == "the report is not one that pytest writes"


@pytest.mark.parametrize("reason", ["'no'", '"it\'s"', "", "é"])
def test_a_skipped_test_is_one_however_its_reason_is_quoted(reason: str) -> None:
    reading = read_unittest(OUTPUT.format(reason))
    assert reading is not None
    assert set(reading.report.outcomes.values()) <= {"skipped"}
    assert not reason or reading.report.outcomes == {"t.Box.test_a": "skipped"}
