from tests.db.raw.samples import sample
from tests.report.conftest import Solved

from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.report.decisions import lines_of, verdicts, verdicts_about


def test_decisions_are_told_pass_by_pass_and_those_about_a_file_alone(solved: Solved) -> None:
    places = [entry.place for entry in solved.trace.passes if entry.decisions or entry.plan_decisions]
    assert [entry.place for entry in verdicts(solved.trace.passes)] == places
    about = verdicts_about(solved.trace.passes, "tally/money.py", ("split_amount",))
    assert {(row.subject.path, row.subject.symbol) for entry in about for row in entry.decisions} == {
        ("tally/money.py", "split_amount")
    }


def test_a_decision_says_what_became_of_what_and_why() -> None:
    first, second = lines_of([sample(DecisionRow)], indent=2)
    assert first.plain.startswith("  in ")
    assert "b.py :: B.f" in first.plain
    assert "tier 2" in first.plain
    assert "imported by a.py" in second.plain
