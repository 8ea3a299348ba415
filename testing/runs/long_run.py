"""A run in which much happens, whose model answers by what it is asked alone: asked again, it says the same again.

Two parts, the first of two steps; a first attempt that the tests refuse and that is refined, one without an edit that is
retried, an adjustment that changes what remains; and a user's tree with uncommitted work.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.failure_causes import INTERRUPTED
from clean_room_agent.db.raw.passes import (
    list_attempts,
    list_decisions,
    list_passes,
    list_recovery_decisions,
    list_refinements,
    list_task_runs,
    list_validations,
)
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import ADJUSTMENT, META_PLAN, PART_PLAN
from clean_room_agent.workspace import Workspace
from testing import repositories
from testing.runs.recorded import list_orchestrator_runs
from testing.runs.solving import MENDED_MONEY, MONEY, PROBE, RECEIPT, TILL, Project, edit, make_project
from testing.servers.ollama_script import ChatCall

SPLIT = "    share = cents // people\n    return [share] * people"
MENDED_SPLIT = (
    "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"
)
WRONG = edit(SPLIT, "    share = cents // people\n    return [share] * (people - 1) + [cents]")
NEGATE = "    result = 0\n    return [result - share for share in shares]"
MENDED_NEGATE = "    return [-share for share in shares]"
RECEIPT_END = '    return lines + [f"total: {total(shares)}"]'
MENDED_END = '    return [*lines, f"sum: {total(shares)}"]'
GOLD = {
    "till/money.py": MENDED_MONEY.replace(NEGATE, MENDED_NEGATE),
    "till/receipt.py": RECEIPT.replace(RECEIPT_END, MENDED_END),
}
ANSWERS = {
    "keep every cent": edit(SPLIT, MENDED_SPLIT),
    "plainer": edit(NEGATE, MENDED_NEGATE),
    "say sum": edit(RECEIPT_END, MENDED_END, "till/receipt.py"),
}
"""By words of the step."""
assert SPLIT in MONEY and RECEIPT_END in RECEIPT  # noqa: PT018


def long_project(folder: Path) -> Project:
    """The repository, with work that is not committed."""
    project = make_project(folder, TILL, GOLD)
    repositories.write(project.top, {"notes.txt": "mine\n", "till/__init__.py": '"""A till."""\n'})
    return project


class Mind:
    """The model's side of the run."""

    def __init__(self, project: Project) -> None:
        self._oracle = project.oracle

    def __call__(self, call: ChatCall) -> str:
        """The answer to one prompt."""
        if call.prompt.startswith(PROBE):
            return "x"
        if call.title == META_PLAN.title:
            parts = [
                _part("p1", "Mend the sums.", "money"),
                _part("p2", "Mend the receipt.", "receipt", "p1"),
            ]
            return json.dumps({"analysis": "two files", "parts": parts, "summary": "Mend the till"})
        if call.title == PART_PLAN.title:
            return json.dumps({"analysis": "as said", "steps": _steps(call.prompt), "summary": "Steps"})
        if call.title == ADJUSTMENT.title:
            step = _step("s2", "Write negate plainer, as lists do.", "money", "negate", "s1")
            return json.dumps({"analysis": "one word more", "changes": ["s2: how"], "steps": [step]})
        if call.title == IMPLEMENT.title:
            return self._edits(call.prompt)
        answer = self._oracle(call)
        return answer if isinstance(answer, str) else answer.text

    def _edits(self, prompt: str) -> str:
        step = prompt.rpartition("## The step to do now")[2]
        words = next(words for words in ANSWERS if words in step)
        if "## Attempt 1 failed" not in prompt:
            if words == "keep every cent":
                return WRONG
            if words == "plainer":
                return "I would write it in another way."
        return ANSWERS[words]


def _part(name: str, description: str, file: str, *needs: str) -> dict[str, Any]:
    return {"description": description, "files": [f"till/{file}.py"], "id": name, "needs": list(needs)}


def _step(name: str, description: str, file: str, symbol: str, *needs: str) -> dict[str, Any]:
    return {
        "description": description,
        "files": [{"path": f"till/{file}.py", "role": "modify"}],
        "id": name,
        "needs": list(needs),
        "symbols": [symbol],
    }


