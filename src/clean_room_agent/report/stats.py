"""Statistics over the record: what each prompt's calls cost, how right they were, and where failed tasks were lost."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.names import counted
from clean_room_agent.training.credit import STAGES, Waterfall
from clean_room_agent.training.logs import PromptStats

WHAT_IS_LOST = {
    "retrieval": "a file to change was not found, or ranked where nobody looks",
    "scope": "it was found, but judged irrelevant",
    "precision": "it was in scope, and what was to change was not shown to be edited",
    "budget": "it was dropped because the window was full",
    "planning": "it was shown, and no plan names it",
    "format": "no edit could be read and applied",
    "implement": "edits were applied, and were wrong",
}
HEADS = ("calls", "failed", "unread.", "repaired", "in", "out", "s", "prec.", "recall")
WIDTHS = (8, 7, 8, 9, 13, 12, 8, 6, 7)


def waterfall_object(waterfall: Waterfall) -> dict[str, Any]:
    """Where tasks were lost, as `--json` answers it."""
    return {
        "tasks": waterfall.tasks,
        "solved": waterfall.solved,
        "unproven": waterfall.unproven,
        "charged": dict(waterfall.by_stage),
        "charged_prompts": dict(waterfall.by_prompt),
        "unattributed": dict(waterfall.unattributed),
        "required_recall": waterfall.required_recall,
        "context_recall": waterfall.context_recall,
    }


def render_stats(prompts: Sequence[PromptStats], waterfall: Waterfall, *, counterfactual: bool) -> Group:
    """Both tables; with `counterfactual`, each stage's headroom next to what was lost there."""
    lines = [Text("prompt, model", style="dim"), Text(_table_row(HEADS), style="dim")]
    for each in prompts:
        sums, agreement = each.sums, each.agreement
        cached = f", {sums.cached_tokens / sums.told_tokens:.0%} cached" if sums.told_tokens else ""
        tried = (
            f"; {sums.tried:,} tried: {sums.applied / sums.tried:.0%} applied, {sums.passed:,} passed"
            if sums.tried
            else ""
        )
        lines.append(
            Text(f"{sums.prompt}, {sums.model}{' (adapter)' if sums.adapter else ''}{cached}{tried}")
        )
        counts = (sums.calls, sums.failed, sums.unreadable, sums.repaired, sums.prompt_tokens)
        figures = (*counts, sums.completion_tokens, round(sums.latency_ms / 1000))
        shares = (agreement.precision, agreement.recall) if agreement else (None, None)
        lines.append(Text(_table_row((*(f"{figure:,}" for figure in figures), *map(_format_share, shares)))))
    return Group(*lines, Text(), *_waterfall_lines(waterfall, counterfactual=counterfactual))


def _waterfall_lines(waterfall: Waterfall, *, counterfactual: bool) -> Iterator[Text]:
    failed = waterfall.tasks - waterfall.solved - waterfall.unproven
    unproven = f", {waterfall.unproven:,} unproven" if waterfall.unproven else ""
    yield Text(f"{counted(waterfall.tasks, 'task')}, {waterfall.solved:,} solved, {failed:,} not{unproven}")
    told = [
        stage
        for stage in STAGES
        if waterfall.by_stage[stage] or (counterfactual and waterfall.headroom[stage].at_most)
    ]
    if failed and told:
        yield Text("lost at", style="dim")
        for stage in told:
            headroom = waterfall.headroom[stage]
            won = f"; won if perfect: {headroom.expected:.1f} expected, at most {headroom.at_most:,}"
            yield Text.assemble(
                f"{waterfall.by_stage[stage]:>5,}  {stage}{won if counterfactual else ''}\n",
                (f"       {WHAT_IS_LOST[stage]}", "dim"),
            )
    elif counterfactual and not failed:
        yield Text("nothing to win: no task failed", style="dim")
    for why, count in waterfall.unattributed.items():
        yield Text(f"charged to nothing: {count:,} ({why})", style="dim")
    came = (
        ("files to change that came into scope", waterfall.required_recall),
        ("of the other files that a solved run showed", waterfall.context_recall),
    )
    yield Text("; ".join(f"{what}: {_format_share(share)}" for what, share in came if share is not None))


def _table_row(cells: Sequence[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
