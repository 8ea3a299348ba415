"""Edits that are refused, and answers without any: nothing is applied, and the next prompt says why."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import Struct, structs
from testing.runs.memory_run import (
    TASK_ID,
    MemoryProject,
    MemoryRun,
    memory_project,
    part,
    step,
)
from testing.runs.solving import MENDED_MONEY, TILL, edit

from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.db.raw.passes import AttemptRow, list_attempts, list_recovery_decisions
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.solve import run_step
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob

MONEY = "till/money.py"
SPLIT = "    share = cents // people\n    return [share] * people"
BETTER = "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"
RIGHT = edit(SPLIT, BETTER)
JOB = StepJob(part=part("p1", MONEY), step=step("s1", MONEY), constraints="")


def cents(files: Mapping[str, str]) -> dict[str, Outcome]:
    """The one test is about the split."""
    return {"tests/test_money.py::split": "passed" if files[MONEY] == MENDED_MONEY else "failed"}


@pytest.fixture
def till(tmp_path: Path) -> Iterator[MemoryProject]:
    files = {path: str(text) for path, text in TILL.items()}
    with memory_project(tmp_path, files, cents) as made:
        yield made


def after(till: MemoryProject, *wrong: str) -> tuple[MemoryRun, AttemptRow]:
    """A step whose first answers are `wrong` and whose next one is right; and its first attempt."""
    answers = iter([*wrong, RIGHT])
    memory = till.open(lambda _: next(answers))
    run_baseline(memory.run)
    end = run_step(memory.run, JOB)
    assert isinstance(end, Attempt)
    assert till.history.files[memory.run.commits.head][MONEY] == MENDED_MONEY
    first, second = till.record.write(list_attempts, TASK_ID)
    assert (first.patch_applied, first.diff, first.commit_hash) == (False, "", "")
    assert second.outcome.value == "applied_and_passed"
    return memory, first


def actions(till: MemoryProject) -> list[str]:
    return [row.action for row in till.record.write(list_recovery_decisions, TASK_ID)]


class Wrong(Struct, frozen=True, kw_only=True):
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
    "wrong file": Wrong(
        answer=edit('"""Receipts as text."""', '"""Bills as text."""', path="till/receipt.py"),
        codes=("WRONG_FILE",),
        told=("Edit 1 (till/receipt.py): WRONG_FILE. This step may not do that to this file.",),
        outcome="insufficient_context",
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
    "edits that overlap": Wrong(
        answer=edit(SPLIT, BETTER) + edit("    share, rest = divmod(cents, people)", "    rest = 0"),
        codes=("APPLIED", "OVERLAP"),
        told=("Edit 2 (till/money.py): OVERLAP.", "Without fault: edit 1.", "Nothing was applied"),
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


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_refused_edit_is_explained_to_the_next_attempt(till: MemoryProject, name: str) -> None:
    wrong = WRONG[name]
    memory, attempt = after(till, wrong.answer)
    assert (attempt.outcome.value, attempt.raw_response) == (wrong.outcome, wrong.answer)
    assert [report.code.value for report in attempt.edit_report] == list(wrong.codes)
    assert wrong.codes[-1] in attempt.error
    assert actions(till) == ["refine" if wrong.outcome == "insufficient_context" else "retry"]
    first, second = (request.prompt for request in memory.transport.requests)
    assert "## Attempt 1 failed" not in first
    assert "## Attempt 1 failed; the code is again as shown above" in second
    for words in wrong.told:
        assert words in second
    assert "Nothing was applied: the files are as shown. Give all edits again." in second


@pytest.mark.parametrize("asked", ["", "; put it into statistics.py"])
def test_a_new_file_that_hides_another_is_refused_unless_the_user_names_it(
    till: MemoryProject, asked: str
) -> None:
    till.task += asked
    hiding = '<create file="statistics.py">\nsplit = 1\n</create>\n'
    job = structs.replace(JOB, step=step("s1", MONEY, "statistics.py"))
    memory = till.open(lambda _: RIGHT + hiding)
    run_baseline(memory.run)
    run_step(memory.run, job)
    first = till.record.write(list_attempts, TASK_ID)[0]
    codes = [report.code.value for report in first.edit_report]
    assert codes == (["APPLIED", "APPLIED"] if asked else ["APPLIED", "PROTECTED"])
    if not asked:
        told = "it would be loaded in place of Python's own module statistics; choose another name"
        assert told in first.edit_report[1].detail


UNUSABLE = {
    "prose alone": ("I would change split.", "no_edits"),
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
def test_an_answer_without_usable_edits_is_an_attempt_of_its_own_class(
    till: MemoryProject, name: str
) -> None:
    answer, outcome = UNUSABLE[name]
    repaired = outcome != "truncated"  # a cut answer is not asked for again in the same attempt
    memory, attempt = after(till, *[answer] * (2 if repaired else 1))
    assert attempt.outcome.value == outcome
    assert actions(till) == ["retry"]
    prompt = memory.transport.requests[-1].prompt
    assert "## Attempt 1 failed" in prompt
    assert f"Result: {outcome.replace('_', ' ')}." in prompt
