import pytest

from clean_room_agent.report.byte_sizes import size_text


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
