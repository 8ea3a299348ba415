"""The stage `log_analysis`: which prompts are worth an adapter."""

from msgspec.structs import replace

from clean_room_agent.artifacts.context import Subject, TaskQuery
from clean_room_agent.artifacts.names import counted
from clean_room_agent.retrieval.stage import Candidate, Decision, Judge, Option, Selection, StageContext
from clean_room_agent.training.credit import STAGES, Waterfall
from clean_room_agent.training.plan import MIN_FAILURES
from clean_room_agent.training.prompts import TARGET_JUDGMENT
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

TRAIN = "yes"
OTHERWISE = "`cra bootstrap` makes examples from other repositories' histories"


class LogAnalysisStage:
    """Leaves out prompts that too few failures are charged to, or that are not the bottleneck, by rules; a model judges
    the rest by their figures.
    """

    name = "log_analysis"

    def __init__(self, config: TrainingStageConfig) -> None:
        self._config = config

    def run(self, context: StageContext, source: LogSource, query: TaskQuery, judge: Judge) -> StageContext:  # noqa: ARG002 - the Protocol's signature
        """The context with the prompts that are worth it, most failures first; each selection holds a prompt's figures."""
        if not context.candidates:
            return context
        waterfall = source.waterfall
        refused = {entry.path: refusal(waterfall, entry.path) for entry in context.candidates}
        waiting = sorted(
            (entry for entry in context.candidates if not refused[entry.path]),
            key=lambda entry: (-waterfall.by_prompt[entry.path], entry.path),
        )
        facts = {entry.path: describe(source, entry.path) for entry in waiting}
        total = max(len(waterfall.charges), 1)
        options = [
            Option(
                key=entry.path,
                name=entry.path,
                text=facts[entry.path],
                score=waterfall.by_prompt[entry.path] / total,
            )
            for entry in waiting
        ]
        verdicts = judge.choose(TARGET_JUDGMENT, options, labels=(TRAIN,), stage=self.name) if options else ()
        verdict_of = dict(zip((entry.path for entry in waiting), verdicts, strict=True))
        decisions, files, selections = [], [], []
        for entry in (*waiting, *(each for each in context.candidates if refused[each.path])):
            verdict = verdict_of.get(entry.path)
            included = verdict is not None and verdict.label == TRAIN
            decisions.append(
                Decision(
                    stage=self.name,
                    subject=Subject(path=entry.path, score=waterfall.by_prompt.get(entry.path, 0) / total),
                    included=included,
                    reason=verdict.reason if verdict is not None else refused[entry.path],
                    verdict=verdict,
                )
            )
            if included:
                files.append(entry)
                selections.append(_selection(entry, facts[entry.path], waterfall))
        return replace(
            context,
            files=tuple(files),
            selections=tuple(selections),
            detail_chosen=True,
            decisions=(*context.decisions, *decisions),
        )


def refusal(waterfall: Waterfall, prompt: str) -> str:
    """Why the prompt should not be trained from this record; "" if nothing speaks against it."""
    charged = waterfall.by_prompt.get(prompt, 0)
    if charged < MIN_FAILURES:
        return (
            f"{counted(charged, 'failed task is', 'failed tasks are')} charged to it, {MIN_FAILURES} are needed: {MIN_FAILURES - charged} are missing; "
            f"{OTHERWISE}"
        )
    lost = waterfall.by_stage["retrieval"]
    if lost >= charged:
        return f"retrieval loses {counted(lost, 'task')} and this prompt {charged}: no adapter finds a file that is not looked at"
    return ""


def describe(source: LogSource, prompt: str) -> str:
    """The prompt's figures in a few lines, as a judge and a planner read them."""
    waterfall = source.waterfall
    charged = [charge for charge in waterfall.charges if charge.prompt == prompt]
    stages = [stage for stage in STAGES if any(charge.stage == stage for charge in charged)]
    sums = [each for each in source.logs.call_sums() if each.prompt == prompt]
    calls = sum(each.calls for each in sums)
    unreadable, repaired = sum(each.unreadable for each in sums), sum(each.repaired for each in sums)
    lines = [
        f"failed tasks charged to it: {len(charged)} of {len(waterfall.charges)} (lost at: {', '.join(stages)})",
        f"calls: {calls}, unreadable: {unreadable}, repaired: {repaired}",
    ]
    lines += [
        f"if {stage} were perfect: at most {counted(waterfall.headroom[stage].at_most, 'task')} won, "
        f"{waterfall.headroom[stage].expected:.0f} expected"
        for stage in stages
    ]
    agreement = source.agreements.get(prompt)
    if agreement is not None:
        lines.append(
            f"verdicts against what was changed: {agreement.right} right, {agreement.missed} missed, "
            f"{agreement.extra} let in beyond it"
        )
    return "\n".join(lines) + "\n"


def _selection(entry: Candidate, text: str, waterfall: Waterfall) -> Selection:
    return Selection(
        path=entry.path,
        symbol=None,
        start_line=1,
        end_line=text.count("\n"),
        detail="supporting",
        tier=entry.tier,
        score=waterfall.by_prompt[entry.path] / max(len(waterfall.charges), 1),
        reason="worth an adapter",
        outline=text,
    )
