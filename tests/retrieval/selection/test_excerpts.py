from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.retrieval.selection.excerpts import QUOTED_CHARS, nearest_lines, numbered, quoted

LINES = ["total = 0", "    for price in prices:", "        total += price", "", "return round(total)"]


def test_the_lines_that_hold_what_is_asked_for_come_in_the_order_of_the_file() -> None:
    assert nearest_lines(LINES, {"price": 1.0, "round": 1.0}, most=3) == (
        (2, "for price in prices:"),
        (3, "total += price"),
        (5, "return round(total)"),
    )


def test_of_many_lines_those_with_the_rarest_words_are_shown() -> None:
    assert nearest_lines(LINES, {"total": 1.0, "round": 1.0}, most=1) == ((5, "return round(total)"),)


def test_a_word_that_weighs_more_counts_more() -> None:
    lines = ["alpha", "beta"]
    assert nearest_lines(lines, {"alpha": 0.3, "beta": 1.0}, most=1) == ((2, "beta"),)
    assert nearest_lines(lines, {"alpha": 1.0, "beta": 1.0}, most=1) == ((1, "alpha"),)


def test_lines_of_a_part_keep_the_numbers_of_the_file() -> None:
    assert nearest_lines(LINES, {"round": 1.0}, most=2, first=40) == ((44, "return round(total)"),)


def test_nothing_asked_for_or_nothing_found_is_nothing_shown() -> None:
    assert nearest_lines(LINES, {}, most=3) == ()
    assert nearest_lines(LINES, {"voucher": 1.0}, most=3) == ()


def test_a_very_long_line_is_cut_and_says_so() -> None:
    assert quoted("x" * QUOTED_CHARS) == "x" * QUOTED_CHARS
    assert quoted("  " + "x" * (QUOTED_CHARS + 1)) == "x" * QUOTED_CHARS + " [cut]"


def test_each_line_stands_after_its_number() -> None:
    assert numbered(((2, "a"), (10, "b"))) == "2: a\n10: b\n"


@given(
    st.lists(st.text(alphabet="ab _=", max_size=12), max_size=12),
    st.dictionaries(st.sampled_from(["a", "b", "aa", "ab"]), st.floats(0.1, 2), max_size=3),
    st.integers(1, 4),
)
def test_what_is_quoted_are_lines_of_the_file(lines: list[str], terms: dict[str, float], most: int) -> None:
    found = nearest_lines(lines, terms, most=most)
    assert len(found) <= most
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert all(text == lines[number - 1].strip() for number, text in found)
