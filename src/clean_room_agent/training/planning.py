"""`cra train-plan`: makes a training plan from the record, or says what is missing for one.

Prompts that too few failures are charged to, or that are not the bottleneck, are left out by rule; a model judges the rest
by their figures, and writes the plan for one of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.context import Subject, fence_for, frame
from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.training import TRAINING_PLANS
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.retrieval.stage import Decision, Option, Verdict
from clean_room_agent.training.credit import STAGES, Waterfall, waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.plan import (
    MIN_FAILURES,
    VERDICT_RANK,
    DataCriteria,
    Hyperparameters,
    Improvement,
    TrainingPlan,
    examples_to_see,
    row_of,
)
from clean_room_agent.training.prompts import TARGET_JUDGMENT, TRAIN_PLAN, TrainPlanAnswer, TrainPlanInputs
from clean_room_agent.training.training_task import YES, TrainingTask

STAGE = "log_analysis"
PURPOSE = "Choose the prompt whose adapter would win the most tasks, and plan its training."
TRIES = 2
"""Answers that are asked for; a faulty one is sent back once."""
SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)
LARGE = 4.0
"""Billions of parameters from which on the default learning rate is lower."""
OTHERWISE = "`cra bootstrap` makes examples from other repositories' histories"
Prompts = Mapping[str, Prompt[Any, Any]]


class Planned(Struct, frozen=True, kw_only=True):
    """The plan, or why there is none."""

    plan: TrainingPlan | None
    plan_id: int
    """In the record; 0 without a plan."""
    reason: str
    """Why there is no plan; "" if there is one."""
    refused: tuple[tuple[str, str], ...]
    """Each prompt that was not chosen, with the reason; the one with most failures first."""
    waterfall: Waterfall


def make_training_plan(
    task: TrainingTask,
    logs: LogAnalysisAPI,
    prompts: Prompts,
    targets: Sequence[str],
    progress: Callable[[int, int], None],
) -> Planned:
    """Make a plan for one of the targets, and store it. The task and its decisions are recorded, even if it refuses.

    Raises:
        ModelError: the server.
    """
    with task.recorded() as outcome:
        waterfall = waterfall_of(logs.watched_tasks(progress))
        chosen, refused = _choose_targets(task, logs, waterfall, targets)
        plan, raw, reason = None, "", why_none(waterfall, refused)
        if chosen:
            plan, raw, reason = _write_plan(task, waterfall, prompts, chosen)
        outcome.detail = reason
        plan_id = 0
        if plan is not None:
            row = row_of(plan, task_id=plan.task_id, raw=raw, now=task.record.now())
            plan_id = task.record.write(TRAINING_PLANS.insert, row)
            outcome.success, outcome.plan = True, plan.model_dump_json()
            outcome.detail = f"train {plan.target}"
    return Planned(plan=plan, plan_id=plan_id, reason=reason, refused=refused, waterfall=waterfall)


def _choose_targets(
    task: TrainingTask, logs: LogAnalysisAPI, waterfall: Waterfall, targets: Sequence[str]
) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """The figures of each target that is worth an adapter, and why the others are not; most failures first."""
    total = max(len(waterfall.charges), 1)
    ordered = sorted(targets, key=lambda name: (-waterfall.by_prompt.get(name, 0), name))
    reasons = {name: refusal(waterfall, name) for name in ordered}
    facts = {name: describe(logs, waterfall, name) for name in ordered if not reasons[name]}
    options = [
        Option(key=name, name=name, text=text, score=waterfall.by_prompt[name] / total)
        for name, text in facts.items()
    ]
    verdicts: Mapping[str, Verdict] = task.judge(TARGET_JUDGMENT, options, purpose=PURPOSE)
    chosen = {name: text for name, text in facts.items() if verdicts[name].label == YES}
    reasons |= {name: verdict.reason for name, verdict in verdicts.items()}
    task.keep(
        [
            Decision(
                stage=STAGE,
                subject=Subject(path=name, score=waterfall.by_prompt.get(name, 0) / total),
                included=name in chosen,
                reason=reasons[name],
                verdict=verdicts.get(name),
            )
            for name in ordered
        ]
    )
    return chosen, tuple((name, reasons[name]) for name in ordered if name not in chosen)


def refusal(waterfall: Waterfall, prompt: str) -> str:
    """Why the prompt should not be trained from this record; "" if nothing speaks against it."""
    charged = waterfall.by_prompt.get(prompt, 0)
    if charged < MIN_FAILURES:
        return (
            f"{counted(charged, 'failed task is', 'failed tasks are')} charged to it, {MIN_FAILURES} are needed: "
            f"{MIN_FAILURES - charged} are missing; {OTHERWISE}"
        )
    lost = waterfall.by_stage["retrieval"]
    if lost >= charged:
        return (
            f"retrieval loses {counted(lost, 'task')} and this prompt {charged}: "
            "no adapter finds a file that is not looked at"
        )
    return ""


def describe(logs: LogAnalysisAPI, waterfall: Waterfall, prompt: str) -> str:
    """The prompt's figures in a few lines, as a judge and a planner read them."""
    charged = [charge for charge in waterfall.charges if charge.prompt == prompt]
    stages = [stage for stage in STAGES if any(charge.stage == stage for charge in charged)]
    own = [each for each in logs.prompt_stats() if each.sums.prompt == prompt]
    calls = sum(each.sums.calls for each in own)
    unreadable, repaired = (
        sum(getattr(each.sums, what) for each in own) for what in ("unreadable", "repaired")
    )
    lines = [
        f"failed tasks charged to it: {len(charged)} of {len(waterfall.charges)} (lost at: {', '.join(stages)})",
        f"calls: {calls}, unreadable: {unreadable}, repaired: {repaired}",
    ]
    lines += [
        f"if {stage} were perfect: at most {counted(waterfall.headroom[stage].at_most, 'task')} won, "
        f"{waterfall.headroom[stage].expected:.0f} expected"
        for stage in stages
    ]
    agreements = [each.agreement for each in own if each.agreement is not None]
    if agreements:
        right, missed, extra = (
            sum(getattr(each, what) for each in agreements) for what in ("right", "missed", "extra")
        )
        lines.append(
            f"verdicts against what was changed: {right} right, {missed} missed, {extra} let in beyond it"
        )
    return "\n".join(lines) + "\n"


