import pytest

from clean_room_agent.languages.test_names import files_meant, group_of, is_of_file, names_test


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
    ("name", "symbol", "is_its"),
    [
        ("tests/test_a.py::Case::test_x[1]", "Case.test_x", True),
        ("tests/test_a.py::test_x", "Case.test_x", False),
        ("tests/test_b.py::Case::test_x", "Case.test_x", False),
        ("tests.test_a.Case.test_x", "Case.test_x", True),
        ("test_x", "test_x", True),
        ("my_test_x", "test_x", False),
        ("tests/test_a.py", "Case.test_x", True),
        ("tests/test_b.py", "Case.test_x", False),
        ("unittest.loader._FailedTest.tests.test_a", "test_x", True),
    ],
)
def test_a_runners_name_is_that_of_a_definition_or_of_its_whole_file(
    name: str, symbol: str, is_its: bool
) -> None:
    assert names_test(name, "tests/test_a.py", symbol) is is_its


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("tests/test_a.py::TestB::test_c[1]", "tests/test_a.py"),
        ("tests/test_a.py", "tests/test_a.py"),
        ("web/cart.test.ts > cart > adds", "web/cart.test.ts"),
        ("tests.test_a.ATest.test_b", "tests.test_a.ATest"),
        ("tests-2.test_a.ATest.test_b", "tests-2.test_a.ATest"),
    ],
)
def test_tests_that_stand_together_share_a_group(name: str, group: str) -> None:
    assert group_of(name) == group
