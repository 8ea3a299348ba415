from inline_snapshot import snapshot

from clean_room_agent.llm.answers import BadAnswer, Verdict
from clean_room_agent.retrieval.prompts.precision_batch import PRECISION_BATCH, PrecisionBatchAnswer
from clean_room_agent.retrieval.prompts.precision_primary import PRECISION_PRIMARY
from clean_room_agent.retrieval.prompts.precision_relevant import PRECISION_RELEVANT
from clean_room_agent.retrieval.prompts.precision_supporting import PRECISION_SUPPORTING
from clean_room_agent.retrieval.prompts.refilter import REFILTER
from clean_room_agent.retrieval.prompts.scope_batch import SCOPE_BATCH
from clean_room_agent.retrieval.prompts.scope_judgment import SCOPE_JUDGMENT
from clean_room_agent.retrieval.prompts.task_analysis import TASK_ANALYSIS, TaskAnalysisInputs
from clean_room_agent.retrieval.stage import BatchInputs, SingleInputs

BATCH = BatchInputs(
    question="## Task\nFix the <b>total</b>", options=("a.py | found: search", "b.py"), remark="Room for 9."
)
PIECE = (PRECISION_RELEVANT, PRECISION_PRIMARY, PRECISION_SUPPORTING)


def test_task_analysis_shows_folders_first_and_asks_last() -> None:
    inputs = TaskAnalysisInputs(
        folders=("shop/ (3 files)",), task="Fix it", focus="the cart", evidence="message: boom"
    )
    assert TASK_ANALYSIS.render(inputs) == snapshot("""\
# Say where in the code a task is to be looked for

You read a task for a programmer and say where in the code to look. You do not solve the task.

Rules:
- intent: one short sentence that says what must be different afterwards.
- areas: folders or files from the list of folders that the task is likely about. At most 5.
- keywords: words that the code to be changed is likely to contain. At most 10.
- symbols: names of functions, classes, methods or variables that the task is likely about. At most 10.
- Write only names that the task or the list gives you, or that follow from them. Leave a list empty if you are not sure.
- Answer with one JSON object and nothing else.

Example answer:
{"intent": "Redirects keep the query string.", "areas": ["src/shop/http"], "keywords": ["redirect", "query", "location"], "symbols": ["build_redirect", "Response.location"]}

## Folders
shop/ (3 files)

## Task
Fix it

## The part of it to do now
the cart

## What the tests showed
message: boom

Where in the code is this? Answer with the JSON object.\
""")


def test_task_analysis_leaves_out_what_is_not_there() -> None:
    rendered = TASK_ANALYSIS.render(TaskAnalysisInputs(folders=(), task="Fix it", focus="", evidence=""))
    assert "## The part" not in rendered
    assert "## What the tests" not in rendered


def test_scope_batch_numbers_the_files() -> None:
    assert SCOPE_BATCH.render(BATCH) == snapshot("""\
# Choose the files that matter for a task

You choose files for a programmer. You get a task and a numbered list of files of the repository.

Rules:
- Choose a file if the task will change it.
- Choose a file if the change cannot be written without reading it.
- Leave a file out if it only has a similar name or topic.
- Each file has its path, why it was found, and some names that it defines.
- Answer with one JSON object and nothing else: the numbers of the chosen files. The list may be empty.

Example answer:
{"relevant": [1, 4]}

## Task
Fix the <b>total</b>

## Files
1. a.py | found: search
2. b.py

Which of these files matter for the task? Answer with the JSON object.\
""")


def test_scope_judgment_asks_about_one_file() -> None:
    assert SCOPE_JUDGMENT.render(
        SingleInputs(question=BATCH.question, option="a.py | x", others=("a.py", "b.py"))
    ) == snapshot("""\
# Judge whether a file matters for a task

You choose files for a programmer. You get a task and one file of the repository.

Rules:
- Say yes if the task will change the file.
- Say yes if the change cannot be written without reading the file.
- Say no if the file only has a similar name or topic.
- Answer with one word: yes or no.

## Task
Fix the <b>total</b>

## Files to choose from
- a.py
- b.py

## File
a.py | x

Does this file matter for the task? Answer yes or no.\
""")


def test_precision_batch_numbers_the_pieces() -> None:
    assert PRECISION_BATCH.render(BATCH) == snapshot("""\
# Choose the code that a task needs, and how much of it

You choose code for a programmer who will do a task. You get the task and a numbered list of pieces of code.

Put the number of a piece into one of three lists:
- primary: this code must be changed, or its every line must be read to write the change.
- supporting: the change calls it or is called by it; its signature and description are enough.
- type_context: only its name and signature are of use.

Rules:
- Leave out the numbers of pieces that the task does not need.
- If you think that a piece may have to be changed, put it into primary.
- Answer with one JSON object and nothing else.

Example answer:
{"primary": [2], "supporting": [1, 5], "type_context": [7]}

## Task
Fix the <b>total</b>

## Code
1. a.py | found: search
2. b.py

Which of these pieces are primary, supporting, or type_context? Answer with the JSON object.\
""")


