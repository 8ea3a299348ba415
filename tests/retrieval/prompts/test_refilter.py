import pytest
from inline_snapshot import snapshot
from tests.retrieval.prompts.inputs import BATCH

from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.retrieval.prompts.refilter import KEEP, REFILTER


def test_refilter_says_how_much_can_stay() -> None:
    assert REFILTER.render(BATCH) == snapshot("""\
## Task
Fix the <b>total</b>

# Instructions: Keep the code that a task needs most

A programmer will do the task above, but not all of the chosen code fits into the prompt. Some of it has to be left out.

Rules:
- Keep a piece if the task changes it.
- Leave a piece out if it is only useful to know.
- Each piece has its size in tokens. What you keep must not be larger than what is named below the list.
- Answer with one JSON object and nothing else: the numbers of the pieces to keep.

Example answer (the numbers of another list):
{"keep": [71, 94]}

## Code
===== candidate 1: a.py
4: total = 0
===== end

===== candidate 2: b.py
===== end


At most about 9 tokens can stay.
Which of these pieces must stay? Answer with the JSON object.\
""")


def test_the_numbers_of_an_answer_have_the_one_label() -> None:
    answer = REFILTER.parse('{"keep": [2]}')
    assert not isinstance(answer, BadAnswer)
    assert answer.numbers() == ((KEEP, (2,)),)


@pytest.mark.parametrize(
    "text", ["", "none", "[1, 2]", '{"relevant": "all"}', '{"change": [1', '{"keep": 1}']
)
def test_broken_answers_are_values(text: str) -> None:
    assert isinstance(REFILTER.parse(text), BadAnswer)
