from inline_snapshot import snapshot
from tests.retrieval.prompt_inputs import BATCH, FILE, QUESTION

from clean_room_agent.artifacts.context import frame
from clean_room_agent.retrieval.prompts import (
    PIECE_JUDGMENT,
    PRECISION_BATCH,
    REFILTER,
    SCOPE_BATCH,
    SCOPE_JUDGMENT,
    TASK_ANALYSIS,
    BatchInputs,
    PrecisionBatchAnswer,
    SingleInputs,
    TaskAnalysisInputs,
)


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


def test_lists_that_a_small_model_forgets_are_empty() -> None:
    assert PRECISION_BATCH.parse('{"change": [1]}') == PrecisionBatchAnswer(change=[1])


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
