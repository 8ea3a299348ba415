"""What a run's record tells: what it cost, and where it lost the commit that it was to repeat."""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from testing.oracle.oracle import is_prose, section

from benchmarks.commits.solve_commit import Attempted
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.passes import (
    AttemptRow,
    DecisionRow,
    TaskRunRow,
    ValidationRow,
    list_attempts,
    list_decisions,
    list_task_runs,
    list_validations,
)
from clean_room_agent.training.gold_edits import GoldFile, lines_of, shown_in

JUDGMENT_STAGES = ("scope", "precision")
OVERFLOW = re.compile(r"needs about \d+ tokens|has to be shown whole|does not fit")
STAGES = {
    AttemptOutcome.NO_EDITS: "edit format: no edits",
    AttemptOutcome.UNREADABLE: "edit format: unreadable",
    AttemptOutcome.REFUSED: "apply: refused",
    AttemptOutcome.IMPORT_BROKEN: "tests: an import is broken",
    AttemptOutcome.TESTS_FAILED: "tests: fail",
    AttemptOutcome.TIMED_OUT: "tests: timed out",
}
"""Of outcomes that by themselves say where."""
LATER = {"": 0, "scope": 1, "precision": 2, "assembly": 3}


class Loss(Struct, frozen=True, kw_only=True):
    """Where the harness lost a commit, and the evidence in a few words."""

    stage: str
    example: str


