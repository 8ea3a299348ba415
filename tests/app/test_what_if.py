"""Answers of two models are compared by what they say."""

from typing import Any

import pytest

from clean_room_agent.app.what_if import Compared, Side, plain_answer
from clean_room_agent.llm.answers import BadAnswer, Choice


def compared(then: Any, now: Any) -> Compared:
    then, now = (
        Side(answer=answer, prompt_tokens=1, completion_tokens=1, latency_ms=1) for answer in (then, now)
    )
    return Compared(
        pass_id="", prompt="scope", item="a.py", call_id=1, options={}, decides=(), then=then, now=now
    )


def choice(word: str, confidence: float) -> Choice:
    return Choice(word=word, shares=((word, confidence),))


@pytest.mark.parametrize(
    ("then", "now", "agree"),
    [
        (choice("yes", 0.9), choice("yes", 0.6), True),
        (choice("yes", 0.9), choice("no", 0.9), False),
        (BadAnswer(kind="empty", fault="a"), BadAnswer(kind="not_json", fault="b"), True),
        (BadAnswer(kind="empty", fault="a"), choice("no", 0.9), False),
        (["a.py"], ["a.py"], True),
    ],
)
def test_verdicts_agree_by_their_word_and_unreadable_answers_are_alike(
    then: Any, now: Any, agree: bool
) -> None:
    assert compared(then, now).agree is agree


def test_a_plain_answer_is_what_json_can_say() -> None:
    assert plain_answer(("a", "b")) == ["a", "b"]
