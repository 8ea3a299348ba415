"""Retrieval decisions for a person: the verdict on each candidate, and why."""

from collections.abc import Collection, Iterable

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.context import Judgment
from clean_room_agent.artifacts.names import counted, item_name
from clean_room_agent.db.raw.passes import DecisionRow, PlanDecisionRow
from clean_room_agent.report.trace import PassTrace


class PassVerdicts(Struct, frozen=True, kw_only=True):
    """One pass's decisions, in order."""

    place: str
    decisions: tuple[DecisionRow, ...]
    """About candidates for the context."""
    plan_decisions: tuple[PlanDecisionRow, ...] = ()
    """On the way to its plan."""


def verdicts(passes: Iterable[PassTrace]) -> tuple[PassVerdicts, ...]:
    """The decisions of the passes; passes without any are left out."""
    return tuple(
        PassVerdicts(place=entry.place, decisions=entry.decisions, plan_decisions=entry.plan_decisions)
        for entry in passes
        if entry.decisions or entry.plan_decisions
    )


def verdicts_about(
    passes: Iterable[PassTrace], path: str, symbols: Collection[str | None] = ()
) -> tuple[PassVerdicts, ...]:
    """Those about one file; with `symbols`, those about one of these."""
    found = (
        PassVerdicts(
            place=entry.place,
            decisions=tuple(
                row
                for row in entry.decisions
                if row.subject.path == path and (not symbols or row.subject.symbol in symbols)
            ),
        )
        for entry in passes
    )
    return tuple(entry for entry in found if entry.decisions)


def render_verdicts(found: tuple[PassVerdicts, ...]) -> Group:
    """Pass by pass and stage by stage, two lines per decision."""
    lines: list[Text] = []
    for entry in found:
        place = entry.place or "the task"
        if entry.decisions:
            included = sum(row.included for row in entry.decisions)
            head = f"{place}: {counted(len(entry.decisions), 'decision')}, {included} of them in"
            lines += [Text(head, style="bold"), *lines_of(entry.decisions, indent=2)]
        if entry.plan_decisions:
            head = f"{place}: {counted(len(entry.plan_decisions), 'decision')} about its plan"
            lines += [Text(head, style="bold"), *lines_of(entry.plan_decisions, indent=2)]
    return Group(*(lines or [Text("no decision is recorded here")]))


def lines_of(rows: Iterable[DecisionRow | PlanDecisionRow], *, indent: int) -> list[Text]:
    """Two lines for each decision."""
    return [line for row in rows for line in _decision_lines(row, indent)]


def _decision_lines(row: DecisionRow | PlanDecisionRow, indent: int) -> list[Text]:
    """The verdict with what decided it, then the reason."""
    if isinstance(row, DecisionRow):
        verdict = ("in ", "green") if row.included else ("out", "red")
        name = f"{row.stage:<10} {item_name(row.subject.path, row.subject.symbol)}".rstrip()
    else:
        verdict, name = ("yes", "green") if row.yes else ("no ", "red"), f"{row.question} {row.item}"
    judge = "" if row.judgment.call_id is None else f"judged by call {row.judgment.call_id}"
    facts, pad = ", ".join(filter(None, (weights(row), judge))), " " * indent
    head = Text.assemble(pad, verdict, f" {name}", (f"  {facts}" if facts else "", "cyan"))
    return [head, Text(f"{pad}    {row.reason}", style="dim")]


def weights(row: DecisionRow | PlanDecisionRow) -> str:
    """Tier, score and detail, and the figures behind a model's verdict."""
    facts = []
    if isinstance(row, DecisionRow):
        facts.append(f"tier {row.subject.tier}")
        if row.subject.score is not None:
            facts.append(f"score {row.subject.score:.2f}")
        if row.detail:
            facts.append(row.detail.replace("_", " "))
    judgment: Judgment = row.judgment
    if judgment.probability is not None:
        facts.append(f"probability {judgment.probability:.2f}")
    if judgment.neutral is not None:
        facts.append(f"{judgment.neutral:.2f} about nothing")
    if judgment.calibrated is not None:
        facts.append(f"calibrated {judgment.calibrated:+.2f}")
    return ", ".join(facts)
