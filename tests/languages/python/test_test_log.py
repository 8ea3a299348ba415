import json
from pathlib import Path

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Failure, Reading, TestReport
from clean_room_agent.languages.python.test_log import (
    read_failure_records,
    with_record,
    with_records_of_unittest,
)
from clean_room_agent.languages.test_runner import guard_folder


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
    assert [one.left for one in read_failure_records([record(), "{", "{}", b"\xff"])] == ["1"]


def test_a_failure_has_the_values_that_were_compared_and_where() -> None:
    (read,) = read_failure_records([record()])
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
