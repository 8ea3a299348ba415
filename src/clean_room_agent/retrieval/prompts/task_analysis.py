"""The prompt `task_analysis`: what does the task want, and where in the code is it?"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel

from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt
from clean_room_agent.llm.schema import NAME_CHARS, PATH_CHARS, SENTENCE_CHARS, bounds

MAX_AREAS = 5
MAX_NAMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnalysisInputs:
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


TEMPLATE = (
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

TASK_ANALYSIS: Prompt[TaskAnalysisInputs, TaskAnalysisAnswer] = Prompt(
    name="task_analysis",
    role="reasoning",
    title="Say where in the code a task is to be looked for",
    system=SYSTEM,
    template=TEMPLATE,
    answer=JsonAnswer(TaskAnalysisAnswer),
    max_answer_tokens=400,
    example=(
        '{"intent": "Young quokkas are counted too.", "areas": ["quokka_zoo/pen.py"], '
        '"keywords": ["quokka", "young_quokkas"], "symbols": ["count_quokkas", "QuokkaPen.young"]}'
    ),
)
