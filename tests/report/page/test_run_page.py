"""What the page of a run says, before anything is drawn."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.report.conftest import Solved

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.report.page.run_page import WORTH, changed_tests, run_page, shared_beginnings
from clean_room_agent.report.summary import TestsTouched

LONG = "rules " * (WORTH // 6 + 1)


def test_each_call_has_what_it_was_shown(solved: Solved) -> None:
    page = run_page(solved.conn, solved.trace, "", str)
    assert list(page.calls) == [call.id for call in solved.trace.calls]
    call = page.calls[solved.call_id("implement")]
    assert "tally/money.py" in {item.name for item in call.items if item.kind == "file" and item.first}
    assert sum(item.tokens for item in call.items) <= call.use.call.cost.read_tokens
    assert any(item.reason for item in call.items)


def test_texts_that_are_divided_were_made_safe_before(solved: Solved) -> None:
    page = run_page(solved.conn, solved.trace, "", lambda text: text.replace("cents", "[hidden]"))
    assert not any("cents" in (call.prompt or "") for call in page.calls.values())


def test_what_prompts_begin_with_is_shown_once() -> None:
    prompts = {1: f"{LONG}\na", 2: f"{LONG}\nb", 3: "another", 4: f"{LONG}\nb\nc"}
    assert shared_beginnings(prompts) == {1: (None, 0), 2: (1, 1), 3: (None, 0), 4: (2, 2)}


@given(st.lists(st.lists(st.sampled_from(["", "a", LONG, LONG[::-1]]), max_size=6), max_size=8))
def test_every_prompt_is_whole_again(texts: list[list[str]]) -> None:
    prompts = {number: "\n".join(lines) for number, lines in enumerate(texts)}
    for number, (other, count) in shared_beginnings(prompts).items():
        lines = prompts[number].split("\n")
        assert lines[:count] == ([] if other is None else prompts[other].split("\n")[:count])


def test_a_test_is_told_by_what_became_of_it(solved: Solved) -> None:
    row = solved.trace.tests[0]

    def ran(kind: str, *names: str) -> ValidationRow:
        failing = tuple(FailingTest(name=name, message="no") for name in names)
        return replace(row, kind=kind, failing_tests=failing)

    tests = [ran("baseline", "a", "b", "gone"), ran("final", "b", "new")]
    found = changed_tests(tests, replace(TestsTouched(), gone=("gone",)))
    assert [(test.name, test.before, test.after, test.good) for test in found] == [
        ("b", "fails", "fails", False),
        ("gone", "fails", "is gone", False),
        ("new", "passes, or is new", "fails", False),
        ("a", "fails", "passes", True),
    ]
    assert {test.after for test in changed_tests(tests[:1], TestsTouched())} == {"not run"}
