"""What flags leave open is settled by consent, or named."""

import pytest

from clean_room_agent.cli.views.init import TerminalAnswers


def test_a_given_value_needs_no_consent() -> None:
    answers = TerminalAnswers(accept=False, ask=False)
    assert answers.settle("--coding", "coding model", "given", "found") == "given"
    assert answers.missing == []


def test_a_found_value_is_taken_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        TerminalAnswers(accept=True, ask=False).settle("--coding", "coding model", None, "found") == "found"
    )
    assert "coding model: found" in capsys.readouterr().err


def test_what_nobody_gives_is_named_with_its_flag() -> None:
    answers = TerminalAnswers(accept=False, ask=False)
    assert answers.settle("--coding", "coding model", None, "found") is None
    assert answers.settle("--context-window", "window", None, None) is None
    assert answers.missing == ["--coding (coding model; found: found)", "--context-window (window)"]
    assert answers.found_more
    assert not answers.agrees("run them with your privileges")
