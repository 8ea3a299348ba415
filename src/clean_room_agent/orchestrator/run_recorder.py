"""Writes a run into the record, event by event, before anything depends on it."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Judgment, RefinementRequest
from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.artifacts.outcomes import Action, EventKind, PassResult, PassType, RunStatus
from clean_room_agent.db.raw import calls, passes, runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.json_values import to_plain
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.events import Note, Observer, PassFinished, PassStarted
from clean_room_agent.orchestrator.spending import Meter, Timed, untimed

if TYPE_CHECKING:
    from clean_room_agent.artifacts.plans import Artifact, PlanVerdict

RESUMABLE = frozenset({RunStatus.INTERRUPTED, RunStatus.NEEDS_HUMAN, RunStatus.RUNNING})


class PassHeader(Struct, frozen=True, kw_only=True):
    """Which pass it is."""

    kind: PassType
    pass_id: str
    title: str
    """For the observer."""
    part_id: str = ""
    step_id: str = ""
    model: str = ""
    """The tag of the model that replaces the configured one; "" for none."""


class PassEnd(Struct, frozen=True, kw_only=True):
    """How a pass ended."""

    success: bool
    detail: str = ""
    diff: str | None = None
    plan: str | None = None
    fallback: bool = False
    """Whether `plan` is the program's own, because there was no valid one."""


