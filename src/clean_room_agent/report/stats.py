"""Statistics over the record: what each prompt's calls cost, how right they were, and where failed tasks were lost."""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.names import counted
from clean_room_agent.report.figure_table import FigureTable
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


def render_stats(prompts: Sequence[PromptStats], waterfall: Waterfall, *, counterfactual: bool) -> Group:
    """Both tables; with `counterfactual`, each stage's headroom next to what was lost there."""
    return Group(_prompts(prompts), Text(), *_waterfall(waterfall, counterfactual=counterfactual))


def _prompts(prompts: Sequence[PromptStats]) -> FigureTable:
    heads = ("calls", "failed", "unread.", "repaired", "in", "out", "s", "prec.", "recall")
    table = FigureTable(name="prompt, model", heads=heads)
    for each in prompts:
        sums, agreement = each.sums, each.agreement
        cached = f"\n  {sums.cached_tokens / sums.told_tokens:.0%} cached" if sums.told_tokens else ""
        table.add(
            Text(f"{sums.prompt}\n  {sums.model}{' (adapter)' if sums.adapter else ''}{cached}"),
            f"{sums.calls:,}",
            f"{sums.failed:,}",
            f"{sums.unreadable:,}",
            f"{sums.repaired:,}",
            f"{sums.prompt_tokens:,}",
            f"{sums.completion_tokens:,}",
            f"{sums.latency_ms / 1000:,.0f}",
            _share(None if agreement is None else agreement.precision),
            _share(None if agreement is None else agreement.recall),
        )
    return table


def _waterfall(waterfall: Waterfall, *, counterfactual: bool) -> Iterable[FigureTable | Text]:
    failed = waterfall.tasks - waterfall.solved - waterfall.unproven
    tasks = counted(waterfall.tasks, "task")
    unproven = f", {waterfall.unproven:,} unproven" if waterfall.unproven else ""
    yield Text(f"{tasks}, {waterfall.solved:,} solved, {failed:,} not{unproven}")
    if failed:
        heads = ("won if perfect, at most", "expected") if counterfactual else ()
        table = FigureTable(name="lost at", heads=("tasks", *heads))
        for stage in STAGES:
            headroom = waterfall.headroom[stage]
            won = (f"{headroom.at_most:,}", f"{headroom.expected:.1f}") if counterfactual else ()
            name = Text.assemble(f"{stage}\n  ", (WHAT_IS_LOST[stage], "dim"))
            table.add(name, f"{waterfall.by_stage[stage]:,}", *won)
        yield table
    elif counterfactual:
        yield Text("nothing to win: no task failed", style="dim")
    for why, count in waterfall.unattributed.items():
        yield Text(f"charged to nothing: {count:,} ({why})", style="dim")
    came = (
        ("files to change that came into scope", waterfall.required_recall),
        ("of the other files that a solved run showed", waterfall.context_recall),
    )
    yield Text("; ".join(f"{what}: {_share(share)}" for what, share in came if share is not None))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
