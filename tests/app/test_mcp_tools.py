"""What a command answers, as a tool answers it."""

from clean_room_agent.app.mcp_tools import outcome_of, readable


def test_a_failed_run_is_an_answer_and_a_broken_command_is_not() -> None:
    assert not outcome_of('{"status": "failed"}', 1, "").failed
    refused = outcome_of('{"error": "no", "hint": "do", "exit_code": 2}', 2, "")
    assert (refused.failed, refused.text) == (True, "no\n-> do")
    assert outcome_of("", 3, "x\nerror: gone\n  -> start it\n").text == "error: gone\n  -> start it"
    assert outcome_of("", -9, "").text == "it ended with exit code -9"


def test_what_no_encoding_has_is_written_as_a_question_mark() -> None:
    assert readable("caf\udce9 é \U0001f600 \ud83d") == "caf? é \U0001f600 ?"
