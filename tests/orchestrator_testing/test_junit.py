from pathlib import Path

from clean_room_agent.orchestrator.testing.junit import read_report

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
    assert not reading.whole
    assert "" not in reading.outcomes
    assert reading.outcomes["tests/test_a.py::test_one"] == "passed"
