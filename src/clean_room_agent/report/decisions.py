"""Retrieval decisions for a person: the verdict on each candidate, and why."""

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.context import Judgment
from clean_room_agent.artifacts.names import counted, item_name
from clean_room_agent.db.raw.passes import DecisionRow, PlanDecisionRow
from clean_room_agent.report.trace import Chosen


class PassVerdicts(Struct, frozen=True, kw_only=True):
    """One pass's decisions, in order."""

    place: str
    decisions: tuple[DecisionRow, ...]
    """About candidates for the context."""
    plan_decisions: tuple[PlanDecisionRow, ...] = ()
    """On the way to its plan."""


def verdicts(chosen: Chosen) -> tuple[PassVerdicts, ...]:
    """The decisions of the chosen passes (or those that one call judged), pass by pass; passes without any left out."""
    call_id = None if chosen.call is None else chosen.call.id
    found = (
        PassVerdicts(
            place=entry.place,
            decisions=tuple(
                row for row in entry.decisions if call_id is None or row.judgment.call_id == call_id
            ),
            plan_decisions=tuple(
                row for row in entry.plan_decisions if call_id is None or row.judgment.call_id == call_id
            ),
        )
        for entry in chosen.passes
    )
    return tuple(entry for entry in found if entry.decisions or entry.plan_decisions)


def render_verdicts(found: tuple[PassVerdicts, ...]) -> Group:
    """Pass by pass and stage by stage, two lines per decision."""
    lines: list[Text] = []
    for entry in found:
        place = entry.place or "the task"
        if entry.decisions:
            included = sum(row.included for row in entry.decisions)
            head = f"{place}: {counted(len(entry.decisions), 'decision')}, {included} of them in"
            lines.append(Text(head, style="bold"))
            lines += [line for row in entry.decisions for line in decision_lines(row, indent=2)]
        if entry.plan_decisions:
            lines.append(
                Text(
                    f"{place}: {counted(len(entry.plan_decisions), 'decision')} about its plan", style="bold"
                )
            )
            lines += [line for row in entry.plan_decisions for line in plan_decision_lines(row, indent=2)]
    return Group(*(lines or [Text("no decision is recorded here")]))


def decision_lines(row: DecisionRow, *, indent: int) -> list[Text]:
    """The verdict with what decided it, then the reason."""
    verdict = ("in ", "green") if row.included else ("out", "red")
    name = item_name(row.subject.path, row.subject.symbol)
    facts = [f"tier {row.subject.tier}"]
    if row.subject.score is not None:
        facts.append(f"score {row.subject.score:.2f}")
    if row.detail:
        facts.append(row.detail.replace("_", " "))
    facts += _weights(row.judgment)
    pad = " " * indent
    head = Text.assemble(pad, verdict, f" {row.stage:<10} {name}".rstrip(), (f"  {', '.join(facts)}", "cyan"))
    return [head, Text(f"{pad}    {row.reason}", style="dim")]


def plan_decision_lines(row: PlanDecisionRow, *, indent: int) -> list[Text]:
    """The same for a decision about a plan."""
    verdict = ("yes", "green") if row.yes else ("no ", "red")
    pad = " " * indent
    facts = ", ".join(_weights(row.judgment))
    head = Text.assemble(pad, verdict, f" {row.question} {row.item}", (f"  {facts}" if facts else "", "cyan"))
    return [head, Text(f"{pad}    {row.reason}", style="dim")]


def _weights(judgment: Judgment) -> list[str]:
    """The figures behind a model's verdict, and the call that gave it."""
    facts = []
    if judgment.probability is not None:
        facts.append(f"probability {judgment.probability:.2f}")
    if judgment.neutral is not None:
        facts.append(f"{judgment.neutral:.2f} about nothing")
    if judgment.calibrated is not None:
        facts.append(f"calibrated {judgment.calibrated:+.2f}")
    if judgment.call_id is not None:
        facts.append(f"judged by call {judgment.call_id}")
    return facts
