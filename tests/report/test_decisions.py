from rich.console import Console
from tests.db.raw.samples import sample
from tests.report.conftest import LargeRun

from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.report.decisions import decision_lines, render_verdicts, verdicts
from clean_room_agent.report.trace import Chosen, choose


def test_decisions_stand_pass_by_pass_and_those_of_a_call_alone(large: LargeRun) -> None:
    found = verdicts(large.all)
    assert [entry.place for entry in found] == [
        entry.place for entry in large.trace.passes if entry.decisions
    ]
    judged = next(row for entry in found for row in entry.decisions if row.judgment.call_id is not None)
    (only,) = verdicts(choose(large.trace, f"call:{judged.judgment.call_id}"))
    assert all(row.judgment.call_id == judged.judgment.call_id for row in only.decisions)


def test_a_decision_says_what_became_of_what_and_why() -> None:
    first, *rest = decision_lines(sample(DecisionRow), indent=2)
    assert first.plain.startswith("  in ")
    assert "b.py :: B.f" in first.plain
    assert "tier 2" in first.plain
    assert "imported by a.py" in "".join(line.plain for line in rest)


def test_no_decision_is_said_so() -> None:
    console = Console(width=100)
    with console.capture() as told:
        console.print(render_verdicts(verdicts(Chosen(place="", passes=()))))
    assert told.get() == "no decision is recorded here\n"
