"""What a command answers, as a tool answers it."""

from pathlib import Path

from clean_room_agent.app.mcp_tools import PlanArguments, SolveArguments, outcome_of, readable


def test_a_failed_run_is_an_answer_and_a_broken_command_is_not() -> None:
    assert not outcome_of('{"status": "failed"}', 1, "").failed
    refused = outcome_of('{"error": "no", "hint": "do", "exit_code": 2}', 2, "")
    assert (refused.failed, refused.text) == (True, "no\n-> do")
    assert outcome_of("", 3, "x\nerror: gone\n  -> start it\n").text == "error: gone\n  -> start it"
    assert outcome_of("", -9, "").text == "it ended with exit code -9"


def test_what_no_encoding_has_is_written_as_a_question_mark() -> None:
    assert readable("caf\udce9 é \U0001f600 \ud83d") == "caf? é \U0001f600 ?"


def test_how_a_task_is_judged_is_passed_on_so_that_nothing_is_taken_for_a_flag() -> None:
    given = {"checks": ["assert a == 1", "--apply"], "tests": ["t.py::a"], "files": ["a.py"]}
    for tool in (SolveArguments, PlanArguments):
        command = tool.model_validate({"task": "x", **given}).command(Path("/r"))
        assert command[-6:] == (
            "--check=assert a == 1",
            "--check=--apply",
            "--test=t.py::a",
            "--file=a.py",
            "--",
            "x",
        )
