"""What a run looks like in which nothing goes wrong: the measure for all that goes wrong elsewhere."""

from tests.fakes.solving import MENDED_MONEY, Project


def test_a_run_without_a_fault_leaves_a_branch_and_its_record_and_nothing_else(till: Project) -> None:
    told = till.solve_scripted()
    assert (told.code, told.traces) == (0, {})
    assert "complete: the tests pass" in told.out
    assert told.recorded.ending == ("complete", "")
    assert told.recorded.outcomes == ["applied_and_passed"]
    assert [row.kind for row in told.recorded.validations] == ["baseline", "attempt", "final"]
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()
    assert told.sessions == ()