class Recorded(Struct, frozen=True, kw_only=True):
    """What the record holds of one run."""

    calls: tuple[ModelCall, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    validations: tuple[ValidationRow, ...] = ()
    passes: tuple[TaskRunRow, ...] = ()


class Costs(Struct, frozen=True, kw_only=True):
    """Figures of one run, by its log."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    fullest: int
    """Tokens of the fullest prompt."""
    over: int
    """Prompts that were larger than their window, by the server's count."""
    judged_tokens: int
    """Of the prompts of judgment stages."""
    shared_tokens: int
    """Of those, how many stood at the beginning of an earlier prompt of the run to the same model."""


def read_record(path: Path, task_id: str) -> Recorded:
    """All that the record holds of the task."""
    with contextlib.closing(connect_file("raw", path, read_only=True)) as conn:
        return Recorded(
            calls=list_calls(conn, task_id),
            decisions=list_decisions(conn, task_id),
            attempts=list_attempts(conn, task_id),
            validations=list_validations(conn, task_id),
            passes=list_task_runs(conn, task_id),
        )


def costs_of(recorded: Recorded, window: int) -> Costs:
    """What the run cost."""
    tokens = [call.cost.prompt_tokens or 0 for call in recorded.calls]
    judged = shared = 0
    earlier: dict[str, list[str]] = {}
    for call in recorded.calls:
        text = f"{call.request.system_prompt}\0{call.request.prompt}"
        before = earlier.setdefault(call.model.tag, [])
        if call.site.stage_name in JUDGMENT_STAGES and call.cost.prompt_tokens:
            judged += call.cost.prompt_tokens
            longest = max((common_prefix(text, other) for other in before), default=0)
            shared += call.cost.prompt_tokens * longest // len(text)
        before.append(text)
    return Costs(
        calls=len(recorded.calls),
        prompt_tokens=sum(tokens),
        completion_tokens=sum(call.cost.completion_tokens or 0 for call in recorded.calls),
        fullest=max(tokens, default=0),
        over=sum(count > window for count in tokens),
        judged_tokens=judged,
        shared_tokens=shared,
    )


def common_prefix(one: str, other: str) -> int:
    """Characters that both begin with; by halves, as prompts are long and many."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def find_loss(done: Attempted, recorded: Recorded) -> Loss:
    """Where the commit was lost: the first thing, in the order of a run, that made success impossible."""
    gold = tuple(file for file in done.gold if not is_prose(file.path))
    if not recorded.passes:
        return Loss(stage="start", example=done.words)
    if done.answer.get("status") == "complete":
        return Loss(stage="tests: pass in the run, fail outside it", example=done.words or "complete")
    unplanned = _unplanned(gold, recorded)
    if unplanned is not None:
        return unplanned
    if OVERFLOW.search(done.words):
        return Loss(stage="budget: what must be shown does not fit", example=done.words)
    failed = [one for one in recorded.attempts if one.outcome is not AttemptOutcome.APPLIED_AND_PASSED]
    if failed:
        return _failed_attempt(failed[-1], gold, recorded)
    stage = "loop: all attempts passed" if recorded.attempts else "plan: no step"
    return Loss(stage=stage, example=done.words)


def _unplanned(gold: Sequence[GoldFile], recorded: Recorded) -> Loss | None:
    """A file of the commit that no step was to change, and why."""
    steps = [call for call in recorded.calls if call.site.call_type == "implement"]
    plans = [call for call in recorded.calls if call.site.call_type in {"meta_plan", "part_plan"}]
    if not plans:
        return Loss(stage="plan: never asked for", example=recorded.passes[-1].detail)
    for file in gold:
        if any(file.path in section(call.request.prompt, "The step to do now") for call in steps):
            continue
        named = [call for call in plans if file.path in call.answer.response]
        if named and not steps:
            return Loss(stage="plan: refused", example=f"{file.path}: {recorded.passes[-1].detail}")
        shown = any(
            f"{file.path} " in call.request.prompt or f"{file.path}\n" in call.request.prompt
            for call in plans
        )
        if shown or file.before is None:
            return Loss(stage="plan: file not named", example=file.path)
        return _unseen(file, plans[-1].site.pass_id, recorded)
    return None


def _unseen(file: GoldFile, pass_id: str, recorded: Recorded) -> Loss:
    """Why a pass's prompt did not hold the file: the last that was decided about it."""
    about = [row for row in recorded.decisions if row.task_id == pass_id and row.subject.path == file.path]
    if not about:
        return Loss(stage="retrieval: never a candidate", example=file.path)
    last = max(about, key=lambda row: (LATER.get(row.stage, 2), row.id))
    example = f"{file.path}: {last.reason}"
    if last.stage == "scope":
        asked = last.judgment.call_id is not None
        return Loss(
            stage="scope: judged out" if asked else "retrieval: candidate, but not judged", example=example
        )
    if last.stage == "assembly":
        return Loss(stage="budget: dropped", example=example)
    return Loss(stage="precision", example=example)


def _failed_attempt(attempt: AttemptRow, gold: Sequence[GoldFile], recorded: Recorded) -> Loss:
    """Why an attempt failed: what its prompt did not show, or what became of its answer."""
    call = next((call for call in recorded.calls if call.id == attempt.call_id), None)
    if call is None:
        return Loss(stage="model", example=attempt.error)
    if attempt.outcome is AttemptOutcome.TRUNCATED:
        return Loss(stage="edit format: answer cut off", example=attempt.error)
    step = section(call.request.prompt, "The step to do now")
    for file in gold:
        if file.path in step and file.before is not None and file.after is not None:
            hidden = _hidden(file, call.request.prompt)
            if hidden:
                about = [
                    row
                    for row in recorded.decisions
                    if row.task_id == call.site.pass_id or row.task_id in call.site.pass_id
                ]
                dropped = [
                    row
                    for row in about
                    if row.subject.path == file.path and row.stage == "assembly" and not row.included
                ]
                stage = "budget: dropped" if dropped else "precision"
                return Loss(
                    stage=stage, example=f"{file.path}, {hidden} not shown; {len(dropped)} pieces dropped"
                )
    words = attempt.error.splitlines()[0] if attempt.error else ""
    undecided = "tests: fail" if attempt.commit_hash else "apply: refused"
    return Loss(stage=STAGES.get(attempt.outcome, undecided), example=words)


def _hidden(file: GoldFile, prompt: str) -> str:
    """The lines of the file's first change that the prompt does not show; "" where all are shown."""
    before = lines_of(file.before or "")
    shown = [piece.text for piece in shown_in(prompt) if piece.path == file.path and piece.editable]
    for i1, i2, _, _ in file.groups:
        lines = before[max(0, i1 - 1) : i2] or before[i1 : i1 + 1]
        if not any("\n".join(lines) in text for text in shown):
            return f"lines {i1 + 1}-{max(i2, i1 + 1)}"
    return ""
