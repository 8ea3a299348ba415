import io

from msgspec.structs import replace
from rich.console import Console
from tests.report.conftest import Solved

from clean_room_agent.report.calls import attempt_diffs, render_windows, window_uses, windows_object
from clean_room_agent.report.prompt_lines import BEFORE_SPANS


def test_of_the_attempts_those_that_stand_can_be_asked_for_alone(solved: Solved) -> None:
    every = attempt_diffs(solved.trace, accepted_only=False)
    assert [diff.stands for diff in every] == [False, True, True]
    assert attempt_diffs(solved.trace, accepted_only=True) == every[1:]


def test_a_window_is_divided_into_rules_task_code_and_the_rest(solved: Solved) -> None:
    lines = windows_object(window_uses(solved.conn, solved.trace))
    assert [line["call_id"] for line in lines] == [call.id for call in solved.trace.calls]
    for line in lines:
        assert line["estimated"] + line["answer_limit"] + line["slack"] == line["window"]
        assert abs(line["rules"] + line["task"] + line["code"] + line["rest"] - line["estimated"]) <= 2
    implementing = [line for line in lines if line["call_type"] == "implement"]
    assert all(line["code"] and line["task"] for line in implementing)


def test_of_calls_of_an_old_record_the_shares_are_not_guessed(solved: Solved) -> None:
    (use, *_) = window_uses(solved.conn, solved.trace)
    console = Console(file=io.StringIO(), width=120)
    console.print(render_windows((replace(use, rules=None, task=None, code=None, rest=None),)))
    assert isinstance(console.file, io.StringIO)
    assert BEFORE_SPANS in console.file.getvalue()
