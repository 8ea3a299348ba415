"""The record of a run of many calls, written at once: what is drawn of it must stay small and quick.

Its prompts are as long as those of real runs: rules that all of a kind begin with, the task, then code in frames; a judgment
shows one file's outline, an edit is written from about half a window of code.
"""

import contextlib
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from clean_room_agent.artifacts.context import frame
from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanStep, TargetFile
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    joined,
    plain_text,
    sourced,
)
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw import calls, passes, runs
from clean_room_agent.db.rows import Connection
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN
from clean_room_agent.llm.prompt import CONTEXT, Prompt
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT
from clean_room_agent.retrieval.stage import SingleInputs
from testing.runs.decision_rows import decision_row
from testing.runs.model_calls import model_call
from testing.seeded_record import WORDS

TASK = "6a0f31c2-58d4-4f0e-9a35-0d6f3b1c7e55"
WINDOW = 16_384
PARTS, STEPS = 5, 5
CODE_LINES = 260
"""Of the file that a step changes."""


class _Writer(Struct):
    conn: Connection
    top: Path
    rng: random.Random
    now: datetime = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
    run_id: int = 0
    passes: int = 0
    pass_row: int = 0
    calls: int = 0
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def time(self, seconds: float = 0.0) -> str:
        self.now += timedelta(seconds=seconds)
        return self.now.isoformat().replace("+00:00", "Z")

    def code(self, path: str, lines: int = CODE_LINES) -> tuple[str, ...]:
        """The file's lines: the same whenever it is shown."""
        return self.files.setdefault(
            path, tuple(f"    {self.words(3).replace(' ', '_')} = {self.words(4)!r}" for _ in range(lines))
        )

    def words(self, count: int) -> str:
        return " ".join(self.rng.choices(WORDS, k=count))


def write_large_run(top: Path, *, count: int = 500, seed: int = 7) -> str:
    """The repository's record holds a run of `count` calls that ended as partial; its id."""
    rng = random.Random(seed)
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn, transaction(conn):
        writer = _Writer(conn=conn, top=top, rng=rng)
        _begin(writer)
        edits = PARTS * STEPS * 2
        judged = (count - 1 - PARTS - edits) // PARTS
        _plan(writer, judged, spare=(count - 1 - PARTS - edits) % PARTS)
        _end(writer)
        assert writer.calls == count
    return TASK


def _begin(writer: _Writer) -> None:
    row = runs.OrchestratorRunRow(
        task_id=TASK,
        repo_path=str(writer.top),
        task_description=f"Settle every ledger\n\n{writer.words(80)}",
        timestamp=writer.time(),
        base_commit="b" * 40,
    )
    writer.run_id = runs.append_orchestrator_run(writer.conn, row)
    _tests(writer, TASK, "baseline", None, passed=180)


def _plan(writer: _Writer, judged: int, *, spare: int) -> None:
    parts = tuple(
        Part(
            id=f"p{number}",
            description=f"Settle the {writer.words(4)}.",
            affected_files=(f"src/part_{number}/ledger.py",),
            depends_on=(f"p{number - 1}",) if number % 2 == 0 else (),
        )
        for number in range(1, PARTS + 1)
    )
    meta = MetaPlan(task_summary="Settle every ledger.", parts=parts)
    with _pass(writer, PassType.META_PLAN, "meta_plan", plan=meta.model_dump_json()) as pass_id:
        for number in range(spare):
            _judgment(writer, pass_id, number)
        _call(writer, pass_id, "meta_plan", _prompt(writer, META_PLAN, ("src/a.py",)), meta.model_dump_json())
    for number in range(1, PARTS + 1):
        _part(writer, f"p{number}", judged)


def _part(writer: _Writer, part: str, judged: int) -> None:
    steps = tuple(
        PlanStep(
            id=f"s{number}",
            description=f"The ledger of {writer.words(5)} gives every cent.",
            target_files=(TargetFile(path=f"src/{part}/step_{number}.py"),),
            target_symbols=(f"Ledger.settle_{number}",),
            depends_on=(f"s{number - 1}",) if number > 1 and number % 2 else (),
        )
        for number in range(1, STEPS + 1)
    )
    plan = PartPlan(part_id=part, task_summary="Settle.", steps=steps)
    with _pass(
        writer, PassType.PART_PLAN, f"part_plan:{part}", part=part, plan=plan.model_dump_json()
    ) as pass_id:
        for number in range(judged):
            _judgment(writer, pass_id, number)
        paths = tuple(step.target_files[0].path for step in steps[:2])
        _call(writer, pass_id, "part_plan", _prompt(writer, PART_PLAN, paths), plan.model_dump_json())
    for step in steps:
        first = _attempt(writer, part, step, 1, AttemptOutcome.REFUSED)
        last = step.id == f"s{STEPS}" and part == f"p{PARTS}"
        _attempt(
            writer, part, step, 2, AttemptOutcome.TESTS_FAILED if last else AttemptOutcome.APPLIED_AND_PASSED
        )
        passes.append_recovery_decision(
            writer.conn,
            passes.RecoveryRow(
                task_id=first, state="{}", rule="retry", action="retry", detail="", timestamp=writer.time()
            ),
        )


