"""Texts that repeat themselves are searched in time that grows as they do."""

from collections.abc import Callable

import pytest
from testing.growth import QUADRATIC, growth

from clean_room_agent.execute.edits.rules import elided_line
from clean_room_agent.execute.edits.search_replace import find_exact, find_normalised, find_shifted


@pytest.mark.parametrize("find", [find_exact, find_normalised, find_shifted])
@pytest.mark.parametrize("end", ["", "Q"])
@pytest.mark.parametrize("unit", ["a\n", "  x = 1\n"])
def test_a_place_is_found_in_time_linear_in_the_text(
    find: Callable[[str, str], object], end: str, unit: str
) -> None:
    assert growth(lambda text: find(text, text[: len(text) // 3] + end), unit, small=6_000) < QUADRATIC


@pytest.mark.parametrize("unit", ["...\n", "def f():\n    ...\n"])
def test_what_is_left_out_is_found_in_time_linear_in_the_text(unit: str) -> None:
    def read(text: str) -> None:
        elided_line("a.py", text, old="x\n", file_text=text[: len(text) // 2])

    assert growth(read, unit, small=4_000) < QUADRATIC


def test_one_place_among_very_many_that_begin_alike_is_found() -> None:
    lines = [f"{'  ' * (number % 3)}x = {number % 7}" for number in range(500)]
    lines[300:300] = ["    y = 1", "      z = 2"]
    (hit,) = find_shifted("\n".join(lines), "y = 1\n  z = 2")
    assert hit.shift.added == "    "