def test_the_three_questions_about_a_piece_go_from_needed_to_whole_to_described() -> None:
    piece = SingleInputs(
        question=BATCH.question, option="a.py :: total | def total(rows)", others=("a.py :: total",)
    )
    assert PRECISION_RELEVANT.render(piece) == snapshot("""\
# Judge whether a task needs a piece of code

You choose code for a programmer who will do a task. You get the task and one piece of code of the repository.

Rules:
- Say yes if the task will change this code.
- Say yes if the change will call this code, is called by it, or cannot be written without knowing it.
- Say no if it only has a similar name or topic.
- Answer with one word: yes or no.

## Task
Fix the <b>total</b>

## Code to choose from
- a.py :: total

## Code
a.py :: total | def total(rows)

Does the programmer need to know this code? Answer yes or no.\
""")
    assert PRECISION_PRIMARY.render(piece) == snapshot("""\
# Judge whether a task changes a piece of code

You choose code for a programmer who will do a task. You get the task and one piece of code that is of use for it.

Rules:
- Say yes if the task will change this code, or may have to.
- Say yes if its every line must be read to write the change.
- Say no if it is enough to know what this code does and how it is called.
- Answer with one word: yes or no.

## Task
Fix the <b>total</b>

## Code to choose from
- a.py :: total

## Code
a.py :: total | def total(rows)

Must the programmer change this code, or read its every line? Answer yes or no.\
""")
    assert PRECISION_SUPPORTING.render(piece) == snapshot("""\
# Judge how much of a piece of code a task needs

You choose code for a programmer who will do a task. You get the task and one piece of code that the task will not change.

Rules:
- Say yes if the change will call this code, or is called by it, so that what it does must be known.
- Say no if its name and its signature are enough.
- Answer with one word: yes or no.

## Task
Fix the <b>total</b>

## Code to choose from
- a.py :: total

## Code
a.py :: total | def total(rows)

Does the programmer need the description of this code? Answer yes or no.\
""")


def test_refilter_says_how_much_room_there_is() -> None:
    assert REFILTER.render(BATCH) == snapshot("""\
# Keep the code that a task needs most

A programmer will do a task, but not all of the chosen code fits on the page. Some of it has to go.

Rules:
- Keep a piece if the task will change it.
- Let a piece go if it is only useful to know.
- Each piece has its size in tokens. What you keep must fit in the room that is named below the list.
- Answer with one JSON object and nothing else: the numbers of the pieces to keep.

Example answer:
{"keep": [1, 3]}

## Task
Fix the <b>total</b>

## Code
1. a.py | found: search
2. b.py

Room for 9.
Which of these pieces must stay? Answer with the JSON object.\
""")


def test_titles_are_unique() -> None:
    prompts = (TASK_ANALYSIS, SCOPE_BATCH, SCOPE_JUDGMENT, PRECISION_BATCH, *PIECE, REFILTER)
    assert len({prompt.title for prompt in prompts}) == len(prompts)


def test_each_example_is_an_answer_that_parses() -> None:
    assert not isinstance(TASK_ANALYSIS.parse(TASK_ANALYSIS.example), BadAnswer)
    assert not isinstance(SCOPE_BATCH.parse(SCOPE_BATCH.example), BadAnswer)
    for prompt in (SCOPE_JUDGMENT, *PIECE):
        assert prompt.parse(prompt.example) == Verdict(yes=True, confidence=None)
    assert PRECISION_BATCH.parse(PRECISION_BATCH.example) == PrecisionBatchAnswer(
        primary=[2], supporting=[1, 5], type_context=[7]
    )
    assert not isinstance(REFILTER.parse(REFILTER.example), BadAnswer)


def test_lists_that_a_small_model_forgets_are_empty() -> None:
    assert PRECISION_BATCH.parse('{"primary": [1]}') == PrecisionBatchAnswer(primary=[1])


def test_broken_answers_are_values() -> None:
    for prompt in (SCOPE_BATCH, PRECISION_BATCH, REFILTER, TASK_ANALYSIS):
        for text in ("", "none", "[1, 2]", '{"relevant": "all"}', '{"primary": [1'):
            assert isinstance(prompt.parse(text), BadAnswer)
