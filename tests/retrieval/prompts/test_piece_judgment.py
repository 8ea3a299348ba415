import pytest
from inline_snapshot import snapshot
from tests.retrieval.prompts.inputs import FILE, QUESTION

from clean_room_agent.artifacts.context import frame
from clean_room_agent.llm.answers import BadAnswer, Choice
from clean_room_agent.retrieval.prompts.piece_judgment import PIECE_JUDGMENT
from clean_room_agent.retrieval.stage import SingleInputs


def test_piece_judgment_asks_about_one_piece() -> None:
    inputs = SingleInputs(
        question=QUESTION,
        option=frame("candidate: a.py :: total (lines 1-2)", "def total(rows):\n    return 0\n", "====="),
        chosen=("in.py :: rows",),
        others=("a.py :: total (lines 1-2)",),
    )
    assert PIECE_JUDGMENT.render(inputs) == snapshot("""\
## Task
Fix the <b>total</b>

# Instructions: Judge whether a task changes a piece of code

You choose code for a programmer who will do the task above. You get one piece of code.

Answer with one word:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.
- skip: the change can be written without this code.

## Already chosen
- in.py :: rows

## Code to choose from
- a.py :: total (lines 1-2)

## Code
===== candidate: a.py :: total (lines 1-2)
def total(rows):
    return 0
===== end

Does the task change this code, does the change need it to be read, or neither? Answer change, read or skip.\
""")


def test_nothing_chosen_has_no_heading() -> None:
    assert "## Already chosen" not in PIECE_JUDGMENT.render(FILE)


@pytest.mark.parametrize(("text", "word"), [("change", "change"), ("Read.", "read"), ("skip", "skip")])
def test_an_answer_is_one_of_three_words(text: str, word: str) -> None:
    assert PIECE_JUDGMENT.parse(text) == Choice(word=word)


def test_another_word_is_no_answer() -> None:
    assert isinstance(PIECE_JUDGMENT.parse("yes"), BadAnswer)
