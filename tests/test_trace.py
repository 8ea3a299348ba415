"""The statements of planning/trace.md, run against the record of a real solve: the law of traceability, by SQL alone."""

import json
import re
from pathlib import Path

import pytest
from testing.repositories import git
from tests.report.scripted_solve import LINE, solved_sample
from tests.report.trace_page import PATH, Answered, answers_on_page, ask

from clean_room_agent.git.history import read_blob
from clean_room_agent.git.repository import open_repository


@pytest.fixture(scope="module")
def solved() -> tuple[Path, str]:
    return solved_sample()


@pytest.fixture(scope="module")
def answers(solved: tuple[Path, str]) -> tuple[Answered, ...]:
    top, run = solved
    return ask(top / ".clean_room" / "raw.sqlite", run)


def rows(answers: tuple[Answered, ...], words: str) -> list[dict[str, object]]:
    """The rows of the one statement that holds `words`."""
    (found,) = (entry for entry in answers if words in entry.statement)
    return [dict(row) for row in found.rows]


def test_the_line_leads_to_its_accepted_attempt(answers: tuple[Answered, ...]) -> None:
    (attempt,) = rows(answers, "a.edit_report")
    assert str(attempt["pass"]).endswith(":impl:split:s1:retry_1")
    assert (attempt["attempt"], attempt["outcome"]) == (2, "applied_and_passed")
    (edit,) = json.loads(str(attempt["edit_report"]))
    assert (edit["file_path"], edit["code"]) == (PATH, "APPLIED")


def test_the_attempt_leads_to_the_answer_that_holds_the_line(answers: tuple[Answered, ...]) -> None:
    (attempt,) = rows(answers, "a.edit_report")
    (call,) = rows(answers, "c.response\n")
    assert call["id"] == attempt["call_id"]
    assert (call["call_type"], call["reading"]) == ("implement", "parsed")
    assert LINE in str(call["response"]).split("\n")


def test_the_answer_leads_to_the_prompt_that_showed_the_file_whole(
    answers: tuple[Answered, ...], solved: tuple[Path, str]
) -> None:
    (prompt,) = rows(answers, "AS question")
    head, _, shown = str(prompt["context"]).partition("\n")
    before = read_blob(open_repository(solved[0]), git(solved[0], "rev-parse", "HEAD").strip(), PATH)
    assert before is not None
    assert head.startswith(f"{PATH} (lines 1-")
    assert shown.rstrip("\n") == before.decode().rstrip("\n")
    assert "split_amount" in str(prompt["question"])


def test_the_prompt_leads_to_the_decisions_that_let_the_file_in(answers: tuple[Answered, ...]) -> None:
    found = rows(answers, "AS own_pass")
    assert {row["own_pass"] for row in found} == {0, 1}
    assert [row["stage"] for row in found][:3] == ["scope", "precision", "assembly"]
    last = found[-1]
    assert (last["own_pass"], last["stage"], last["included"], last["detail"]) == (
        1,
        "assembly",
        1,
        "primary",
    )
    assert all(row["reason"] for row in found)


def test_the_attempt_leads_to_the_tests_that_judged_it(answers: tuple[Answered, ...]) -> None:
    found = rows(answers, "v.newly_failing")
    assert [(row["kind"], row["outcome"]) for row in found] == [
        ("baseline", None),
        ("attempt", "insufficient_context"),
        ("attempt", "applied_and_passed"),
        ("final", None),
    ]
    assert [row["passed"] for row in found] == ["6 of 8", "5 of 8", "7 of 8", "8 of 8"]
    assert json.loads(str(found[1]["newly_failing"]))
    assert json.loads(str(found[2]["newly_failing"])) == []


def test_every_statement_but_the_table_answers_and_the_page_shows_its_columns(
    answers: tuple[Answered, ...],
) -> None:
    for entry, shown in zip(answers, answers_on_page(), strict=True):
        if entry.statement.startswith("CREATE TEMP TABLE"):
            continue
        assert entry.rows, entry.statement
        for name in entry.rows[0]:
            assert re.search(rf"^ *{name} =", shown, flags=re.MULTILINE), f"{name} is not on the page"