def why_none(waterfall: Waterfall, refused: Sequence[tuple[str, str]]) -> str:
    """In one line, what is missing for a plan; "" if no prompt was refused."""
    if not waterfall.charges:
        ended = counted(waterfall.tasks, "ended task")
        return f"of {ended} in the record none failed at a prompt: {MIN_FAILURES} are needed for a plan; {OTHERWISE}"
    return ": ".join(refused[0]) if refused else ""


def _write_plan(
    task: TrainingTask, waterfall: Waterfall, prompts: Prompts, chosen: Mapping[str, str]
) -> tuple[TrainingPlan | None, str, str]:
    """The plan, the text it was made from, and why there is no plan."""
    names = tuple(chosen)
    known = waterfall.solved + len(waterfall.charges)
    rejected = ""
    faults: tuple[str, ...] = ()
    for _ in range(TRIES):
        inputs = TrainPlanInputs(
            candidates="\n".join(frame(name, text, fence_for((text,))) for name, text in chosen.items()),
            names=names,
            tasks=known,
            rejected=rejected,
            faults=faults,
        )
        reply = task.models.ask(TRAIN_PLAN, inputs, pass_id=task.session.task_id)
        if reply.value is None:
            return None, "", f"the plan could not be read: {reply.bad.fault if reply.bad else 'no answer'}"
        now = 1 - waterfall.by_prompt.get(reply.value.target, 0) / max(known, 1)
        faults = faults_of(reply.value, names, now)
        if not faults:
            return _plan_of_answer(task, prompts, reply.value, now), reply.text, ""
        rejected = reply.text
    return None, rejected, f"the plan has faults: {'; '.join(faults)}"


def faults_of(answer: TrainPlanAnswer, names: Sequence[str], now: float) -> tuple[str, ...]:
    """What is wrong with an answer; empty if it can be followed. `now`: the share of tasks not lost at its target."""
    if answer.target not in names:
        return (f"target: {answer.target!r} is none of {', '.join(names)}",)
    if not now < answer.expected <= 1:
        return (f"expected: {answer.expected} is not above {now:.3f}, which is the share now",)
    return ()


def _plan_of_answer(
    task: TrainingTask, prompts: Prompts, answer: TrainPlanAnswer, now: float
) -> TrainingPlan:
    plan = default_plan(prompts[answer.target], task.router)
    gain = Improvement(
        now=now, expected=answer.expected, examples_to_see_it=examples_to_see(now, answer.expected)
    )
    return plan.model_copy(
        update={
            "task_id": task.session.task_id,
            "hyperparameters": plan.hyperparameters.model_copy(update={"epochs": answer.epochs}),
            "improvement": gain,
            "rationale": answer.reason,
        }
    )


def default_plan(prompt: Prompt[Any, Any], router: ModelRouter) -> TrainingPlan:
    """The plan for a prompt by rules alone; its base is the model that answers it now."""
    model = router.resolve(prompt.role, prompt.name)
    size = SIZE.search(model.tag)
    large = size is not None and float(size[1]) >= LARGE
    verdict = prompt.answer.wants_logprobs
    return TrainingPlan(
        target=prompt.name,
        base_model=model.tag,
        criteria=DataCriteria(max_tokens=model.window),
        hyperparameters=Hyperparameters(
            rank=VERDICT_RANK if verdict else 16,
            alpha=2 * VERDICT_RANK if verdict else 32,
            learning_rate=1e-4 if large else 2e-4,
        ),
    )
