"""Edits that a model gets wrong: nothing is applied, the next attempt is told why, and a right one completes the run."""

from testing.runs.solving import MENDED_MONEY, Project, edit

from clean_room_agent.execute.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"
BETTER = "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"


ELSEWHERE = edit('"""Receipts as text."""', '"""Bills as text."""', path="till/receipt.py")


def test_a_refused_edit_is_explained_to_the_next_attempt(till: Project) -> None:
    """`tests/orchestrator/steps/test_refused_edits.py` has the other refusals."""
    told = till.solve_scripted({IMPLEMENT.title: [ELSEWHERE]})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == ["insufficient_context", "applied_and_passed"]
    assert told.recorded.codes[0] == ["WRONG_FILE"]
    assert told.recorded.actions == ["refine"]
    attempt = told.recorded.attempts[0]
    assert (attempt.patch_applied, attempt.diff, attempt.commit_hash) == (False, "", "")
    assert "WRONG_FILE" in told.recorded.calls_of("implement")[1].request.prompt
    assert "insufficient context: edit 1 (" in told.err
    assert "refused (" not in told.out
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()