def _steps(prompt: str) -> list[dict[str, Any]]:
    if "Mend the receipt" in prompt.rpartition("## The part to divide now")[2]:
        return [_step("s1", "In the receipt, say sum and not total.", "receipt", "receipt")]
    return [
        _step("s1", "Let split keep every cent.", "money", "split"),
        _step("s2", "Write negate plainer.", "money", "negate", "s1"),
    ]


class Story(Struct, frozen=True, kw_only=True):
    """Everything of a run's result and record that must not depend on how often it was interrupted."""

    status: str
    reason: str
    counts: tuple[int, ...]
    tree: dict[str, str]
    """Of the branch."""
    passes: tuple[tuple[Any, ...], ...]
    attempts: tuple[tuple[Any, ...], ...]
    validations: tuple[tuple[Any, ...], ...]
    decisions: Counter[tuple[Any, ...]]
    refinements: tuple[tuple[Any, ...], ...]
    recoveries: tuple[tuple[Any, ...], ...]
    calls: frozenset[tuple[Any, ...]]

    def differences(self, other: "Story") -> list[str]:
        """The names of what differs."""
        told = []
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                more = sorted(map(repr, Counter(_parts(theirs)) - Counter(_parts(mine))))
                less = sorted(map(repr, Counter(_parts(mine)) - Counter(_parts(theirs))))
                told.append(f"{name}: more {more[:3]}, less {less[:3]}"[:1500])
        return told


def _parts(value: Any) -> Iterable[Any]:
    match value:
        case Counter():
            return value.elements()
        case dict():
            return value.items()
        case str():
            return (value,)
    return cast("Iterable[Any]", value)


def newest_run(project: Project) -> OrchestratorRunRow | None:
    """The newest run of the record; None where there is none."""
    raw = Workspace(repo=project.top).raw
    if not raw.exists():
        return None
    with contextlib.closing(connect_file("raw", raw, read_only=True)) as conn:
        runs = list_orchestrator_runs(conn)
    return next(iter(runs), None)


def story_of(project: Project, run: OrchestratorRunRow) -> Story:
    """The run's story."""
    with contextlib.closing(connect_file("raw", Workspace(repo=project.top).raw, read_only=True)) as conn:
        rows = {row.id: row for row in list_task_runs(conn, run.task_id)}
        names = {row_id: relative_pass(row.task_id) for row_id, row in rows.items()}
        order = [rows[row.task_run_id] for row in list_passes(conn, run.id)]
        attempts = list_attempts(conn, run.task_id)
        tried = {row.id: (names[row.task_run_id], row.attempt) for row in attempts}
        return Story(
            status=run.status.value,
            reason=run.reason,
            counts=(run.total_parts, run.total_steps, run.parts_completed, run.steps_completed),
            tree=_tree(project, run),
            passes=tuple(
                (
                    relative_pass(row.task_id),
                    row.success,
                    row.detail,
                    row.final_plan,
                    row.final_diff,
                    row.mode,
                )
                for row in order
            ),
            attempts=tuple(
                (*tried[row.id], row.outcome.value, row.diff, row.error, row.raw_response, row.edit_report)
                for row in attempts
            ),
            validations=tuple(
                (
                    relative_pass(row.task_id),
                    row.kind,
                    row.success,
                    row.tests_run,
                    row.tests_passed,
                    row.newly_failing,
                    tried.get(row.attempt_id or 0),
                )
                for row in list_validations(conn, run.task_id)
            ),
            decisions=Counter(
                (
                    relative_pass(row.task_id),
                    row.stage,
                    row.subject.path,
                    row.subject.symbol,
                    row.included,
                    row.reason,
                    row.detail,
                )
                for row in list_decisions(conn, run.task_id)
            ),
            refinements=tuple(
                (relative_pass(row.task_id), row.request, row.added)
                for row in list_refinements(conn, run.task_id)
            ),
            recoveries=tuple(
                (relative_pass(row.task_id), row.rule, row.action)
                for row in list_recovery_decisions(conn, run.task_id)
            ),
            calls=frozenset(
                (
                    relative_pass(row.site.pass_id),
                    row.site.call_type,
                    row.site.item,
                    row.site.attempt,
                    row.request.prompt_hash,
                    row.answer.response,
                )
                for row in list_calls(conn, run.task_id)
                if row.site.call_type != "window_probe" and row.ending.finish != INTERRUPTED
            ),
        )


def _tree(project: Project, run: OrchestratorRunRow) -> dict[str, str]:
    if not run.branch:
        return {}
    return {path: data.decode() for path, data in repositories.read_tree(project.top, run.branch).items()}
