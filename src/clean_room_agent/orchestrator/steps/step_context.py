"""The context of an attempt at a step: a new request to retrieval, or the context of an earlier attempt where that serves."""

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage, ContextRequest, RefinementRequest
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import implement_pass
from clean_room_agent.execute.implement import (
    StepInstruction,
    raised_answer_tokens,
    step_tokens,
    usual_answer_tokens,
)
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.context import fits
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.recovery_facts import Action
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import StepJob, instruction_for
from clean_room_agent.orchestrator.testing.results import evidence_of


def request_for(run: Run, job: StepJob, pass_id: str) -> ContextRequest:
    """What the step's first attempt asks of retrieval."""
    accepted = run.progress.accepted
    evidence = evidence_of(accepted) if accepted is not None else Evidence()
    return step_request(run.models, pass_id, instruction_for(run, job), evidence)


def step_request(
    models: ModelClient, pass_id: str, instruction: StepInstruction, evidence: Evidence
) -> ContextRequest:
    """What a step asks of retrieval: with what its words need beyond the reserve kept free."""
    step = instruction.step
    return ContextRequest(
        pass_id=pass_id,
        mode="implement",
        role="coding",
        task=instruction.task,
        focus=step.description,
        files=tuple(target.path for target in step.target_files if target.role != "create"),
        symbols=step.target_symbols,
        evidence=evidence,
        extra_reserved=max(0, step_tokens(models, instruction) - models.window("coding").reserved),
    )


def context_for(
    run: Run,
    job: StepJob,
    package: ContextPackage | None,
    pass_id: str,
    action: Action,
    refinements: list[RefinementRequest],
) -> ContextPackage:
    """The first attempt's context; for a retry the same again, one with what was missing added, or a smaller one."""
    first = request_for(run, job, implement_pass(run.task.task_id, job.part.id, job.step.id))
    if package is None:
        run.recorder.observer.notice(PassProgress(doing="looking for what it needs"))
        return run.context.retrieve(first)
    more = _for_long_answer(run) if action.more_room else 0
    again = replace(first, pass_id=pass_id, extra_reserved=first.extra_reserved + more)
    if action.kind != "refine":
        return run.context.retrieve(again) if _crowds_the_answer(run, package, again) else package
    run.recorder.observer.notice(PassProgress(doing="looking for what was missing"))
    before = {_shown_as(item) for item in package.items}
    refined = run.context.refine(refinements[-1], again)
    added = [item for item in refined.items if _shown_as(item) not in before]
    names = tuple(item.path if item.symbol is None else f"{item.path}::{item.symbol}" for item in added)
    run.recorder.refinement(pass_id, refinements[-1], names)
    return refined


def _shown_as(item: ContextItem) -> tuple[str, str | None, str, str]:
    """Identifies an item and how much of it is shown: a signature that is now shown whole counts as added."""
    return item.path, item.symbol, item.section, item.detail


def _for_long_answer(run: Run) -> int:
    """What an answer after one that was cut off takes beyond a usual one."""
    window = run.models.window("coding")
    return raised_answer_tokens(window) - usual_answer_tokens(window)


def _crowds_the_answer(run: Run, package: ContextPackage, again: ContextRequest) -> bool:
    """Whether the context holds more than `again` leaves for content; never so for one that was made for it."""
    return not fits(package, run.models.window("coding"), again.extra_reserved)
