"""The list of every prompt in the program, in the order of a run."""

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
from clean_room_agent.llm.answers import TextAnswer
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


def role_of(name: str) -> Role | None:
    """The role of the prompt of that name; None if there is none."""
    return next((prompt.role for prompt in PROMPTS if prompt.name == name), None)
