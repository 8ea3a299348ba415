"""What the names of tests tell."""

import pytest

from clean_room_agent.artifacts.outcomes import (
    AttemptOutcome,
    EventKind,
    Evidence,
    FailingTest,
    PassType,
    RunStatus,
    files_meant,
    group_of,
    is_of_file,
    reason_of,
    status_of,
)
from clean_room_agent.errors import BudgetSpent, GitError, Interrupted, ServerBusy


def test_failing_tests_are_named_in_the_order_in_which_they_are_shown() -> None:
    evidence = Evidence(tests=(FailingTest(name="b", message="boom"), FailingTest(name="a")))
    assert evidence.failing_tests == ("b", "a")
    assert Evidence().failing_tests == ()


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("tests/test_a.py", True),
        ("web/cart.test.ts", True),
        ("unittest.loader._FailedTest.tests.test_a", True),
        ("tests/test_a.py::test_b", False),
        ("web/cart.test.ts > cart > adds", False),
        ("tests.test_a.ATest.test_b", False),
        ("adds two", False),
    ],
)
def test_a_name_may_stand_for_a_file_that_could_not_be_loaded(name: str, whole: bool) -> None:
    assert is_of_file(name) is whole


def test_the_file_of_a_module_that_could_not_be_loaded_is_meant() -> None:
    assert files_meant("unittest.loader._FailedTest.tests.test_a") == ("tests/test_a.py",)
    assert files_meant("tests/test_a.py") == ("tests/test_a.py",)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("tests/test_a.py::TestB::test_c[1]", "tests/test_a.py"),
        ("tests/test_a.py", "tests/test_a.py"),
        ("web/cart.test.ts > cart > adds", "web/cart.test.ts"),
        ("tests.test_a.ATest.test_b", "tests.test_a.ATest"),
    ],
)
def test_tests_that_stand_together_share_a_group(name: str, group: str) -> None:
    assert group_of(name) == group


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (KeyboardInterrupt(), RunStatus.INTERRUPTED, "interrupted"),
        (Interrupted("stopped by the user"), RunStatus.INTERRUPTED, "stopped by the user"),
        (BudgetSpent("40 of 40 calls"), RunStatus.PARTIAL, "40 of 40 calls"),
        (ServerBusy("its queue is full"), RunStatus.FAILED, "its queue is full"),
        (GitError("no such ref"), RunStatus.FAILED, "no such ref"),
        (ZeroDivisionError("division by zero"), RunStatus.FAILED, "ZeroDivisionError: division by zero"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_ends_a_run_with_a_status_and_a_reason(
    error: BaseException, status: RunStatus, reason: str
) -> None:
    assert (status_of(error), reason_of(error)) == (status, reason)


@pytest.mark.parametrize("words", [AttemptOutcome, RunStatus, PassType])
def test_outcomes_are_stored_under_their_names_in_small_letters(
    words: type[AttemptOutcome] | type[RunStatus] | type[PassType],
) -> None:
    assert all(word.value == word.name.lower() for word in words)


def test_each_event_is_stored_under_its_name_in_small_letters() -> None:
    assert all(kind.value == kind.name.lower() for kind in EventKind)


def test_an_event_is_known_again_by_the_word_in_the_record() -> None:
    assert EventKind("taken_back") is EventKind.TAKEN_BACK
    assert f"{EventKind.RESUMED}" == "resumed"
