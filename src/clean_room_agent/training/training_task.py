"""The task that `cra train-plan` or `cra curate-data` is in the record: what it asked, decided, and how it ended."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextRequest, Mode
from clean_room_agent.db.raw.passes import TaskRunOutcome, TaskRunRow, append_task_run, finish_task_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.retrieval.judges import ModelJudge, question_text
from clean_room_agent.retrieval.stage import Decision, DecisionLog, Option, SingleInputs, Verdict

YES = "yes"


class Outcome(Struct, kw_only=True):
    """How a task ends: as failed, unless it is set to something else."""

    success: bool = False
    plan: str | None = None
    detail: str = ""


class TrainingTask(Struct, frozen=True, kw_only=True):
    """One task, whose only pass has its id, and whose only stage is `stage`."""

    mode: Mode
    stage: str
    record: Record
    session: Session
    models: ModelClient
    router: ModelRouter
    spent: Callable[[], tuple[int, int]]
    """Tokens, and milliseconds of waiting for models, so far."""
    repo_path: str
    threshold: float
    """Probability from which a yes counts."""

    @contextlib.contextmanager
    def recorded(self) -> Iterator[Outcome]:
        """Record the task while it is in progress, then its outcome, and archive its session. If the body raises, it
        has failed, and its session is left to the caller that opened it.
        """
        window = self.models.window("reasoning")
        row = TaskRunRow(
            task_id=self.session.task_id,
            repo_path=self.repo_path,
            mode=self.mode,
            execute_model=self.router.resolve("reasoning", "train_plan").tag,
            context_window=window.context,
            reserved_tokens=window.reserved,
            stages=self.stage,
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
        tokens, latency_ms = self.spent()
        told = TaskRunOutcome(
            success=outcome.success,
            total_tokens=tokens,
            total_latency_ms=latency_ms,
            completed_at=self.record.now(),
            final_plan=outcome.plan,
            detail=outcome.detail,
        )
        self.record.write(finish_task_run, row_id, told)

    def judge(
        self, prompt: Prompt[SingleInputs, Choice], options: Sequence[Option], *, purpose: str
    ) -> dict[str, Verdict]:
        """A model's verdict on each option, by its key. `purpose`: what is decided, as the prompt says it.

        Raises:
            ModelError: the server.
        """
        if not options:
            return {}
        request = ContextRequest(pass_id=self.session.task_id, mode=self.mode, role="reasoning", task=purpose)
        judge = ModelJudge(
            self.models,
            self.session,
            question=question_text(request),
            pass_id=self.session.task_id,
            batch_size=len(options),
            threshold=self.threshold,
        )
        verdicts = judge.choose(prompt, options, labels=(YES,), stage=self.stage)
        return dict(zip((option.key for option in options), verdicts, strict=True))

    def keep(self, decisions: Sequence[Decision]) -> None:
        """Commit the decisions to the record."""
        DecisionLog(self.record).write(self.session.task_id, decisions)