class RunRecorder:
    """Writes one run into the record, and notifies the observer of the same passes and notes."""

    def __init__(
        self,
        *,
        run: runs.OrchestratorRunRow,
        stages: str,
        record: Record,
        router: ModelRouter,
        meter: Meter,
        observer: Observer,
        given: tuple[tuple[EventKind, str], ...] = (),
        resumed: runs.OrchestratorRunRow | None = None,
        timed: Timed = untimed,
    ) -> None:
        """Record `run` as running, a new one together with what it was `given` beside the task (flags and plans, as events);
        `resumed` is its row from before. `stages` are those of its retrievals.
        """
        self.timed = timed
        self._run = run
        self._stages = stages
        self._record = record
        self._router = router
        self._meter = meter
        self.observer = observer
        self.passes: list[PassResult] = []
        self._open: dict[PassHeader, int] = {}
        """The passes under way, with their rows."""
        self._resumed = resumed is not None
        self.landed = (resumed.branch, resumed.result_commit) if resumed is not None else ("", "")
        """The branch and the commit that the run ended with the last time."""
        if resumed is not None:
            self._run_id = resumed.id
            self.ended(RunStatus.RUNNING)
            return
        self._run_id = record.write(
            runs.append_orchestrator_run,
            run,
            tuple(self._event_row(run.task_id, kind, detail) for kind, detail in given),
        )

    def snapshot_taken(self, commit: str, account: object) -> None:
        """Record which commit the run starts from, and what is in it."""
        text = json.dumps(account, ensure_ascii=False)
        self._record.write(runs.set_snapshot, self._run_id, commit=commit, snapshot=text)

    def progress(self, *, total_parts: int, total_steps: int, parts_done: int, steps_done: int) -> None:
        """Record how far the run has come."""
        self._record.write(
            runs.set_progress,
            self._run_id,
            total_parts=total_parts,
            total_steps=total_steps,
            parts_completed=parts_done,
            steps_completed=steps_done,
        )

    def ended(
        self,
        status: RunStatus,
        *,
        reason: str = "",
        branch: str = "",
        commit: str = "",
        evidence: tuple[GoalOutcome, ...] | None = None,
    ) -> None:
        """Record how the run ended (or that it goes on), with what became of its goal tests (None: it was not judged); passes that
        are still open end with it.
        """
        for header in tuple(self._open):
            self._finish_pass(header, PassEnd(success=False, detail=f"stopped: {reason}"))
        event = None
        if evidence is not None:
            told = json.dumps([to_plain(one) for one in evidence], ensure_ascii=False)
            event = self._event_row(self._run.task_id, EventKind.EVIDENCE, told)
        self._record.write(
            runs.set_outcome,
            self._run_id,
            runs.RunOutcome(
                status=status,
                completed_at=None if status in RESUMABLE else self._record.now(),
                reason=reason,
                branch=branch or self.landed[0],
                result_commit=commit or self.landed[1],
            ),
            event,
        )

    def open_pass(self, header: PassHeader, *, known: bool = False) -> int:
        """Record that the pass begins, and return its row. The observer is not notified of a `known` one, which was done before
        this process began and is only read back.
        """
        role = header.kind.role
        window = self._router.window(role)
        row = passes.TaskRunRow(
            task_id=header.pass_id,
            repo_path=self._run.repo_path,
            mode="implement" if header.kind is PassType.IMPLEMENT else "plan",
            execute_model=self._router.resolve(role, header.kind.value, tag=header.model).tag,
            context_window=window.context,
            reserved_tokens=window.reserved,
            stages=self._stages,
            timestamp=self._record.now(),
        )
        row_id = self._record.write(passes.append_task_run, row)
        self._record.write(
            passes.append_pass,
            passes.PassRow(
                orchestrator_run_id=self._run_id,
                task_run_id=row_id,
                pass_type=header.kind,
                part_id=header.part_id,
                step_id=header.step_id,
                sequence_order=len(self.passes) + len(self._open),
                timestamp=self._record.now(),
            ),
        )
        if not known:
            self._meter.take_fullest()
            self.observer.notice(
                PassStarted(pass_type=header.kind, pass_id=header.pass_id, title=header.title)
            )
        self._open[header] = row_id
        return row_id

    def close_pass(self, header: PassHeader, end: PassEnd, *, known: bool = False, seconds: float) -> None:
        """Record how the pass ended, `seconds` after it began, and notify the observer."""
        row = self._record.write(passes.get_task_run, header.pass_id) if known else None
        if row is not None and (row.success, row.detail) == (end.success, end.detail):
            del self._open[header]
            calls_made = 0
        else:
            calls_made = self._finish_pass(header, end).calls
        self.passes.append(
            PassResult(
                pass_type=header.kind,
                pass_id=header.pass_id,
                part_id=header.part_id,
                step_id=header.step_id,
                success=end.success,
                detail=end.detail,
                fallback=end.fallback,
            )
        )
        if known:
            return
        tokens, window = self._meter.take_fullest()
        self.observer.notice(
            PassFinished(
                pass_type=header.kind,
                pass_id=header.pass_id,
                title=header.title,
                success=end.success,
                detail=end.detail,
                calls=calls_made,
                prompt_tokens=tokens,
                window=window,
                seconds=seconds,
            )
        )

    def _finish_pass(self, header: PassHeader, end: PassEnd) -> calls.CallTotals:
        """Record how the pass ended; returns what it spent."""
        spent = self._record.write(calls.total_of_pass, header.pass_id)
        self._record.write(
            passes.finish_task_run,
            self._open.pop(header),
            passes.TaskRunOutcome(
                success=end.success,
                total_tokens=spent.tokens,
                total_latency_ms=spent.latency_ms,
                completed_at=self._record.now(),
                final_diff=end.diff,
                final_plan=end.plan,
                detail=end.detail,
            ),
        )
        return spent

    def attempt(self, row: passes.AttemptRow, judged: passes.ValidationRow | None) -> int:
        """Record the attempt with the test run that judged it, both or neither; returns its id."""
        return self._record.write(passes.append_judged, row, judged)

    def validation(self, row: passes.ValidationRow) -> int:
        """Record a test run; returns its id."""
        return self._record.write(passes.append_validation, row)

    def refinement(self, pass_id: str, request: RefinementRequest, added: tuple[str, ...]) -> None:
        """Record what a step asked for after a failure, and what was added to its context."""
        evidence = json.dumps({"error_signatures": request.error_signatures}, ensure_ascii=False)
        self._record.write(
            passes.append_refinement,
            passes.RefinementRow(
                task_id=pass_id,
                request=json.dumps(to_plain(request), ensure_ascii=False),
                evidence=evidence,
                added=added,
                timestamp=self._record.now(),
            ),
        )

    def recovery(self, pass_id: str, state: str, action: Action) -> None:
        """Record what was decided after a failed attempt, by which rule, and on what grounds (JSON text)."""
        self._record_recovery(pass_id, state, rule=action.rule, action=action.kind, detail=action.question)

    def plan_fallback(self, pass_id: str, faults: tuple[str, ...], plan: "Artifact") -> None:
        """Record that there was no valid plan, why, and what is followed instead."""
        state = json.dumps({"faults": faults}, ensure_ascii=False)
        rule, followed = "no valid plan after its repair", plan.model_dump_json()
        self._record_recovery(pass_id, state, rule=rule, action="fallback", detail=followed)

    def _record_recovery(self, pass_id: str, state: str, *, rule: str, action: str, detail: str) -> None:
        row = passes.RecoveryRow(
            task_id=pass_id,
            state=state,
            rule=rule,
            action=action,
            detail=detail,
            timestamp=self._record.now(),
        )
        self._record.write(passes.append_recovery_decision, row)

    def decisions(self, pass_id: str, rows: Sequence[passes.DecisionRow]) -> None:
        """Record what a pass shows and why, once."""
        if not self._record.write(passes.list_decisions_of_pass, pass_id):
            now = self._record.now()
            self._record.write(passes.append_decisions, tuple(replace(row, timestamp=now) for row in rows))

    def plan_decisions(self, pass_id: str, verdicts: "tuple[PlanVerdict, ...]") -> None:
        """Record the decisions that led to a plan."""
        rows = tuple(
            passes.PlanDecisionRow(
                task_id=pass_id,
                question=verdict.question,
                item=verdict.item,
                yes=verdict.yes,
                reason=verdict.reason,
                judgment=Judgment(
                    call_id=verdict.call_id,
                    confidence=verdict.confidence,
                    probability=verdict.probability,
                    neutral=verdict.neutral,
                    calibrated=verdict.calibrated,
                ),
                timestamp=self._record.now(),
            )
            for verdict in verdicts
        )
        self._record.write(passes.append_plan_decisions, rows)

    def note(self, text: str) -> None:
        """Record `text`, which changes nothing, and show it to the observer."""
        self.event(self._run.task_id, EventKind.NOTE, text)
        self.observer.notice(Note(text=text))

    def event(self, pass_id: str, kind: EventKind, detail: str) -> None:
        """Record something that happened outside the passes."""
        row = self._event_row(pass_id, kind, detail)
        # A pass that a resumed run reads again records the same events again.
        self._record.write(runs.append_event_once if self._resumed else runs.append_event, row)

    def _event_row(self, pass_id: str, kind: EventKind, detail: str) -> runs.EventRow:
        return runs.EventRow(task_id=pass_id, kind=kind, detail=detail, timestamp=self._record.now())

    def now(self) -> str:
        """The record's time."""
        return self._record.now()
