"""A run that stops at the plan (`cra plan`), for a person to review before any code is written."""

from collections.abc import Sequence

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.artifacts.outcomes import PassResult, PassType, RunStatus
from clean_room_agent.artifacts.plans import MetaPlan, PartPlan, PlanArtifact, PlanEvidence
from clean_room_agent.execute.plan_file import build_artifact
from clean_room_agent.orchestrator.planning import plan_part, plan_parts
from clean_room_agent.orchestrator.run import Run


def make_plan(run: Run, model: str) -> tuple[PlanArtifact | None, str]:
    """Plan the task down to its steps with `model`, and record it; the plan, or why there is none. No test is run, and
    nothing is edited.
    """
    meta = plan_parts(run, Evidence())
    parts = meta.parts if meta is not None else ()
    plans: list[PartPlan] = []
    for part in parts:
        plan = plan_part(run, meta, part, Evidence()) if meta is not None else None
        if plan is None:
            break
        plans.append(plan)
    run.progress.plan.total_parts = len(parts)
    run.progress.plan.total_steps = sum(len(plan.steps) for plan in plans)
    run.report_progress()
    if meta is None or len(plans) < len(parts):
        reason = run.progress.stop.no_plan
        run.recorder.ended(RunStatus.FAILED, reason=reason)
        return None, reason
    artifact = build_artifact(
        task_id=run.task.task_id,
        task=run.task.description,
        model=model,
        created_at=run.recorder.now(),
        meta_plan=meta,
        part_plans=tuple(plans),
    )
    given = run.task.given
    evidence = PlanEvidence(tests=given.tests, checks=given.checks, files=given.files)
    rationale = _rationale(meta, run.recorder.passes)
    run.recorder.ended(RunStatus.COMPLETE)
    return artifact.model_copy(update={"rationale": rationale, "evidence": evidence}), ""


def _rationale(meta: MetaPlan, passes: Sequence[PassResult]) -> str:
    """The model's reasons for the plan, and which parts of it the model did not make."""
    own = [entry for entry in passes if entry.fallback]
    rationale = "" if any(entry.pass_type is PassType.META_PLAN for entry in own) else meta.rationale
    own_words = [
        f"Not planned by the model: {relative_pass(entry.pass_id)}: {entry.detail}." for entry in own
    ]
    return "\n".join(line for line in (rationale, *own_words) if line)
