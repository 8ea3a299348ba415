"""How `cra replay` prints its result: the same, the first difference, or the answers of another model next to the
recorded ones.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clean_room_agent.app.replay import Exported
from clean_room_agent.app.what_if import Side, WhatIf
from clean_room_agent.artifacts.names import counted, short_id
from clean_room_agent.cli import output
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.errors import ReplayMismatch
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.summary import RunSummary

SHOWN_CHARS = 120


def mismatch_object(row: OrchestratorRunRow, mismatch: ReplayMismatch) -> dict[str, Any]:
    """Where the replay differs, as `--json` answers it."""
    difference = {
        "message": mismatch.message,
        "call": mismatch.call,
        "part": mismatch.part,
        "line": mismatch.line,
        "recorded": mismatch.recorded,
        "now": mismatch.now,
    }
    return {"replay_of": row.task_id, "same": False, "difference": difference}


def tell_same(row: OrchestratorRunRow, summary: RunSummary, diff: str, *, as_json: bool) -> None:
    """Print that the result is the same."""
    result = summary.result
    if as_json:
        answer = {"task_id": result.task_id, "replay_of": row.task_id, "same": True, "calls": summary.calls}
        output.answer_json(answer)
        return
    output.answer(
        f"the same: {counted(summary.calls, 'call')} answered from the record, {result.status.value}, "
        f"{len(diff.encode())} bytes of diff"
    )


def tell_from(row: OrchestratorRunRow, name: str, summary: RunSummary, before: str, *, as_json: bool) -> None:
    """Print the result of the run from the pass `name` on, next to the recorded result."""
    result = summary.result
    same = result.cumulative_diff == before
    if as_json:
        output.answer_json(
            {
                "task_id": result.task_id,
                "replay_of": row.task_id,
                "from": name,
                "status": {"then": row.status.value, "now": result.status.value},
                "same_diff": same,
                "calls": summary.calls,
                "diff": {"then": before, "now": result.cumulative_diff},
            }
        )
        return
    output.answer(
        f"from {name} on with the configured models: {result.status.value} (then: {row.status.value}), "
        f"{'the same diff' if same else 'another diff'}\nlook into it: cra show {short_id(result.task_id)} --diff"
    )


def tell_export(exported: Exported, target: Path, *, as_json: bool) -> None:
    """Print where the answers are, and whether they still replay."""
    if exported.altered:
        output.aside(
            "answers that held secrets were redacted, so the file may not replay; --exact keeps them"
        )
    if as_json:
        output.answer_json({"task_id": exported.task_id, "calls": exported.calls, "file": str(target)})
    else:
        output.answer(
            f"wrote {counted(exported.calls, 'call')} to {target}; it holds prompts, and so your code"
        )


def tell_comparison(found: WhatIf, *, as_json: bool) -> None:
    """Print the answers of another model next to the recorded ones."""
    if as_json:
        output.answer_json(comparison_object(found))
    else:
        output.answer(render_comparison(found))


def comparison_object(found: WhatIf) -> dict[str, Any]:
    """The comparison as `--json` answers it."""
    return {
        "replay_of": found.replay_of,
        "task_id": found.task_id,
        "stage": found.stage,
        "model": found.model,
        "recorded_models": found.recorded,
        "agree": sum(question.agree for question in found.compared),
        "differ": sum(not question.agree for question in found.compared),
        "then": _totals([question.then for question in found.compared]),
        "now": _totals([question.now for question in found.compared]),
        "questions": [{**to_shown(question), "agree": question.agree} for question in found.compared],
    }


def render_comparison(found: WhatIf) -> str:
    """The comparison for a person: a line per question, both answers where they differ, and sums at the end."""
    lines = [f"{found.stage}: asked again of {found.model}; recorded with {', '.join(found.recorded)}", ""]
    for question in found.compared:
        where = f"{question.pass_id or '(task)'} {question.prompt} {question.item}".rstrip()
        if question.agree:
            lines.append(f"agree   {where}: {_shown(question.now)}")
            continue
        lines += [
            f"DIFFER  {where}",
            f"          then {_shown(question.then)}",
            f"          now  {_shown(question.now)}",
        ]
        if question.decides:
            lines.append(f"          it decided about {', '.join(question.decides)}")
    lines += ["", f"{sum(question.agree for question in found.compared)} of {len(found.compared)} agree"]
    for name in ("then", "now"):
        sums = _totals([getattr(question, name) for question in found.compared])
        tokens = f"{sums['prompt_tokens']:,} + {sums['completion_tokens']:,} tokens"
        lines.append(f"{name}: {tokens}, {sums['latency_ms']:,} ms, {sums['unreadable']} unreadable")
    return "\n".join(lines)


def _shown(side: Side) -> str:
    if side.unreadable:
        return f"unreadable: {side.unreadable}"
    text = side.answer if isinstance(side.answer, str) else json.dumps(side.answer, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def _totals(sides: Sequence[Side]) -> dict[str, int]:
    return {
        "prompt_tokens": sum(side.prompt_tokens or 0 for side in sides),
        "completion_tokens": sum(side.completion_tokens or 0 for side in sides),
        "latency_ms": sum(side.latency_ms for side in sides),
        "unreadable": sum(bool(side.unreadable) for side in sides),
    }
