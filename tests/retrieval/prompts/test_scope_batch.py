import pytest
from inline_snapshot import snapshot
from tests.retrieval.prompts.inputs import BATCH, QUESTION

from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.retrieval.prompts.scope_batch import RELEVANT, SCOPE_BATCH
from clean_room_agent.retrieval.stage import BatchInputs


def test_scope_batch_numbers_the_files() -> None:
    assert SCOPE_BATCH.render(BATCH) == snapshot("""\
## Task
Fix the <b>total</b>

# Instructions: Choose the files that matter for a task

You choose files for a programmer who will do the task above. You get a numbered list of files of the repository.

Rules:
- Choose a file if the task changes it.
- Choose a file if the change cannot be written without reading it.
- Leave a file out if it only has a similar name or topic.
- Each file is shown with the lines that are nearest to the task, each after its number.
- Answer with one JSON object and nothing else: the numbers of the chosen files. The list may be empty.

Example answer (the numbers of another list):
{"relevant": [71, 94]}

## Already chosen
- in.py

## Files
===== candidate 1: a.py
4: total = 0
===== end

===== candidate 2: b.py
===== end

Which of these files matter for the task? Answer with the JSON object.\
""")


def test_what_is_chosen_has_a_heading_only_where_something_is() -> None:
    bare = BatchInputs(question=QUESTION, options=BATCH.options)
    assert "## Already chosen" not in SCOPE_BATCH.render(bare)
    assert "## Already chosen\n- in.py\n" in SCOPE_BATCH.render(BATCH)


def test_the_numbers_of_an_answer_have_the_one_label() -> None:
    answer = SCOPE_BATCH.parse('{"relevant": [2, 1]}')
    assert not isinstance(answer, BadAnswer)
    assert answer.numbers() == ((RELEVANT, (2, 1)),)


@pytest.mark.parametrize(
    "text", ["", "none", "[1, 2]", '{"relevant": "all"}', '{"change": [1', '{"keep": 1}']
)
def test_broken_answers_are_values(text: str) -> None:
    assert isinstance(SCOPE_BATCH.parse(text), BadAnswer)
