import pytest
from inline_snapshot import snapshot

from clean_room_agent.artifacts.context import frame
from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.retrieval.prompts.task_analysis import TASK_ANALYSIS, TaskAnalysisInputs


def test_task_analysis_shows_what_was_found_first_and_asks_last() -> None:
    inputs = TaskAnalysisInputs(
        task="Fix it",
        focus="the cart",
        evidence="failing test: t.py::test_total",
        tests=frame(
            "test: t.py :: test_total (lines 1-2)", "def test_total():\n    assert total() == 3\n", "====="
        ),
        files=("shop/cart.py",),
        symbols=("Cart.total (shop/cart.py)",),
    )
    assert TASK_ANALYSIS.render(inputs) == snapshot("""\
# Context

## Task
Fix it

## What the tests show now
failing test: t.py::test_total

## The part of it to do now
the cart

## Tests
===== test: t.py :: test_total (lines 1-2)
def test_total():
    assert total() == 3
===== end


# Instructions: Say where in the code a task is to be looked for

Say for a programmer where in the code to look for the task above. You do not solve the task.

Rules:
- intent: one short sentence that says what must be different afterwards.
- areas: files or folders from the list below that the task is likely to change. At most 5.
- keywords: words that the code to be changed is likely to contain. At most 10.
- symbols: names of functions, classes, methods or variables from the list below that the task is likely to change. At most 10.
- Write only names that stand below. Leave a list empty if you are not sure.
- Answer with one JSON object and nothing else.

Example answer:
{"intent": "Young quokkas are counted too.", "areas": ["quokka_zoo/pen.py"], "keywords": ["quokka", "young_quokkas"], "symbols": ["count_quokkas", "QuokkaPen.young"]}

## Files found
- shop/cart.py

## Definitions found
- Cart.total (shop/cart.py)

Where in the code is this? Answer with the JSON object.\
""")


def test_task_analysis_leaves_out_what_is_not_there() -> None:
    inputs = TaskAnalysisInputs(task="Fix it", focus="", evidence="", tests="", files=(), symbols=())
    rendered = TASK_ANALYSIS.render(inputs)
    for heading in ("## The part", "## What the tests", "## Tests"):
        assert heading not in rendered


@pytest.mark.parametrize(
    "text", ["", "none", "[1, 2]", '{"relevant": "all"}', '{"change": [1', '{"keep": 1}']
)
def test_broken_answers_are_values(text: str) -> None:
    assert isinstance(TASK_ANALYSIS.parse(text), BadAnswer)
