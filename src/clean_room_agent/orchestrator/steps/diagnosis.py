"""A diagnosis of a step: by rules where they know the cause, else by a model; made once, however often a run is resumed."""

from collections.abc import Sequence

from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.diagnose import diagnose
from clean_room_agent.execute.prompts.doctor import SURE
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.recovery.doctor import Advice
from clean_room_agent.orchestrator.recovery.rules import advised_by_rules, doctor_to_ask
from clean_room_agent.orchestrator.recovery.situation import Situation
from clean_room_agent.orchestrator.resume.journal import as_text
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import StepJob, Tried

DIAGNOSIS = "diagnosis"
"""Name in the journal, under the pass of an attempt."""


def diagnosis(run: Run, job: StepJob, tries: Sequence[Tried], at: Situation, pass_id: str) -> Advice:
    """What is to be done after the newest attempt; where a model's answer cannot be read, no more than to try again."""
    return run.journal.once(
        pass_id,
        DIAGNOSIS,
        Advice,
        lambda: advised_by_rules(at) or _ask(run, job, tries, at, pass_id),
        (as_text(at.step.newest),),
    )


def _ask(run: Run, job: StepJob, tries: Sequence[Tried], at: Situation, pass_id: str) -> Advice:
    tag = doctor_to_ask(at) or ""
    run.observer.notice(PassProgress(doing="asking why it fails"))
    try:
        said = diagnose(
            run.models,
            job.step,
            task=run.words,
            attempts=tuple(
                f"{seen.outcome.value.replace('_', ' ')}: {' '.join(seen.message.split())}"
                for seen in at.step.attempts
            ),
            edits=tries[-1].answer.step.edits,
            pass_id=pass_id,
            tag=tag,
        )
    except WindowExceeded:
        said = None
    if said is None:
        return Advice(decision="retry_with_fix", by=f"model {tag}".rstrip(), confidence=0.0, strong=bool(tag))
    return Advice(
        decision=said.decision,
        by=f"model {tag}".rstrip(),
        hint=said.hint,
        category=said.category,
        confidence=said.confidence / SURE,
        strong=bool(tag),
    )
