"""What the names of tests tell."""

import pytest

from clean_room_agent.artifacts.evidence import Evidence, FailingTest, files_meant, group_of, is_of_file


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
