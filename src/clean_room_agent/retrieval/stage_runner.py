"""Stages in the caller's order, each verdict on record: the same for every mode, whatever the stages read."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.db.raw.decisions import DecisionRow
from clean_room_agent.db.session import States
from clean_room_agent.retrieval import pass_memory
from clean_room_agent.retrieval.stage import Decision, Judge, RetrievalStage, StageContext

SourceT = TypeVar("SourceT")


def run_stages(
    stages: Sequence[RetrievalStage[SourceT]],
    context: StageContext,
    source: SourceT,
    task: TaskQuery,
    judge: Judge,
    *,
    states: States,
    keep: Callable[[Sequence[Decision]], None],
) -> StageContext:
    """The context after the last stage; `keep` gets what each decided, and the session (`states`) knows how far it came."""
    names = tuple(stage.name for stage in stages)
    pass_memory.remember_progress(states, (), names)
    for place, stage in enumerate(stages, start=1):
        before = len(context.decisions)
        context = stage.run(context, source, task, judge)
        keep(context.decisions[before:])
        pass_memory.remember_progress(states, names[:place], names[place:])
    return context


def decision_row(pass_id: str, decision: Decision, now: str) -> DecisionRow:
    """The decision as the record keeps it."""
    weight = decision.weight
    return DecisionRow(
        task_id=pass_id,
        stage=decision.stage,
        file_id=decision.file_id,
        tier=decision.tier,
        included=decision.included,
        reason=decision.reason,
        timestamp=now,
        path=decision.path,
        symbol=decision.symbol,
        detail=decision.detail,
        score=decision.score,
        call_id=decision.call_id,
        confidence=decision.confidence,
        probability=weight.probability if weight else None,
        neutral=weight.neutral if weight else None,
        calibrated=weight.calibrated if weight else None,
    )
