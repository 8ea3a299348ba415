"""What the page of a run says, before anything is drawn."""

import pytest
from msgspec.structs import replace
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.report.page.run_page import RunPage, RunSources, changed_tests, run_page
from clean_room_agent.report.summary import TestsTouched
from clean_room_agent.report.validation import ValidationLine, validation_lines


@pytest.fixture(scope="module")
def page(sources: RunSources) -> RunPage:
    return run_page(sources, str)


def test_each_pass_has_its_calls_with_what_they_were_shown(large: LargeRun, page: RunPage) -> None:
    assert [call.account.call.call_id for call in page.calls] == [call.id for call in large.all.calls]
    call = next(call for call in page.calls if call.account.call.call_type == "implement")
    assert [(item.kind, item.first, item.last) for item in call.items] == [("file", 1, 260)] * 3
    assert sum(item.tokens for item in call.items) <= call.account.call.tokens.used


def test_of_calls_of_an_old_record_no_item_is_guessed(sources: RunSources) -> None:
    old = run_page(replace(sources, spans=dict.fromkeys(sources.spans)), str)
    assert {call.items for call in old.calls} == {()}


def test_texts_that_are_taken_apart_were_made_safe_before(sources: RunSources) -> None:
    page = run_page(sources, lambda text: text.replace("Settle", "[hidden]"))
    assert not any("Settle" in line for one in page.beginnings for line in one.text.split("\n"))


def test_a_test_is_told_by_what_became_of_it(large: LargeRun) -> None:
    line = validation_lines(large.trace, large.all)[0]

    def ran(kind: str, *names: str) -> ValidationLine:
        return replace(line, kind=kind, failing=tuple(FailingTest(name=name, message="no") for name in names))

    tests = [ran("baseline", "a", "b", "gone"), ran("final", "b", "new")]
    found = changed_tests(tests, replace(TestsTouched(), gone=("gone",)))
    assert [(test.name, test.before, test.after, test.good) for test in found] == [
        ("b", "fails", "fails", False),
        ("gone", "fails", "is gone", False),
        ("new", "passes, or is new", "fails", False),
        ("a", "fails", "passes", True),
    ]
    assert {test.after for test in changed_tests(tests[:1], TestsTouched())} == {"not run"}
