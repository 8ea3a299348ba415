"""The tables of results: each set and arm, and each arm beside `cra` on the same tasks."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from benchmarks.real.proxy import Usage
from benchmarks.results import table
from clean_room_agent.training.statistics import ClusterSums, cluster_bootstrap, mcnemar

BASE = "cra"
SEED = 1
HEAD = (
    *(
        "set, arm",
        "tasks",
        "solved",
        "claimed but wrong",
        "read",
        "cached",
        "written",
        "s",
        "in the model",
        "applied",
    ),
    *("more than cra", "p"),
)


class Result(Struct, frozen=True, kw_only=True):
    """One task by one arm."""

    task: str
    set: str
    split: str
    arm: str
    solved: bool
    claimed: bool
    usage: Usage
    answers: int
    """Of the model."""
    refused: int
    """Requests beyond the bound."""
    seconds: float
    model_seconds: float
    attempts: int
    applied: int
    note: str
    lost: str
    """The stage, where the task is not solved and the arm tells."""


def page(results: Sequence[Result], split: str) -> str:
    """The table of one split; tokens and seconds are means of a task."""
    chosen = [result for result in results if result.split == split]
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in chosen:
        groups.setdefault((result.set, result.arm), []).append(result)
    ordered = sorted(groups, key=lambda name: name[0])  # arms stay in their order
    rows = [row(name, groups[name], groups.get((name[0], BASE), [])) for name in ordered]
    losses = Counter((result.set, result.lost) for result in chosen if result.lost)
    lines = [f"- {name}, lost: {stage}: {count}" for (name, stage), count in sorted(losses.items())]
    return "\n".join([table(HEAD, rows), "", *lines])


def row(name: tuple[str, str], results: Sequence[Result], base: Sequence[Result]) -> tuple[object, ...]:
    """One line of the table."""
    count = len(results)
    wrong = sum(result.claimed and not result.solved for result in results)
    usage = sum((result.usage for result in results), Usage())
    attempts, applied = sum(result.attempts for result in results), sum(result.applied for result in results)
    return (
        f"{name[0]}, {name[1]}",
        count,
        sum(result.solved for result in results),
        f"{wrong} of {sum(result.claimed for result in results)}",
        f"{usage.read / count:,.0f}",
        f"{usage.cached / count:,.0f}",
        f"{usage.written / count:,.0f}",
        f"{sum(result.seconds for result in results) / count:.0f}",
        f"{sum(result.model_seconds for result in results) / count:.0f}",
        f"{100 * applied / attempts:.0f} % of {attempts}" if attempts else "",
        *(("", "") if name[1] == BASE or not base else compared(results, base)),
    )


def compared(results: Sequence[Result], base: Sequence[Result]) -> tuple[str, str]:
    """By how much more of the tasks that both have done were solved, in points with a 95 % interval, and McNemar's p."""
    theirs = {result.task: result.solved for result in results}
    pairs = [(theirs[result.task], result.solved) for result in base if result.task in theirs]
    if not pairs:
        return "", ""
    clusters = [ClusterSums(1, 0, float(arm) - float(own), 0.0) for arm, own in pairs]
    gain = cluster_bootstrap(clusters, balanced=False, seed=SEED)
    p = mcnemar(sum(arm > own for arm, own in pairs), sum(arm < own for arm, own in pairs))
    return f"{100 * gain.value:+.0f} ({100 * gain.lower:+.0f} to {100 * gain.upper:+.0f})", f"{p:.3f}"
