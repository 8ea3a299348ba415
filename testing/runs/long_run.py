"""A run in which much happens, whose model answers by what it is asked alone: asked again, it says the same again.

Two parts, the first of two steps; a first attempt that the tests refuse and that is refined, one without an edit that is
retried, an adjustment that changes what remains; and a user's tree with uncommitted work.
"""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.failure_causes import INTERRUPTED
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


RUN = "SELECT status, reason, total_parts, total_steps, parts_completed, steps_completed, branch FROM orchestrator_runs WHERE task_id = :task"
PASS = "substr({}.task_id, length(:task) + 2)"
STORY = {
    "passes": f"""SELECT row_number() OVER (ORDER BY p.sequence_order), {PASS.format("t")}, t.success, t.detail, t.final_plan, t.final_diff, t.mode
        FROM task_runs t JOIN orchestrator_passes p ON p.task_run_id = t.id WHERE t.task_id GLOB :passes""",
    "attempts": f"""SELECT {PASS.format("t")}, a.attempt, a.outcome, a.diff, a.error, a.raw_response, a.edit_report
        FROM run_attempts a JOIN task_runs t ON t.id = a.task_run_id WHERE t.task_id GLOB :passes""",
    "tests": f"""SELECT {PASS.format("v")}, v.kind, v.success, v.tests_run, v.tests_passed, v.newly_failing, a.attempt
        FROM validation_results v LEFT JOIN run_attempts a ON a.id = v.attempt_id WHERE v.task_id GLOB :passes""",
    "decisions": f"""SELECT {PASS.format("d")}, d.stage, d.path, d.symbol, d.included, d.reason, d.detail
        FROM retrieval_decisions d WHERE d.task_id GLOB :passes""",
    "refinements": f"SELECT {PASS.format('r')}, r.request, r.added FROM refinements r WHERE r.task_id GLOB :passes",
    "recoveries": f"SELECT {PASS.format('r')}, r.rule, r.action FROM recovery_decisions r WHERE r.task_id GLOB :passes",
    # A question whose answer was cut off by the kill is asked again.
    "calls": f"""SELECT DISTINCT {PASS.format("c")}, c.call_type, c.item, c.attempt, c.prompt_hash, c.response
        FROM retrieval_llm_calls c WHERE c.task_id GLOB :passes AND c.call_type != 'window_probe' AND c.finish != '{INTERRUPTED}'""",
}
"""Everything of a run's record that must not depend on how often it was interrupted."""

Story = dict[str, Counter[tuple[Any, ...]]]
"""By name, how often each row is there; with the run's own row, and the files of its branch."""


def differences(one: Story, other: Story) -> list[str]:
    """What differs, by name, in words."""
    return [
        f"{name}: more {sorted(map(repr, other[name] - one[name]))[:3]}, less {sorted(map(repr, one[name] - other[name]))[:3]}"[
            :1500
        ]
        for name in one
        if one[name] != other[name]
    ]


def newest_run(project: Project) -> OrchestratorRunRow | None:
    """The newest run of the record; None where there is none."""
    raw = Workspace(repo=project.top).raw
    if not raw.exists():
        return None
    with contextlib.closing(connect_file("raw", raw, read_only=True)) as conn:
        return next(iter(list_orchestrator_runs(conn)), None)


def story_of(project: Project, run: OrchestratorRunRow) -> Story:
    """The run's story."""
    names = {"task": run.task_id, "passes": f"{run.task_id}*"}
    with contextlib.closing(connect_file("raw", Workspace(repo=project.top).raw, read_only=True)) as conn:
        rows = {
            name: Counter(tuple(row) for row in conn.execute(query, names)) for name, query in STORY.items()
        }
        *ending, branch = conn.execute(RUN, names).fetchone()
    tree = repositories.read_tree(project.top, branch) if branch else {}
    return {"run": Counter([tuple(ending)]), "tree": Counter(tree.items()), **rows}
