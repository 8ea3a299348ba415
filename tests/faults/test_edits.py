"""Edits that a model gets wrong: nothing is applied, the next attempt is told why, and a right one completes the run."""

import re

from testing.runs.solving import MENDED_MONEY, Project, edit

from clean_room_agent.execute.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"
BETTER = "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"


NOT_FOUND = edit("    share = cents / people\n    return [share] * people", BETTER)
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


def test_the_same_wrong_answer_each_time_gives_the_step_up(till: Project) -> None:
    wrong = NOT_FOUND
    told = till.solve_scripted({IMPLEMENT.title: [wrong] * 6})
    assert (told.code, told.traces, told.branches, told.sessions) == (1, {}, (), ())
    assert told.recorded.outcomes == ["refused"] * 5
    assert told.recorded.codes == [["NO_MATCH"]] * 5
    assert [(row.action, row.rule) for row in told.recorded.recoveries] == [
        ("retry", "attempts left: 2"),
        ("replan", "an approach flaw: two patch failures are 100% alike"),
        ("retry", "attempts left: 2"),
        ("diagnose", "2 failed, the last by patch"),
        ("change_strategy", "the same answer again: draw another"),
        ("skip", "attempts are used up"),
    ]
    first, _, third = told.recorded.calls_of("implement")[2:]
    assert (
        '"temperature":0' in first.request.request_body.replace(" ", ""),
        '"temperature":0.7' in third.request.request_body.replace(" ", ""),
    ) == (True, True)
    reason = "s1-2: refused: edit 1 (till/money.py): NO_MATCH"
    assert told.recorded.ending == ("failed", reason)
    assert re.search(rf"^failed  [0-9a-f]{{8}}\n  {re.escape(reason)}$", told.out, re.MULTILINE)
    assert "tests   3 passed, 1 failed -> not run" in told.out
    assert [row.kind for row in told.recorded.validations] == ["baseline"]


def test_inserted_code_lands_and_is_on_record(till: Project) -> None:
    half = "def half(cents):\n    return cents // 2"
    insert = f'<insert file="till/money.py" after="split">\n{half}\n</insert>\n'
    told = till.solve_scripted({IMPLEMENT.title: [edit(SPLIT, BETTER) + insert]})
    assert (told.code, told.traces) == (0, {}), told.err
    (attempt,) = told.recorded.attempts
    assert [(report.kind, report.code.value) for report in attempt.edit_report] == [
        ("edit", "APPLIED"),
        ("insert", "APPLIED"),
    ]
    end = "[share] * (people - rest)\n"
    landed = MENDED_MONEY.replace(end, f"{end}\n\n{half}\n")
    assert till.branch_file("till/money.py") == landed.encode()
    assert told.recorded.run is not None
    shown = till.cra("show", told.recorded.run.task_id, "--why", "till/money.py")
    assert "edit 2 (insert) APPLIED" in shown.out
