"""The list of every prompt in the program, in the order of a run; `protocols/adapter-map.md` is generated from it."""

from typing import Any

from clean_room_agent.artifacts.context import Role
from clean_room_agent.enrichment.prompt import ENRICHMENT
from clean_room_agent.execute.diagnose import DOCTOR
from clean_room_agent.execute.forms.masked import MOST_TOKENS
from clean_room_agent.execute.forms.worded import FUNCTION, LINES
from clean_room_agent.execute.goal_prompts import GOAL_TEST
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_STEP_VIABILITY,
    CHANGE_POINTS,
    GOAL_CHECK,
    META_PLAN,
    PART_DEPENDENCY,
    PART_PLAN,
    SAME_PART,
    STEP_DEPENDENCY,
    STEP_DESIGN,
    SYMBOL_TARGETS,
)
from clean_room_agent.execute.scaffold import SCAFFOLD
from clean_room_agent.llm.answers import OneWord, TextAnswer
from clean_room_agent.llm.filling import FILL_NAME
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.prompts import (
    PIECE_JUDGMENT,
    PRECISION_BATCH,
    REFILTER,
    SCOPE_BATCH,
    SCOPE_JUDGMENT,
    TASK_ANALYSIS,
)

PROMPTS: tuple[Prompt[Any, Any], ...] = (
    ENRICHMENT,
    TASK_ANALYSIS,
    SCOPE_JUDGMENT,
    SCOPE_BATCH,
    PIECE_JUDGMENT,
    PRECISION_BATCH,
    REFILTER,
    GOAL_TEST,
    META_PLAN,
    CHANGE_POINTS,
    SAME_PART,
    PART_DEPENDENCY,
    PART_PLAN,
    SYMBOL_TARGETS,
    STEP_DESIGN,
    STEP_DEPENDENCY,
    SCAFFOLD,
    IMPLEMENT,
    FUNCTION,
    LINES,
    DOCTOR,
    ADJUSTMENT,
    ADJUSTMENT_STEP_VIABILITY,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_FINALIZE,
    GOAL_CHECK,
)

HEADER = """\
# Prompts and adapters

Generated from `app/prompts.py` by `python -m clean_room_agent.app.prompts > protocols/adapter-map.md`; a test keeps
it current. A prompt's name is its call type in the record, its key in `[models.overrides]`, and its adapter's name.
Answers with edits are bounded by the code that they may edit (`answer_bound` in `execute/implement.py`).

| prompt | role | answers with | longest answer, tokens | title |
|---|---|---|---|---|
"""


def role_of(name: str) -> Role | None:
    """The role of the prompt of that name; None if there is none."""
    return next((prompt.role for prompt in PROMPTS if prompt.name == name), None)


def adapter_map() -> str:
    """The page `protocols/adapter-map.md`."""
    rows = [
        f"| `{prompt.name}` | {prompt.role} | {_form(prompt)} | {_longest(prompt)} | {prompt.title} |"
        for prompt in PROMPTS
    ]
    return HEADER + "\n".join(rows) + "\n"


def _longest(prompt: Prompt[Any, Any]) -> str:
    return str(prompt.max_answer_tokens) if prompt.editable is None else "twice the code and 400"


def _form(prompt: Prompt[Any, Any]) -> str:
    if prompt.schema is not None:
        return "JSON"
    if isinstance(prompt.answer, OneWord):
        return f"{', '.join(prompt.answer.words[:-1])} or {prompt.answer.words[-1]}"
    return "yes or no" if prompt.answer.wants_logprobs else "text"


if __name__ == "__main__":
    print(adapter_map(), end="")  # noqa: T201 - its output is the page


FILL: Prompt[Any, str] = Prompt(
    name=FILL_NAME,
    role="coding",
    title="Fill a gap",
    system="",
    template="",
    answer=TextAnswer(str),
    max_answer_tokens=MOST_TOKENS,
    example="",
)
"""Gaps, which are asked for without words of ours; here for their datasets, adapters and models."""
BY_NAME = {prompt.name: prompt for prompt in (*PROMPTS, FILL)}
