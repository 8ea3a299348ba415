import pytest

from clean_room_agent.report.run_list import short_names, size_text


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("590 pass", "590 pass"),
        (
            "newly failing: tests/a/test_url.py::TestIt::test_one[a/b.py::c]",
            "newly failing: test_one[a/b.py::c]",
        ),
        (
            "newly failing: t/test_a.py::test_1, t/test_a.py::test_2, t/test_b.py::test_3, test_c.py::T::test_4 and 76 more",
            "newly failing: test_1, test_2, test_3 and 77 more",
        ),
        ("failing: t/test_a.py::test_1, t/test_b.py::test_2", "failing: test_1, test_2"),
        ("failing: tests.test_a.Case.test_1, b, c, d, e", "failing: tests.test_a.Case.test_1, b, c, d, e"),
        ("edit 3 (httpx/_urlparse.py): NO_MATCH", "edit 3 (httpx/_urlparse.py): NO_MATCH"),
    ],
)
def test_names_of_tests_are_shown_without_their_files_and_the_first_alone(told: str, shown: str) -> None:
    assert short_names(told) == shown


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (12 * 10**15, "12000.0 TB"),
    ],
)
def test_a_size_is_said_in_the_largest_unit_of_which_there_is_one(size: int, said: str) -> None:
    assert size_text(size) == said