def _attempt(writer: _Writer, part: str, step: PlanStep, number: int, outcome: AttemptOutcome) -> str:
    path = step.target_files[0].path
    name = f"impl:{part}:{step.id}" + ("" if number == 1 else f":retry_{number - 1}")
    passed = outcome is AttemptOutcome.APPLIED_AND_PASSED
    lines = writer.code(path)
    place = writer.rng.randrange(10, CODE_LINES - 10)
    diff = (
        f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -{place},3 +{place},3 @@ class Ledger:\n {lines[place - 1]}\n-{lines[place]}\n"
        f"+    settled = {number}  # {writer.words(3)}\n {lines[place + 1]}\n"
    )
    refused = outcome is AttemptOutcome.REFUSED
    with _pass(
        writer,
        PassType.IMPLEMENT,
        name,
        part=part,
        step=step.id,
        success=passed,
        diff=diff if passed else None,
    ) as pass_id:
        prompt = _prompt(writer, IMPLEMENT, (path, f"src/{part}/ledger.py", f"src/{part}/shared.py"))
        if number > 1:
            failed = sourced(writer.words(60), PromptSource.ATTEMPT, number=1)
            prompt = compose(
                (prompt, "\n## Attempt 1 failed; the code is again as shown above\n\n", failed, "\n")
            )
        answer = f'<edit file="{path}">\n<search>\n{lines[place]}\n</search>\n<replacement>\n    settled\n</replacement>\n</edit>'
        told = sourced(step.description, PromptSource.STEP)
        prompt = compose((prompt, "\n## The step to do now\n\n", told))
        call_id = _call(writer, pass_id, "implement", prompt, answer)
        code = EditCode.NO_MATCH if refused else EditCode.APPLIED
        nearest = "\n".join(lines[place - 2 : place + 2]) if refused else ""
        row = passes.AttemptRow(
            task_run_id=writer.pass_row,
            attempt=number,
            prompt_tokens=9_000,
            completion_tokens=90,
            latency_ms=4_000,
            raw_response=answer,
            patch_applied=not refused,
            timestamp=writer.time(1),
            outcome=outcome,
            diff="" if refused else diff,
            edit_report=(EditReport(index=0, file_path=path, code=code, nearest=nearest),),
            call_id=call_id,
        )
        attempt_id = passes.append_attempt(writer.conn, row)
        if not refused:
            _tests(writer, pass_id, "attempt", attempt_id, passed=180 + number)
        if not passed and not refused:
            event = runs.EventRow(
                task_id=pass_id,
                kind="not_chosen",
                detail="attempt 1 turned more tests green",
                timestamp=writer.time(),
            )
            runs.append_event(writer.conn, event)
    return pass_id


def _judgment(writer: _Writer, pass_id: str, number: int) -> None:
    """One file is judged by a call, and a piece of it by its score."""
    path = f"src/{writer.words(1)}/{writer.words(1)}_{number}.py"
    outline = "\n".join(f"def {writer.words(2).replace(' ', '_')}(self) -> None" for _ in range(12))
    option = f"===== candidate: {path}\n{outline}\n===== end\n"
    others = tuple(f"src/near_{each}.py" for each in range(20))
    yes = number % 4 == 0
    text = SCOPE_JUDGMENT.render(
        SingleInputs(question=f"{CONTEXT}Settle every ledger, {pass_id[-2:]}", option=option, others=others)
    )
    call_id = _call(writer, pass_id, "scope_judgment", text, "yes" if yes else "no", item=path, seconds=0.4)
    for stage, symbol, judge in (("scope", None, call_id), ("precision", "Ledger.settle", None)):
        row = decision_row(
            task_id=pass_id,
            stage=stage,
            file_id=None,
            tier=2,
            included=yes,
            reason=f"its words match the task: {writer.words(5)}; imported by src/a.py",
            timestamp=writer.time(),
            path=path,
            symbol=symbol,
            detail="primary" if symbol else "",
            score=writer.rng.random() * 9,
            call_id=judge,
            probability=writer.rng.random() if judge else None,
        )
        passes.append_decisions(writer.conn, (row,))


def _prompt(writer: _Writer, prompt: Prompt[Any, Any], paths: tuple[str, ...]) -> SourcedText:
    """The task, the files whole, and rules as long as real ones."""
    rules = "\n".join(f"- {line}" for line in prompt.template.split("\n") if line and "{" not in line)
    frames = (_framed(path, writer.code(path)) for path in paths)
    task = sourced("Settle every ledger", PromptSource.TASK)
    return compose(
        (CONTEXT, task, "\n\n## Code\n\n", joined("\n", frames), f"\n{prompt.heading}\n\n{rules}\n")
    )


