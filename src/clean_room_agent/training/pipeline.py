"""The pass behind `cra train-plan` and `cra curate-data`: recorded, budgeted, and narrowed by stages."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.context import (
    BudgetAccount,
    ContextItem,
    ContextPackage,
    ContextRequest,
    DroppedItem,
    Mode,
    Subject,
    TaskQuery,
    fence_for,
    frame,
)
from clean_room_agent.db.raw.passes import TaskRunOutcome, TaskRunRow, append_task_run, finish_task_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.retrieval.judges import ModelJudge, question_text
from clean_room_agent.retrieval.stage import (
    Candidate,
    Decision,
    DecisionLog,
    RetrievalStage,
    StageContext,
    stages_named,
)
from clean_room_agent.training.data_selection_stage import DataSelectionStage
from clean_room_agent.training.log_analysis_stage import LogAnalysisStage
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

ASSEMBLY = "assembly"
BATCH_SIZE = 30
TRAINING_STAGES: Mapping[str, Callable[[TrainingStageConfig], RetrievalStage[LogSource]]] = {
    "log_analysis": LogAnalysisStage,
    "data_selection": DataSelectionStage,
}
"""By name. A new stage is one line here."""


class Outcome(Struct, kw_only=True):
    """How a run ends: as failed, unless it is set to something else."""

    success: bool = False
    plan: str | None = None
    detail: str = ""


class Pipeline(Struct, frozen=True, kw_only=True):
    """One run; its session is the task's."""

    record: Record
    decisions: DecisionLog
    session: Session
    models: ModelClient
    meter: Meter
    repo_path: str
    reader: str
    """The model that reads the package."""
    threshold: float
    """Probability from which a yes counts."""

    @contextlib.contextmanager
    def recorded(self, mode: Mode, stages: Sequence[str]) -> Iterator[Outcome]:
        """Record the run while it is in progress, then its outcome, and archive its session.

        A run that ends with an error has failed, and its session is left to the caller that opened it.
        """
        window = self.models.window("reasoning")
        row = TaskRunRow(
            task_id=self.session.task_id,
            repo_path=self.repo_path,
            mode=mode,
            execute_model=self.reader,
            context_window=window.context,
            reserved_tokens=window.reserved,
            stages=",".join(stages),
            timestamp=self.record.now(),
        )
        row_id = self.record.write(append_task_run, row)
        outcome = Outcome()
        try:
            yield outcome
        except BaseException as error:
            self._finish(row_id, Outcome(detail=f"stopped: {error or type(error).__name__}"))
            raise
        self._finish(row_id, outcome)
        self.session.archive(self.record)

    def _finish(self, row_id: int, outcome: Outcome) -> None:
        spent = self.meter.read()
        told = TaskRunOutcome(
            success=outcome.success,
            total_tokens=spent.tokens,
            total_latency_ms=spent.latency_ms,
            completed_at=self.record.now(),
            final_plan=outcome.plan,
            detail=outcome.detail,
        )
        self.record.write(finish_task_run, row_id, told)

    def narrow(
        self,
        mode: Mode,
        task: str,
        candidates: Sequence[str],
        source: LogSource,
        *,
        stages: Sequence[str],
        config: TrainingStageConfig,
    ) -> StageContext:
        """Run the stages over the candidates and record each decision.

        Raises:
            ConfigError: a stage is unknown.
            ModelError: the server.
        """
        built = stages_named(stages, TRAINING_STAGES, config)
        request = ContextRequest(pass_id=self.session.task_id, mode=mode, role="reasoning", task=task)
        window = self.models.window("reasoning")
        query = TaskQuery()
        judge = ModelJudge(
            self.models,
            self.session,
            question=question_text(request),
            pass_id=request.pass_id,
            batch_size=BATCH_SIZE,
            threshold=self.threshold,
        )
        context = StageContext(
            request=request,
            available_tokens=window.context - window.reserved,
            candidates=tuple(
                Candidate(path=name, file_id=0, tier=4, score=0.0, reasons=()) for name in candidates
            ),
        )
        for stage in built:
            before = len(context.decisions)
            context = stage.run(context, source, query, judge)
            self.decisions.write(request.pass_id, context.decisions[before:])
        return context

    def pack(self, context: StageContext) -> ContextPackage:
        """The selections as a package that fits, first ones first; what does not fit is dropped whole, and logged."""
        items: list[ContextItem] = []
        dropped: list[DroppedItem] = []
        decisions = []
        left = context.available_tokens
        for chosen in context.selections:
            text = frame(chosen.path, chosen.outline, fence_for((chosen.outline,)))
            tokens = self.models.count(text, context.request.role)
            fits = tokens <= left
            reason = chosen.reason if fits else f"does not fit: about {tokens} tokens, {left} are left"
            if fits:
                left -= tokens
                items.append(
                    ContextItem(
                        path=chosen.path,
                        detail=chosen.detail,
                        start_line=chosen.start_line,
                        end_line=chosen.end_line,
                        text=text,
                        tier=chosen.tier,
                        score=chosen.score,
                        reason=reason,
                        tokens=tokens,
                        content_hash="",
                    )
                )
            else:
                dropped.append(
                    DroppedItem(path=chosen.path, detail=chosen.detail, tokens=tokens, reason=reason)
                )
            decisions.append(
                Decision(
                    stage=ASSEMBLY,
                    subject=Subject(path=chosen.path, score=chosen.score),
                    included=fits,
                    reason=reason,
                )
            )
        self.decisions.write(context.request.pass_id, decisions)
        window = self.models.window(context.request.role)
        return ContextPackage(
            pass_id=context.request.pass_id,
            task=context.request.task,
            items=tuple(items),
            dropped=tuple(dropped),
            budget=BudgetAccount(
                context_window=window.context,
                reserved_tokens=window.reserved,
                used_tokens=context.available_tokens - left,
            ),
        )
