"""Steps that create a file, in whole runs in memory: declarations first, proven, then bodies; what becomes of those that are not
proven; and runs that go on where they were interrupted.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testing.runs.bills import ALWAYS, BILLS, BILLS_PATH, STUBS
from testing.runs.memory_till import MemoryTill, MemoryTold, dying, memory_bills
from testing.runs.solving import Script, edit
from testing.runs.spoiled_answers import cut
from testing.servers.ollama_script import ChatCall

from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.errors import ServerFailed
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.scaffold import SCAFFOLD

MADE = "it creates till/bills.py; it parses and imports; stubs: " + ", ".join(
    f"{BILLS_PATH}::{symbol}" for symbol in STUBS
)
CREATE = f'<create file="{BILLS_PATH}">\n{{}}</create>'
NOT_A_STUB = CREATE.format("def shares(bill, people):\n    return []\n")
CANNOT_BE_IMPORTED = CREATE.format(
    "import cashier\n\n\ndef shares(bill, people):\n    raise NotImplementedError\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryTill]:
    with memory_bills(tmp_path) as made:
        yield made


def solve(project: MemoryTill, spoiled: dict[str, list[Any]] | None = None, **tables: Any) -> MemoryTold:
    return project.solve_scripted(spoiled, **{"solve": ALWAYS, **tables})


def write_without(symbol: str) -> Callable[[ChatCall, str], str]:
    """The right answer, without the edit of one symbol."""

    def spoil(_: ChatCall, right: str) -> str:
        blocks = [f"{block}</edit>\n" for block in right.split("</edit>\n") if block.strip()]
        return "".join(block for block in blocks if f'symbol="{symbol}"' not in block)

    return spoil


def check_solved(told: MemoryTold) -> None:
    assert (told.error, told.ending) == (None, ("complete", ""))
    assert told.files[BILLS_PATH] == BILLS


def said_of(told: MemoryTold) -> list[tuple[str, str]]:
    return told.notes("scaffold", "scaffold_dropped", "target_untouched")


def test_by_default_the_file_is_written_at_once(project: MemoryTill) -> None:
    told = project.solve_scripted()
    check_solved(told)
    assert told.recorded.calls_of("scaffold") == []
    assert said_of(told) == []


def test_once_an_answer_was_cut_off_the_next_attempt_begins_with_declarations(project: MemoryTill) -> None:
    told = project.solve_scripted({IMPLEMENT.title: [cut, cut]})
    check_solved(told)
    assert told.recorded.outcomes == ["truncated", "applied_and_passed"]
    (declared,) = told.recorded.calls_of("scaffold")
    assert declared.site.pass_id.endswith(":retry_1")
    assert [call.site.item for call in told.recorded.calls_of("implement")][2:] == [
        f"{BILLS_PATH}::{symbol}" for symbol in STUBS
    ]
    assert said_of(told) == [("scaffold", MADE)]


def test_declarations_come_first_then_the_bodies_in_one_attempt(project: MemoryTill) -> None:
    told = solve(project)
    check_solved(told)
    declared, written = told.recorded.calls_of("scaffold") + told.recorded.calls_of("implement")
    assert declared.site.pass_id == written.site.pass_id
    assert "raise NotImplementedError" in declared.answer.response
    assert f"file: {BILLS_PATH} (lines 1-26)" in written.request.prompt
    assert "Files: modify till/bills.py" in written.request.prompt
    assert all(f"- {BILLS_PATH}::{symbol}\n" in written.request.prompt for symbol in STUBS)
    assert said_of(told) == [("scaffold", MADE)]
    (attempt,) = told.recorded.attempts
    assert attempt.diff.count("+++ b/") == 1
    assert "NotImplementedError" not in attempt.diff


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (NOT_A_STUB, "the body of shares is no stub"),
        (CANNOT_BE_IMPORTED, "cannot import till/bills.py: line 1: ModuleNotFound"),
        (CREATE.format("def shares(bill\n"), "(till/bills.py): SYNTAX."),
        (edit("x = 1", "x = 2", path="till/money.py"), "its answer creates no file"),
        ("I declare nothing.", "holds no <edit>"),
        (cut, "its answer was cut off"),
    ],
)
def test_what_cannot_be_proven_is_dropped_and_the_step_goes_the_ordinary_way(
    project: MemoryTill, wrong: Any, why: str
) -> None:
    told = solve(project, {SCAFFOLD.title: [wrong]})
    check_solved(told)
    assert len(told.recorded.calls_of("scaffold")) == 1
    (written,) = told.recorded.calls_of("implement")
    assert "Files: create till/bills.py" in written.request.prompt
    assert "These functions are stubs" not in written.request.prompt
    ((kind, detail),) = said_of(told)
    assert (kind, why in detail) == ("scaffold_dropped", True)
    assert "scaffold dropped: it creates" in project.shown()


def test_bodies_that_are_cut_off_come_one_by_one_within_the_attempt(project: MemoryTill) -> None:
    told = solve(project, {IMPLEMENT.title: [cut]})
    check_solved(told)
    assert told.recorded.outcomes == ["applied_and_passed"]
    asked = told.recorded.calls_of("implement")
    assert [call.site.item for call in asked] == ["", *(f"{BILLS_PATH}::{symbol}" for symbol in STUBS)]
    assert all("Write this one function" in call.request.prompt for call in asked[1:])


def test_a_stub_that_is_left_is_named_and_tried_again(project: MemoryTill) -> None:
    told = solve(project, {IMPLEMENT.title: [write_without("Bill.due")]})
    check_solved(told)
    assert told.recorded.outcomes == ["refused", "applied_and_passed"]
    said = "nothing was applied, because the step also has to: write till/bills.py::Bill.due"
    assert told.recorded.attempts[0].error == said
    assert said in told.recorded.calls_of("implement")[1].request.prompt


def test_a_stub_that_is_left_twice_is_never_accepted_silently(tmp_path: Path) -> None:
    extra = BILLS + '\n\ndef refund(bill):\n    """Nobody calls it."""\n    return -bill.due()\n'
    with memory_bills(tmp_path, {BILLS_PATH: extra}) as project:
        told = solve(project, {IMPLEMENT.title: [write_without("refund")] * 2})
        shown = project.shown()
    left = "write till/bills.py::refund"
    assert ("target_untouched", left) in said_of(told)
    assert [row.detail for row in told.recorded.passes if ":retry_1" in row.task_id] == [
        f"6 pass; left as it was: {left}"
    ]
    assert f"target untouched: {left}" in shown


def test_candidates_share_the_scaffold(project: MemoryTill) -> None:
    told = solve(project, {IMPLEMENT.title: [write_without("shares")]}, solve={**ALWAYS, "samples": 2})
    check_solved(told)
    assert len(told.recorded.calls_of("scaffold")) == 1
    assert told.recorded.outcomes == ["refused", "applied_and_passed"]


CASES: tuple[tuple[dict[str, list[Any]], str, int], ...] = (
    ({}, SCAFFOLD.title, 1),
    ({}, IMPLEMENT.title, 1),
    ({IMPLEMENT.title: [cut]}, IMPLEMENT.title, 3),
    ({SCAFFOLD.title: [NOT_A_STUB]}, IMPLEMENT.title, 1),
    ({IMPLEMENT.title: [write_without("shares")]}, IMPLEMENT.title, 2),
)


@pytest.mark.parametrize(
    ("spoiled", "title", "number", "way"),
    [*((*case, "always") for case in CASES), ({IMPLEMENT.title: [cut]}, SCAFFOLD.title, 1, "auto")],
)
def test_a_run_with_a_scaffold_goes_on_as_if_nothing_had_been_and_replays(
    tmp_path: Path, spoiled: dict[str, list[Any]], title: str, number: int, way: str
) -> None:
    stories, declared = [], []
    for name, broken in (("whole", False), ("broken", True)):
        with memory_bills(tmp_path / name) as project:
            script = Script(project.oracle, spoiled)
            answerer = dying(script, title, number) if broken else script
            told = project.solve(answerer, solve={**ALWAYS, "scaffold": way})
            if broken:
                assert isinstance(told.error, ServerFailed)
                told = project.resume(answerer)
                again = project.replay()
                check_solved(again)
                assert _story(again) == _story(told)
            check_solved(told)
        stories.append(_story(told))
        declared.append(len([call for call in told.recorded.calls_of("scaffold") if call.answer.response]))
    assert stories[0] == stories[1]
    if title == IMPLEMENT.title:  # what was declared before the server died is not asked for again
        assert declared[0] == declared[1]


def _story(told: MemoryTold) -> list[Any]:
    recorded = told.recorded
    return [
        recorded.ending,
        said_of(told),
        recorded.outcomes,
        sorted(relative_pass(row.task_id) for row in recorded.passes),
        [row.diff for row in recorded.attempts],
    ]