def _framed(path: str, lines: tuple[str, ...]) -> SourcedText:
    text = sourced("\n".join(lines), PromptSource.FILE, path=path, number=1)
    return frame(f"code: {path} (lines 1-{len(lines)})", text, "=====", path=path)


def _call(
    writer: _Writer,
    pass_id: str,
    kind: str,
    prompt: SourcedText,
    response: str,
    *,
    item: str = "",
    seconds: float = 4.0,
) -> int:
    writer.calls += 1
    started = writer.time()
    writer.time(seconds)
    row = model_call(
        task_id=pass_id,
        call_type=kind,
        stage_name="scope" if item else "",
        model="coder:3b" if kind == "implement" else "planner:4b",
        prompt=plain_text(prompt),
        spans=prompt.spans,
        response=response,
        prompt_tokens=len(prompt) * 2 // 7,
        completion_tokens=max(1, len(response) // 4),
        latency_ms=int(seconds * 1000),
        timestamp=started,
        system_prompt=f"You are careful. You do {kind} and nothing else.",
        request_body=json.dumps({"options": {"num_ctx": WINDOW, "num_predict": 2048}}),
        provider="ollama",
        finish="stop",
        role="coding" if kind == "implement" else "reasoning",
        item=item,
        prompt_hash="",
        estimated_tokens=len(prompt) * 3 // 10,
    )
    call_id = calls.append_call(writer.conn, row)
    reading = calls.ReadingRow(call_id=call_id, reading=AnswerReading.PARSED, timestamp=writer.time())
    calls.append_reading(writer.conn, reading)
    return call_id


def _tests(
    writer: _Writer, pass_id: str, kind: passes.ValidationKind, attempt: int | None, *, passed: int
) -> None:
    failing = tuple(
        FailingTest(
            name=f"tests/test_{writer.rng.choice(WORDS)}.py::test_{number}",
            message="AssertionError: assert 1 == 2",
        )
        for number in range(200 - passed)
    )
    row = passes.ValidationRow(
        attempt_id=attempt,
        success=passed == 200,
        test_output="." * passed + "F" * (200 - passed) + f"\n{200 - passed} failed, {passed} passed",
        failing_tests=failing,
        task_id=pass_id,
        kind=kind,
        command="pytest -q",
        exit_code=1,
        tests_run=200,
        tests_passed=passed,
        duration_ms=2_500,
        timestamp=writer.time(2.5),
    )
    passes.append_validation(writer.conn, row)


@contextlib.contextmanager
def _pass(
    writer: _Writer,
    kind: PassType,
    name: str,
    *,
    part: str = "",
    step: str = "",
    success: bool = True,
    plan: str | None = None,
    diff: str | None = None,
) -> Iterator[str]:
    """A pass that begins and ends; its id."""
    row = passes.TaskRunRow(
        task_id=f"{TASK}:{name}",
        repo_path=str(writer.top),
        mode="implement" if kind is PassType.IMPLEMENT else "plan",
        execute_model="coder:3b" if kind is PassType.IMPLEMENT else "planner:4b",
        context_window=WINDOW,
        reserved_tokens=4_096,
        stages="scope,precision",
        timestamp=writer.time(0.1),
    )
    writer.pass_row = passes.append_task_run(writer.conn, row)
    placed = passes.PassRow(
        orchestrator_run_id=writer.run_id,
        task_run_id=writer.pass_row,
        pass_type=kind,
        part_id=part,
        step_id=step,
        sequence_order=writer.passes,
        timestamp=writer.time(),
    )
    passes.append_pass(writer.conn, placed)
    writer.passes += 1
    yield row.task_id
    outcome = passes.TaskRunOutcome(
        success=success,
        total_tokens=0,
        total_latency_ms=0,
        completed_at=writer.time(0.2),
        final_diff=diff,
        final_plan=plan,
        detail="as said" if success else "edits were refused",
    )
    passes.finish_task_run(writer.conn, writer.pass_row, outcome)


def _end(writer: _Writer) -> None:
    _tests(writer, TASK, "final", None, passed=190)
    progress = runs.RunProgress(
        total_parts=PARTS,
        total_steps=PARTS * STEPS,
        parts_completed=PARTS - 1,
        steps_completed=PARTS * STEPS - 1,
    )
    runs.set_progress(writer.conn, writer.run_id, progress)
    outcome = runs.RunOutcome(
        status=RunStatus.PARTIAL,
        completed_at=writer.time(1),
        reason="one step was given up",
        branch="cra/6a0f31c2",
    )
    runs.set_outcome(writer.conn, writer.run_id, outcome)
