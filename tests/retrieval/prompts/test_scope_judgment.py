import pytest
from inline_snapshot import snapshot
from tests.retrieval.prompts.inputs import FILE

from clean_room_agent.llm.answers import BadAnswer, Choice
from clean_room_agent.retrieval.prompts.scope_judgment import SCOPE_JUDGMENT


def test_scope_judgment_asks_about_one_file() -> None:
    assert SCOPE_JUDGMENT.render(FILE) == snapshot("""\
## Task
Fix the <b>total</b>

# Instructions: Judge whether a file matters for a task

You choose files for a programmer who will do the task above. You get one file of the repository.

Rules:
- Say yes if the task changes the file.
- Say yes if the change cannot be written without reading the file.
- Say no if the file only has a similar name or topic.
- You see the lines of the file that are nearest to the task, each after its number.
- Answer with one word: yes or no.

## Files to choose from
- a.py
- b.py

## File
===== candidate: a.py
4: total = 0
===== end

Does this file matter for the task? Answer yes or no.\
""")


def test_nothing_chosen_has_no_heading() -> None:
    assert "## Already chosen" not in SCOPE_JUDGMENT.render(FILE)


@pytest.mark.parametrize(("text", "word"), [("yes", "yes"), ("No.", "no")])
def test_an_answer_is_one_of_two_words(text: str, word: str) -> None:
    assert SCOPE_JUDGMENT.parse(text) == Choice(word=word)


def test_another_word_is_no_answer() -> None:
    assert isinstance(SCOPE_JUDGMENT.parse("perhaps"), BadAnswer)
