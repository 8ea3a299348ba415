"""The prompts of retrieval: what a task asks for, which files are in scope, which of their code is shown."""

from typing import Annotated

from msgspec import Struct
from pydantic import BaseModel, Field

from clean_room_agent.llm.answer_rules import (
    MAX_NUMBER,
    NAME_CHARS,
    PATH_CHARS,
    SENTENCE_CHARS,
    JsonSchema,
    bounds,
    numbers_to,
)
from clean_room_agent.llm.answers import Choice, JsonAnswer, OneWord
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, yes_no_prompt

Numbers = Annotated[list[Annotated[int, bounds(minimum=1, maximum=MAX_NUMBER)]], bounds(maxItems=MAX_NUMBER)]
"""Numbers of a list of candidates, from 1."""

MAX_AREAS = 5
MAX_NAMES = 10
TASK_ANALYSIS_TEMPLATE = (
    f"""\
{KNOWN}"""
    """\
{% if focus %}

## The part of it to do now
{{ focus.strip() | part }}
{% endif %}
{% if tests %}

## Tests
{{ tests }}
{% endif %}

{{ heading }}

Say for a programmer where in the code to look for the task above. You do not solve the task.

Rules:
- intent: one short sentence that says what must be different afterwards.
- areas: files or folders from the list below that the task is likely to change. At most 5.
- keywords: words that the code to be changed is likely to contain. At most 10.
- symbols: names of functions, classes, methods or variables from the list below that the task is likely to change. At most 10.
- Write only names that stand below. Leave a list empty if you are not sure.
- Answer with one JSON object and nothing else.

Example answer:
{{ example }}

## Files found
{% for file in files %}
- {{ file | listed }}
{% endfor %}

## Definitions found
{% for symbol in symbols %}
- {{ symbol | definition }}
{% endfor %}

Where in the code is this? Answer with the JSON object.
"""
)


class BatchInputs(Struct, frozen=True, kw_only=True):
    """Inputs of a prompt that sorts numbered options (from 1)."""

    question: str
    """The task and what is known of it: the same bytes in every call of one request (see `question_text`)."""
    options: tuple[str, ...]
    """Framed, each with its number."""
    chosen: tuple[str, ...] = ()
    """Names of what is in already, without having been asked about."""
    remark: str = ""
    """What else the prompt has to know, e.g. how many tokens are left."""


class SingleInputs(Struct, frozen=True, kw_only=True):
    """Inputs of a prompt that asks about one option."""

    question: str
    option: str
    """Framed."""
    chosen: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Names of all options, this one among them: the same in each of the questions."""


ASKED = """\
{{ question }}

{{ heading }}

"""
"""How every judgment begins, so that a server can cache what is common."""
CHOSEN = """\
{% if chosen %}

## Already chosen
{% for name in chosen %}
- {{ name | listed }}
{% endfor %}
{% endif %}
"""
SCOPE_JUDGMENT_TEMPLATE = (
    f"{ASKED}"
    """\
You choose files for a programmer who will do the task above. You get one file of the repository.

Rules:
- Say yes if the task changes the file.
- Say yes if the change cannot be written without reading the file.
- Say no if the file only has a similar name or topic.
- You see the lines of the file that are nearest to the task, each after its number.
- Answer with one word: yes or no.
"""
    f"{CHOSEN}"
    """\

## Files to choose from
{% for other in others %}
- {{ other | listed }}
{% endfor %}

## File
{{ option | candidate }}
Does this file matter for the task? Answer yes or no.
"""
)
SCOPE_JUDGMENT: Prompt[SingleInputs, Choice] = yes_no_prompt(
    name="scope_judgment", title="Judge whether a file matters for a task", template=SCOPE_JUDGMENT_TEMPLATE
)
RELEVANT = "relevant"
SCOPE_BATCH_TEMPLATE = (
    f"{ASKED}"
    """\
You choose files for a programmer who will do the task above. You get a numbered list of files of the repository.

Rules:
- Choose a file if the task changes it.
- Choose a file if the change cannot be written without reading it.
- Leave a file out if it only has a similar name or topic.
- Each file is shown with the lines that are nearest to the task, each after its number.
- Answer with one JSON object and nothing else: the numbers of the chosen files. The list may be empty.

Example answer (the numbers of another list):
{{ example }}
"""
    f"{CHOSEN}"
    """\

## Files
{% for option in options %}
{{ option | candidate }}
{% endfor %}
Which of these files matter for the task? Answer with the JSON object.
"""
)
CHANGE, READ, SKIP = "change", "read", "skip"
WORD_TOKENS = 4
"""Enough for each of the words."""
PIECE_JUDGMENT_TEMPLATE = (
    f"{ASKED}"
    """\
You choose code for a programmer who will do the task above. You get one piece of code.

Answer with one word:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.
- skip: the change can be written without this code.
"""
    f"{CHOSEN}"
    """\

## Code to choose from
{% for other in others %}
- {{ other | listed }}
{% endfor %}

## Code
{{ option | candidate }}
Does the task change this code, does the change need it to be read, or neither? Answer change, read or skip.
"""
)
PIECE_JUDGMENT: Prompt[SingleInputs, Choice] = Prompt(
    name="piece_judgment",
    role="classifier",
    title="Judge whether a task changes a piece of code",
    system=SYSTEM,
    template=PIECE_JUDGMENT_TEMPLATE,
    answer=OneWord((CHANGE, READ, SKIP)),
    max_answer_tokens=WORD_TOKENS,
    example="change",
)
PRECISION_BATCH_TEMPLATE = (
    f"{ASKED}"
    """\
