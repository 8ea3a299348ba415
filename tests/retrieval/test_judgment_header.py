from tests.retrieval.world import context_request

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.retrieval.judgment_header import (
    MAX_GROUPS,
    MAX_LISTED,
    MAX_VALUE,
    evidence_text,
    question_text,
)


def failing(name: str, **fields: str) -> FailingTest:
    return FailingTest(name=name, **fields)  # type: ignore[arg-type]


def test_a_task_alone_is_all_there_is() -> None:
    assert question_text(context_request(task=" Fix it\n", focus="Fix it")) == "## Task\nFix it"


def test_focus_evidence_and_what_was_missed_follow_under_their_headings() -> None:
    request = context_request(
        task="Fix it", focus="the cart", evidence=Evidence(tests=(failing("t.py::test_a"),))
    )
    missing = RefinementRequest(reason="no such name", error_signatures=("NameError: x", ""))
    assert question_text(request, missing) == (
        "## Task\nFix it\n\n## The part of it to do now\nthe cart\n\n"
        "## What the tests show now\nfailing test: t.py::test_a\n\n"
        "## What an earlier attempt missed\nno such name\nNameError: x"
    )


def test_tests_that_fail_in_the_same_way_are_shown_once() -> None:
    same = {"statement": "assert total() == 3", "expected": "3", "actual": "2"}
    text = evidence_text(Evidence(tests=(failing("a", **same), failing("b", **same))))
    assert text.splitlines() == [
        "failing test: a",
        "  line: assert total() == 3",
        "  expected: 3",
        "  actual: 2",
        "  1 more fail in the same way",
    ]


def test_a_message_is_shown_where_no_values_were_compared() -> None:
    assert evidence_text(Evidence(tests=(failing("a", message="KeyError:\n  'x'"),))).splitlines() == [
        "failing test: a",
        "  KeyError: 'x'",
    ]


def test_further_ways_of_failing_are_counted() -> None:
    tests = tuple(failing(f"t{number}", message=f"m{number}") for number in range(MAX_GROUPS + 2))
    assert evidence_text(Evidence(tests=tests)).splitlines()[-1] == "(2 more failing tests)"


def test_without_test_names_the_messages_are_shown_each_once() -> None:
    messages = ("same", "same", *(f"m{number}" for number in range(MAX_LISTED)))
    assert evidence_text(Evidence(messages=messages)).splitlines() == ["same", "m0", "m1", "m2", "m3"]
    assert evidence_text(Evidence()) == ""


def test_a_long_value_is_cut_and_says_so() -> None:
    (_, line) = evidence_text(Evidence(tests=(failing("a", message="x" * (MAX_VALUE + 1)),))).splitlines()
    assert line == f"  {'x' * MAX_VALUE} [cut]"


def test_a_name_with_a_line_break_cannot_add_a_line() -> None:
    assert evidence_text(Evidence(tests=(failing("a\n## Task"),))) == 'failing test: "a\\n## Task"'
