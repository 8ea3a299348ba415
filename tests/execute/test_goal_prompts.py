"""What a model is asked about a call, and how its answer is read."""

import pytest

from clean_room_agent.execute.goal_prompts import (
    GOAL_TEST,
    Expectation,
    GoalInputs,
    read_expectation,
    stands_in,
)
from clean_room_agent.llm.answers import BadAnswer

TASK = "ordinalize(11) is 11st, but numbers from 11 to 13 end in th"


def test_the_question_is_short_and_about_one_call() -> None:
    text = GOAL_TEST.render(GoalInputs(task=TASK, call="ordinalize(11)", gives="'11st'"))
    assert "## What it gives now\nordinalize(11) == '11st'\n" in text
    assert text.endswith("What should ordinalize(11) give? Answer with the line.")
    assert len(text) < 700


def test_without_a_call_it_is_about_definitions() -> None:
    text = GOAL_TEST.render(GoalInputs(task=TASK, definitions=("def ordinalize(n) in numbers.py",)))
    assert "def ordinalize(n) in numbers.py" in text
    assert "- The line is `CALL == VALUE` or `CALL raises ERROR`." in text


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("f(10) == 4", Expectation(call="f(10)", value="4")),
        ("```python\nassert f(10) == [1, 2]\n```", Expectation(call="f(10)", value="[1, 2]")),
        ("`f('a == b') === 'c'`;", Expectation(call="f('a == b')", value="'c'")),
        ("f(10) is None", Expectation(call="f(10)", value="None")),
        ("f(10)[0] == 4", Expectation(call="f(10)[0]", value="4")),
        ("f(10) raises ValueError", Expectation(call="f(10)", value="ValueError", raises=True)),
        ("Here it is:\nf(10) == 4\nf(11) == 5", Expectation(call="f(10)", value="4")),
    ],
)
def test_the_first_line_of_the_right_form_counts(answer: str, read: Expectation) -> None:
    assert read_expectation(answer) == read


@pytest.mark.parametrize("answer", ["f(10)", "x == 4", "f(10) ==", "4", "f('a == 4"])
def test_anything_else_is_no_answer(answer: str) -> None:
    assert isinstance(read_expectation(answer), BadAnswer)


def test_a_value_stands_in_the_words_where_all_that_it_is_made_of_does() -> None:
    assert stands_in("[34, 33, 33]", "gives 34, 33, 33")
    assert stands_in("'a-b'", "should be a-b")
    assert stands_in("None", "whatever")
    assert not stands_in("[34, 35]", "gives 34, 33")
    assert not stands_in("3", "30 or 13 or 3.5x or 0.3")
