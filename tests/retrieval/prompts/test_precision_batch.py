import pytest
from inline_snapshot import snapshot
from tests.retrieval.prompts.inputs import BATCH, QUESTION

from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.retrieval.prompts.piece_judgment import CHANGE, READ
from clean_room_agent.retrieval.prompts.precision_batch import PRECISION_BATCH, PrecisionBatchAnswer
from clean_room_agent.retrieval.stage import BatchInputs


def test_precision_batch_numbers_the_pieces() -> None:
    assert PRECISION_BATCH.render(BATCH) == snapshot("""\
## Task
Fix the <b>total</b>

# Instructions: Choose the code that a task changes, and what must be read for it

You choose code for a programmer who will do the task above. You get a numbered list of pieces of code.

Put the number of a piece into one of two lists:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.

Rules:
- Leave out the numbers of all other pieces. A list may be empty.
- Answer with one JSON object and nothing else.

Example answer (the numbers of another list):
{"change": [71], "read": [83, 94]}

## Already chosen
- in.py

## Code
===== candidate 1: a.py
4: total = 0
===== end

===== candidate 2: b.py
===== end

Which of these pieces does the task change, and which must be read? Answer with the JSON object.\
""")


def test_what_is_chosen_has_a_heading_only_where_something_is() -> None:
    bare = BatchInputs(question=QUESTION, options=BATCH.options)
    assert "## Already chosen" not in PRECISION_BATCH.render(bare)
    assert "## Already chosen\n- in.py\n" in PRECISION_BATCH.render(BATCH)


def test_lists_that_a_small_model_forgets_are_empty() -> None:
    assert PRECISION_BATCH.parse('{"change": [1]}') == PrecisionBatchAnswer(change=[1])


def test_the_label_that_shows_most_comes_first() -> None:
    answer = PrecisionBatchAnswer(change=[71], read=[83, 94])
    assert answer.numbers() == ((CHANGE, (71,)), (READ, (83, 94)))


@pytest.mark.parametrize(
    "text", ["", "none", "[1, 2]", '{"relevant": "all"}', '{"change": [1', '{"read": [1]}', '{"keep": 1}']
)
def test_broken_answers_are_values(text: str) -> None:
    assert isinstance(PRECISION_BATCH.parse(text), BadAnswer)
