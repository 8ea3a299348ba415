"""How `cra adapters` prints lists, evaluations and deployments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import output
from clean_room_agent.db.raw.training import (
    AdapterRow,
)
from clean_room_agent.json_values import to_plain, to_shown

if TYPE_CHECKING:
    from clean_room_agent.training.adapters import Evaluated
    from clean_room_agent.training.deployment import Changed
    from clean_room_agent.training.gate import Finding


def brief(row: Any) -> dict[str, Any]:
    """An evaluation in the fields that a list needs."""
    return {name: getattr(row, name) for name in ("id", "base_tag", "example_count", "passed", "timestamp")}


def list_rows(rows: "Sequence[tuple[AdapterRow, Sequence[Any]]]", *, as_json: bool) -> None:
    """Print every adapter with its evaluations, and mark those in use."""
    if as_json:
        output.answer_json(
            [
                {**to_shown(adapter), "evaluations": [brief(each) for each in evaluations]}
                for adapter, evaluations in rows
            ]
        )
        return
    for adapter, evaluations in rows:
        mark = "*" if adapter.deployed else " "
        gate = ("passed" if evaluations[-1].passed else "not passed") if evaluations else "not evaluated"
        output.answer(f"{mark} {adapter.id:>3}  {adapter.stage_name:<18} {adapter.model_tag:<40} {gate}")
    if not rows:
        output.answer("no adapters; `cra train` makes one")


def tell_evaluation(row: AdapterRow, made: "Evaluated", *, as_json: bool) -> None:
    """Print the gate's finding, and the questions that were left out."""
    if as_json:
        output.answer_json(
            {
                "evaluation_id": made.id,
                "adapter_id": row.id,
                "finding": made.finding.as_object(),
                "left_out": made.material.left_out,
                "limited": made.material.limited,
                "spread": made.spread,
            }
        )
    else:
        _show(row, made.finding)
        if len(made.spread) > 1:
            gains = ", ".join(f"{tag} {gain:+.3f}" for tag, gain in sorted(made.spread.items()))
            output.answer(f"  gains of adapters of the same dataset: {gains}")
        for reason, number in made.material.left_out.items():
            output.answer(f"  {number:>7,}  left out: {reason}")
        for reason, number in made.material.limited.items():
            output.answer(f"  {number:>7,}  {reason}")
        output.answer(
            f"evaluation {made.id}" + (f"; next: cra adapters deploy {row.id}" if made.finding.passed else "")
        )


def _show(adapter: AdapterRow, finding: "Finding") -> None:
    words = {
        "passed": "is better than its base",
        "failed": "did not pass the gate",
        "tie": "answers as its base does",
        "shadow": "cannot be judged on so few examples",
    }
    output.answer(
        f"{adapter.model_tag} {words[finding.status]}: {counted(finding.figures.examples, 'example')} of {counted(finding.figures.tasks, 'task')}"
    )
    for check in finding.checks:
        output.answer(f"  {'ok' if check.holds else 'NO':<3} {check.name}: {check.says}")
    output.answer(f"  a gain of {finding.figures.detectable:.1%} would show in 80 % of the cases")
    for name, values in finding.flips_by.items():
        for value, (better, worse) in values.items():
            output.answer(f"      {name} {value}: {better} better, {worse} worse")


def tell(changed: "Changed", *, as_json: bool, note: str = "") -> None:
    """Print what changed, and the note."""
    if as_json:
        output.answer_json({**to_plain(changed), "note": note})
        return
    before = changed.replaced or "the base"
    output.answer(f"{changed.stage}: {changed.tag or 'the base'} answers, in place of {before}")
    if note:
        output.aside(note)