You choose code for a programmer who will do the task above. You get a numbered list of pieces of code.

Put the number of a piece into one of two lists:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.

Rules:
- Leave out the numbers of all other pieces. A list may be empty.
- Answer with one JSON object and nothing else.

Example answer (the numbers of another list):
{{ example }}
"""
    f"{CHOSEN}"
    """\

## Code
{% for option in options %}
{{ option | candidate }}
{% endfor %}
Which of these pieces does the task change, and which must be read? Answer with the JSON object.
"""
)
KEEP = "keep"
REFILTER_TEMPLATE = (
    f"{ASKED}"
    """\
A programmer will do the task above, but not all of the chosen code fits into the prompt. Some of it has to be left out.

Rules:
- Keep a piece if the task changes it.
- Leave a piece out if it is only useful to know.
- Each piece has its size in tokens. What you keep must not be larger than what is named below the list.
- Answer with one JSON object and nothing else: the numbers of the pieces to keep.

Example answer (the numbers of another list):
{{ example }}

## Code
{% for option in options %}
{{ option | candidate }}
{% endfor %}

{{ remark | figures }}
Which of these pieces must stay? Answer with the JSON object.
"""
)


class TaskAnalysisInputs(Struct, frozen=True, kw_only=True):
    """The task, what its tests show, and what search found for it; texts may be empty."""

    task: str
    focus: str
    evidence: str
    tests: str
    """The source of the failing tests, framed."""
    files: tuple[str, ...]
    """Paths, the nearest first."""
    symbols: tuple[str, ...]
    """`name (path)`, the nearest first."""


class TaskAnalysisAnswer(BaseModel):
    """Names that may or may not exist: they are looked up."""

    intent: Annotated[str, bounds(maxLength=SENTENCE_CHARS)]
    areas: Annotated[list[Annotated[str, bounds(maxLength=PATH_CHARS)]], bounds(maxItems=MAX_AREAS)]
    keywords: Annotated[list[Annotated[str, bounds(maxLength=NAME_CHARS)]], bounds(maxItems=MAX_NAMES)]
    symbols: Annotated[list[Annotated[str, bounds(maxLength=NAME_CHARS)]], bounds(maxItems=MAX_NAMES)]


TASK_ANALYSIS: Prompt[TaskAnalysisInputs, TaskAnalysisAnswer] = Prompt(
    name="task_analysis",
    role="reasoning",
    title="Say where in the code a task is to be looked for",
    system=SYSTEM,
    template=TASK_ANALYSIS_TEMPLATE,
    answer=JsonAnswer(TaskAnalysisAnswer),
    max_answer_tokens=400,
    example=(
        '{"intent": "Young quokkas are counted too.", "areas": ["quokka_zoo/pen.py"], '
        '"keywords": ["quokka", "young_quokkas"], "symbols": ["count_quokkas", "QuokkaPen.young"]}'
    ),
)


def _to_the_list(schema: JsonSchema, inputs: BatchInputs) -> JsonSchema:
    """The schema of an answer with numbers of the list that is shown."""
    return numbers_to(schema, len(inputs.options))


class SortedAnswer(BaseModel):
    """Numbers of the list, from 1, by label; what is in no list is left out."""

    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each label with its numbers, from the label that shows most to the one that shows least."""
        return tuple((label, tuple(getattr(self, label))) for label in type(self).model_fields)


class ScopeBatchAnswer(SortedAnswer):
    """One label, `RELEVANT`."""

    relevant: Numbers


SCOPE_BATCH: Prompt[BatchInputs, ScopeBatchAnswer] = Prompt(
    name="scope_batch",
    role="reasoning",
    title="Choose the files that matter for a task",
    system=SYSTEM,
    template=SCOPE_BATCH_TEMPLATE,
    answer=JsonAnswer(ScopeBatchAnswer),
    max_answer_tokens=256,
    example='{"relevant": [71, 94]}',
    narrow=_to_the_list,
)


class PrecisionBatchAnswer(SortedAnswer):
    """Two labels, `CHANGE` and `READ`."""

    change: Numbers
    read: Numbers = Field(default_factory=list)


PRECISION_BATCH: Prompt[BatchInputs, PrecisionBatchAnswer] = Prompt(
    name="precision_batch",
    role="reasoning",
    title="Choose the code that a task changes, and what must be read for it",
    system=SYSTEM,
    template=PRECISION_BATCH_TEMPLATE,
    answer=JsonAnswer(PrecisionBatchAnswer),
    max_answer_tokens=400,
    example='{"change": [71], "read": [83, 94]}',
    narrow=_to_the_list,
)


class RefilterAnswer(SortedAnswer):
    """One label, `KEEP`."""

    keep: Numbers


REFILTER: Prompt[BatchInputs, RefilterAnswer] = Prompt(
    name="refilter",
    role="reasoning",
    title="Keep the code that a task needs most",
    system=SYSTEM,
    template=REFILTER_TEMPLATE,
    answer=JsonAnswer(RefilterAnswer),
    max_answer_tokens=256,
    example='{"keep": [71, 94]}',
    narrow=_to_the_list,
)
