"""Edits that a model gets wrong: nothing is applied, the next attempt is told why, and a right one completes the run."""

import re
from dataclasses import dataclass

import pytest
from testing.runs.solving import MENDED_MONEY, Project, Told, edit

from clean_room_agent.execute.prompts.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"
BETTER = "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """An answer, what becomes of its edits, and what the next prompt says of it."""

    answer: str
    codes: tuple[str, ...]
    told: tuple[str, ...]
    outcome: str = "refused"


WRONG = {
    "search text not found": Wrong(
        answer=edit("    share = cents / people\n    return [share] * people", BETTER),
        codes=("NO_MATCH",),
        told=(
            "Edit 1 (till/money.py): NO_MATCH. The search text does not stand in the file.",
            "The nearest text that really stands there:\n|     share = cents // people",
        ),
    ),
    "search text found twice": Wrong(
        answer=edit("    result = 0", "    result = 1"),
        codes=("AMBIGUOUS",),
        told=("Edit 1 (till/money.py): AMBIGUOUS.", "It matched 2 times, at lines 12, 20."),
    ),
    "empty search text": Wrong(
        answer=edit("", BETTER), codes=("NO_MATCH",), told=("Edit 1 (till/money.py): NO_MATCH.",)
    ),
    "wrong file": Wrong(
        answer=edit('"""Receipts as text."""', '"""Bills as text."""', path="till/receipt.py"),
        codes=("WRONG_FILE",),
        told=("Edit 1 (till/receipt.py): WRONG_FILE. This step may not do that to this file.",),
        outcome="insufficient_context",
    ),
    "a file that does not exist": Wrong(
        answer=edit("x = 1", "x = 2", path="till/moneys.py"),
        codes=("WRONG_FILE",),
        told=("Edit 1 (till/moneys.py): WRONG_FILE.", "edit only: till/money.py"),
    ),
    "a file outside the repository": Wrong(
        answer=edit("x = 1", "x = 2", path="../other.py"),
        codes=("WRONG_FILE",),
        told=("Edit 1 (../other.py): WRONG_FILE.",),
    ),
    "git's own files": Wrong(
        answer='<create file=".git/hooks/post-checkout">\n#!/bin/sh\n</create>\n',
        codes=("PROTECTED",),
        told=("Edit 1 (.git/hooks/post-checkout): PROTECTED.", "steers git or cra and is never edited"),
    ),
    "an existing test that the plan does not name": Wrong(
        answer=edit(
            "        self.assertEqual(sum(split(100, 3)), 100)", "        pass", path="tests/test_money.py"
        ),
        codes=("PROTECTED",),
        told=(
            "Edit 1 (tests/test_money.py): PROTECTED.",
            "decides whether tests pass, and the plan does not name it",
        ),
    ),
    "an elision": Wrong(
        answer=edit(SPLIT, "    # ... existing code ...\n    return [share] * people"),
        codes=("ELISION",),
        told=("Edit 1 (till/money.py): ELISION. Write all lines out.",),
    ),
    "edits that overlap": Wrong(
        answer=edit(SPLIT, BETTER) + edit("    share, rest = divmod(cents, people)", "    rest = 0"),
        codes=("APPLIED", "OVERLAP"),
        told=("Edit 2 (till/money.py): OVERLAP.", "Without fault: edit 1.", "Nothing was applied"),
    ),
    "no change": Wrong(
        answer=edit(SPLIT, SPLIT),
        codes=("NO_CHANGE",),
        told=("Edit 1 (till/money.py): NO_CHANGE. Search and replacement say the same.",),
    ),
    "a syntax error": Wrong(
        answer=edit(SPLIT, "    return [cents // people * people"),
        codes=("SYNTAX",),
        told=("Edit 1 (till/money.py): SYNTAX. After the edits the file has a syntax error.",),
    ),
    "creating a file that exists": Wrong(
        answer='<create file="till/money.py">\nsplit = None\n</create>\n',
        codes=("WRONG_FILE",),
        told=("Detail: the file exists and is not empty; change it with <edit file=...>",),
    ),
    "deleting a file that the plan does not delete": Wrong(
        answer='<delete file="till/money.py"/>\n',
        codes=("PROTECTED",),
        told=(
            "Edit 1 (till/money.py): PROTECTED.",
            "the plan does not say that till/money.py is to be deleted",
        ),
    ),
}


def check_untouched_by(told: Told) -> None:
    """The first attempt came to nothing, and whoever watched was told."""
    assert not told.recorded.attempts[0].patch_applied
    assert told.recorded.attempts[0].diff == ""
    assert told.recorded.attempts[0].commit_hash == ""


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_refused_edit_is_explained_to_the_next_attempt(till: Project, name: str) -> None:
    wrong = WRONG[name]
    told = till.solve_scripted({IMPLEMENT.title: [wrong.answer]})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [wrong.outcome, "applied_and_passed"]
    assert told.recorded.codes[0] == list(wrong.codes)
    assert told.recorded.actions == ["refine" if wrong.outcome == "insufficient_context" else "retry"]
    check_untouched_by(told)
    assert told.recorded.attempts[0].raw_response == wrong.answer
    assert wrong.codes[-1] in told.recorded.attempts[0].error
    first, second = told.recorded.calls_of("implement")
    assert "## Attempt 1 failed" not in first.request.prompt
    assert "## Attempt 1 failed; the code is again as shown above" in second.request.prompt
    for words in wrong.told:
        assert words in second.request.prompt
    assert "Nothing was applied: the files are as shown. Give all edits again." in second.request.prompt
    assert f"{wrong.outcome.replace('_', ' ')}: edit {len(wrong.codes)} (" in told.err
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()


UNUSABLE = {
    "prose alone": ("I would change split.", "no_edits"),
    "nothing": ("", "no_edits"),
    "a diff": ("--- a/till/money.py\n+++ b/till/money.py\n@@ -6 +6 @@\n-    x\n+    y\n", "no_edits"),
    "an unclosed tag": (
        f'<edit file="till/money.py">\n<search>\n{SPLIT}\n</search>\n<replacement>\n{BETTER}\n',
        "truncated",
    ),
    "an edit without a search": (
        '<edit file="till/money.py">\n<replacement>\nx = 1\n</replacement>\n</edit>\n',
        "unreadable",
    ),
}


@pytest.mark.parametrize("name", sorted(UNUSABLE))
def test_an_answer_without_usable_edits_is_an_attempt_of_its_own_class(till: Project, name: str) -> None:
    answer, outcome = UNUSABLE[name]
    repaired = outcome != "truncated"  # a cut answer is not asked for again in the same attempt
    told = till.solve_scripted({IMPLEMENT.title: [answer] * (2 if repaired else 1)})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [outcome, "applied_and_passed"]
    assert told.recorded.actions == ["retry"]
    check_untouched_by(told)
    asked = told.recorded.calls_of("implement")
    assert told.recorded.reading_of(asked[0])[0] == "unreadable"
    assert "## Attempt 1 failed" in asked[-1].request.prompt
    assert f"Result: {outcome.replace('_', ' ')}." in asked[-1].request.prompt


def test_the_same_wrong_answer_each_time_gives_the_step_up(till: Project) -> None:
    wrong = WRONG["search text not found"].answer
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
    assert [row.kind for row in told.recorded.validations] == ["baseline"]


def test_two_attempts_are_shown_to_the_third(till: Project) -> None:
    answers = [WRONG["search text not found"].answer, WRONG["an elision"].answer]
    told = till.solve_scripted({IMPLEMENT.title: answers})
    assert told.recorded.outcomes == ["refused", "refused", "applied_and_passed"]
    third = told.recorded.calls_of("implement")[2].request.prompt
    assert (
        third.index("## Earlier attempts\n- attempt 1: refused: ")
        < third.index("NO_MATCH")
        < third.index("## Attempt 2 failed")
        < third.index("ELISION")
    )


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
