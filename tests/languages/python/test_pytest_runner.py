import os
import time
from pathlib import Path

import pytest

from clean_room_agent.languages.python.pytest_runner import read_report

BROKEN_OFF = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="0" skipped="0" tests="2">
<testcase classname="tests.test_a" name="test_one" file="tests/test_a.py" line="0" time="0.001" />
<testcase time="0.000" />
<testcase classname="pytest" name="internal" time="0.000"><error message="internal error">boom</error></testcase>
</testsuite></testsuites>
"""


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
