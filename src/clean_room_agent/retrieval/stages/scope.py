"""The stage `scope`: which files are in."""

from dataclasses import replace

from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.prompts.scope_batch import RELEVANT, SCOPE_BATCH
from clean_room_agent.retrieval.prompts.scope_judgment import SCOPE_JUDGMENT
from clean_room_agent.retrieval.source import RepositorySource, top_names
from clean_room_agent.retrieval.stage import Candidate, Decision, Judge, Option, Ruling, StageContext

NAMES_SHOWN = 6
REASONS_SHOWN = 3
REASONS_JUDGED = 2
REASON_CHARS = 90
"""A judge is shown a list of words that were found no further than this."""


class ScopeStage:
    """Tier 0 and 1 are in; the best of the rest are judged; what nobody speaks for is out."""

    name = "scope"

    def __init__(self, config: JudgmentsConfig) -> None:
        self._config = config

    def run(
        self,
        context: StageContext,
        source: RepositorySource,
        task: TaskQuery,  # noqa: ARG002 - the judge knows the task
        models: Judge,
    ) -> StageContext:
        """The context with the files in scope, in the candidates' order."""
        waiting = [entry for entry in context.candidates if entry.tier > 1]
        planned = any(entry.tier == 0 for entry in context.candidates)
        bound = self._config.files_to_judge([entry.score for entry in waiting], planned=planned)
        judged = waiting[: bound.count]
        top = max((entry.score for entry in judged), default=0.0) or 1.0
        options = [
            Option(key=entry.path, text=_describe(entry, source), score=entry.score / top) for entry in judged
        ]
        if self._config.files_in_one_question:
            rulings = models.sort(SCOPE_BATCH, options, labels=(RELEVANT,), stage=self.name)
        else:
            rulings = models.each(SCOPE_JUDGMENT, options, label=RELEVANT, stage=self.name)
        ruled = dict(zip((entry.path for entry in judged), rulings, strict=True))
        decisions = [_decide(entry, ruled.get(entry.path), bound.reason) for entry in context.candidates]
        included = {decision.path for decision in decisions if decision.included}
        return replace(
            context,
            files=tuple(entry for entry in context.candidates if entry.path in included),
            decisions=(*context.decisions, *decisions),
        )


def _decide(entry: Candidate, ruling: Ruling | None, passed_over: str) -> Decision:
    why = "; ".join(entry.reasons[:REASONS_SHOWN])
    if entry.tier <= 1:
        included, reason = True, f"in without asking: {why}"
    elif ruling is None:
        included, reason = False, f"{passed_over}: {why}"
    else:
        included, reason = ruling.label == RELEVANT, f"{ruling.reason}: {why}"
    return Decision(
        stage=ScopeStage.name,
        path=entry.path,
        file_id=entry.file_id,
        tier=entry.tier,
        score=entry.score,
        included=included,
        reason=reason,
        call_id=ruling.call_id if ruling is not None else None,
        confidence=ruling.confidence if ruling is not None else None,
    )


def _describe(entry: Candidate, source: RepositorySource) -> str:
    row = source.file(entry.path)
    names = top_names(source.definitions(row), most=NAMES_SHOWN) if row is not None else ()
    parts = [entry.path, f"found: {'; '.join(_brief(reason) for reason in entry.reasons[:REASONS_JUDGED])}"]
    if names:
        parts.append(f"defines: {', '.join(names)}")
    return " | ".join(parts)


def _brief(reason: str) -> str:
    """The reason, up to as many members of its list as have room."""
    kept = ""
    for part in reason.split(", '"):
        longer = f"{kept}, '{part}" if kept else part
        if kept and len(longer) > REASON_CHARS:
            break
        kept = longer
    return kept
