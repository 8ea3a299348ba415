"""What a person is told of causes: counts in words, and advice that the counts support."""

import pytest

from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.db.raw.failure_causes import Cause, CauseCount, Causes
from clean_room_agent.orchestrator.test_runs.gate import FAILED_BEFORE
from clean_room_agent.report.causes import ADVICE, WORK, explain

TASK = "3f0c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"
TOO_WEAK = "this model is too weak"


def causes(*counts: tuple[str, Cause, int, int], **others: int) -> Causes:
    """`others`: calls of prompts of which every answer was of use."""
    asked = {subject: total for subject, _, _, total in counts if subject}
    return Causes(
        counts=tuple(
            CauseCount(cause=cause, subject=subject, count=count, total=total)
            for subject, cause, count, total in counts
        ),
        asked=tuple({**asked, **others}.items()),
    )


def test_a_plan_that_never_came_names_the_count_and_the_way_out() -> None:
    ending = explain(causes(("meta_plan", Cause.LIMIT, 4, 4), scope_judgment=9), TASK)
    assert ending.lines == ("4 of 4 answers to meta_plan ran to their limit",)
    assert ending.advice == (
        "this model is too weak for planning at this window; try a larger one, or write the plan yourself: "
        "`cra solve --plan FILE`"
    )


@pytest.mark.parametrize(
    "found",
    [
        causes(("meta_plan", Cause.LIMIT, 2, 2)),
        causes(("meta_plan", Cause.UNREADABLE, 3, 5)),
        causes(("refilter", Cause.UNREADABLE, 3, 3), scope_judgment=40),
        causes(("meta_plan", Cause.SERVER, 9, 9)),
        causes(("", Cause.TESTS_RED, 9, 9)),
    ],
    ids=["too few", "too small a share", "judged well elsewhere", "the server's failures", "red tests"],
)
def test_a_model_is_not_called_weak_where_the_counts_do_not_say_so(found: Causes) -> None:
    ending = explain(found, TASK)
    assert TOO_WEAK not in ending.advice
    assert ending.advice


@pytest.mark.parametrize(
    ("prompt", "work"),
    [
        ("function", "for these edits"),
        ("fill", "for these edits"),
        ("step_design", "for planning"),
        ("goal_test", "to write a test of the task"),
        ("scope_batch", "to judge"),
    ],
)
def test_a_weak_model_is_told_for_the_work_that_failed(prompt: str, work: str) -> None:
    ending = explain(causes((prompt, Cause.UNREADABLE, 4, 4)), TASK)
    assert ending.advice.startswith(f"{TOO_WEAK} {work}")


def test_each_prompt_has_its_work() -> None:
    assert set(WORK) == {*BY_NAME}


def test_what_stood_nearest_to_the_end_comes_first() -> None:
    found = causes(
        ("scope_judgment", Cause.UNREADABLE, 5, 50),
        ("part_plan", Cause.UNREADABLE, 1, 2),
        ("", Cause.NOTHING_IN_SCOPE, 1, 3),
        ("", Cause.TESTS_RED, 2, 3),
    )
    ending = explain(found, TASK)
    assert ending.lines == (
        "2 of 3 attempts at steps failed the tests",
        "1 of 2 answers to part_plan could not be read",
        "5 of 50 answers to scope_judgment could not be read",
        "1 of 3 searches for context found nothing in scope",
    )
    assert ending.advice.startswith("`cra show 3f0c8a52 --tests`")


def test_why_answers_held_no_edit_comes_before_that_they_did_not() -> None:
    ending = explain(causes(("", Cause.NO_EDITS, 3, 3), ("implement", Cause.THINKING, 6, 6)), TASK)
    assert ending.lines[0] == "6 of 6 answers to implement went into thinking alone"
    assert ending.advice.startswith("switch thinking off")


def test_refused_edits_say_their_codes_and_the_first_of_them_advises() -> None:
    count = CauseCount(cause=Cause.REFUSED, subject="", count=2, total=2, codes=("WRONG_FILE", "NO_MATCH"))
    ending = explain(Causes(counts=(count,)), TASK)
    assert ending.lines == ("2 of 2 attempts at steps were refused (WRONG_FILE, NO_MATCH)",)
    assert "name them in the task" in ending.advice


def test_a_spent_budget_is_the_cause_whatever_else_was_counted() -> None:
    found = causes(("", Cause.TESTS_RED, 3, 3))
    advice = explain(found, TASK, reason="budget spent: 400 model calls (max_calls = 400)").advice
    assert advice == (
        "raise max_calls, max_tokens or max_minutes in [orchestrator], then `cra solve --resume 3f0c8a52`"
    )


def test_what_failed_before_is_no_cause_but_what_may_fail_is_a_setting() -> None:
    found = causes(("", Cause.TESTS_RED, 2, 4))
    ending = explain(found, TASK, reason=f"{FAILED_BEFORE}: t.py::test")
    assert ending.sentences() == (
        "if they may: `cra config set testing.accept goals`, then `cra solve --resume 3f0c8a52`, which asks no model",
    )


def test_nothing_counted_is_nothing_said() -> None:
    assert explain(Causes(), TASK, reason="2 parts are not done").sentences() == ()


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_words_and_advice(cause: Cause) -> None:
    subject = "" if cause in ATTEMPTS else "task_analysis"
    for number in (1, 2):
        ending = explain(causes((subject, cause, number, 2)), TASK)
        assert ending.lines[0].startswith(f"{number} of 2 ")
        assert "{" not in ending.advice
    assert cause in ADVICE


ATTEMPTS = {
    *(Cause.REFUSED, Cause.NO_EDITS, Cause.IMPORT_BROKEN, Cause.TESTS_RED, Cause.TESTS_TIMEOUT),
    Cause.NOTHING_IN_SCOPE,
}
