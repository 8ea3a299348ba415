import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clean_room_agent.execute.edits.search_replace import (
    Match,
    Shift,
    Splice,
    find,
    find_exact,
    fitted,
    indentation,
    line_of,
    reindented,
    with_own_characters,
)

TEXT = """\
import os

def first():
    x = 1
    return x

class A:
    def second(self):
        x = 1@@
        return 10
""".replace("@", " ")


LINES = st.lists(st.text("ab =()\t", max_size=8), min_size=1, max_size=12)
LETTERS = st.text(alphabet="ab\n", max_size=8)


def lines_of(match: Match, text: str = TEXT) -> list[int]:
    return [line_of(text, hit.start) for hit in match.hits]


def scope(text: str, first: int, last: int) -> tuple[int, int]:
    lines = text.split("\n")
    return len("\n".join(lines[: first - 1])) + (first > 1), len("\n".join(lines[:last]))


@pytest.mark.parametrize(
    ("search", "scopes", "tier", "lines"),
    [
        ("    return x", (), 2, [5]),
        ("x = 1", (), 2, [4, 9]),
        ("x = 1", ((3, 5),), 1, [4]),
        ("x = 1", ((3, 5), (7, 10)), 1, [4, 9]),
        ("import os", ((3, 5),), 2, [1]),
        ("        x = 1\n        return 10", (), 4, [9]),
        ("        x = 1\n        return 10", ((8, 10),), 3, [9]),
        ("    return x   ", (), 4, [5]),
        ("def second(self):\n    x = 1\n    return 10", (), 6, [8]),
        ("def second(self):\n    x = 1\n    return 10", ((8, 10),), 5, [8]),
        ("        def first():\n            x = 1", (), 6, [3]),
        ("return 1", (), 0, []),
        ("Import os", (), 0, []),
        ("x = 1\n\n    return x", (), 0, []),
        ("", (), 0, []),
        (" \n ", (), 0, []),
    ],
)
def test_the_first_tier_that_matches_decides(
    search: str, scopes: tuple[tuple[int, int], ...], tier: int, lines: list[int]
) -> None:
    match = find(TEXT, search, scopes=tuple(scope(TEXT, *pair) for pair in scopes))
    assert (match.tier, lines_of(match)) == (tier, lines)


def test_outside_the_scopes_nothing_is_found_when_the_file_is_closed() -> None:
    assert find(TEXT, "import os", scopes=(scope(TEXT, 3, 5),), whole_file=False) == Match()


def test_a_line_in_nested_scopes_counts_once() -> None:
    match = find(TEXT, "return 10", scopes=(scope(TEXT, 7, 10), scope(TEXT, 8, 10)))
    assert (match.tier, len(match.hits)) == (1, 1)


def test_overlapping_places_count_each() -> None:
    assert len(find("a\na\na\n", "a\na").hits) == 2


def test_a_word_is_never_cut() -> None:
    assert find("maximum = 10\n", "imum = 1").hits == ()


def test_carriage_returns_are_no_difference_and_stay_outside() -> None:
    text = "a\r\nb\r\nc\n"
    match = find(text, "a\nb")
    assert match.tier == 4
    assert text[match.hits[0].start : match.hits[0].end] == "a\r\nb"


def test_trailing_blanks_of_the_last_line_are_replaced_with_it() -> None:
    match = find("x = [\n  1,   \n]\n", "x = [\n  1,")
    assert match.hits[0].end == len("x = [\n  1,")
    match = find("x = [   \n  1,   \n]\n", "x = [\n  1,")
    assert match.hits[0].end == len("x = [   \n  1,   ")


def test_a_bare_line_with_a_bare_block_in_its_place_is_a_shift() -> None:
    exact = find(TEXT, "return x", replacement="return y")
    assert (exact.tier, exact.hits[0].shift) == (2, Shift())
    shifted = find(TEXT, "return x", replacement="y = x\nreturn y")
    assert (shifted.tier, shifted.hits[0].shift) == (6, Shift(added="    "))
    indented = find(TEXT, "return x", replacement="y = x\n    return y")
    assert indented.tier == 2


def test_mixed_shifts_do_not_match() -> None:
    assert find("    a = 1\n      b = 2\n", "a = 1\nb = 2").hits == ()
    assert find("\ta = 1\n\tb = 2\n", "    a = 1\n    b = 2").hits == ()


@pytest.mark.parametrize(
    ("shift", "text", "result"),
    [
        (Shift(added="  "), "a\n\n  b", "  a\n\n    b"),
        (Shift(removed="  "), "  a\n\n    b", "a\n\n  b"),
        (Shift(removed="  "), "a", None),
    ],
)
def test_a_shift_moves_lines_that_are_not_blank(shift: Shift, text: str, result: str | None) -> None:
    assert shift.applied(text) == result


@given(LINES, st.data())
def test_any_run_of_lines_that_stands_once_is_found_in_the_file_at_its_place(
    lines: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    snippet = "\n".join(lines[first : last + 1])
    text = "\n".join(lines)
    assume(snippet.strip() and text.find(snippet) == text.rfind(snippet))
    match = find(text, snippet)
    start = sum(len(line) + 1 for line in lines[:first])
    assert (match.tier, [(hit.start, hit.end) for hit in match.hits]) == (2, [(start, start + len(snippet))])


@given(LINES, st.text("ab =()\t\n", max_size=20))
def test_every_hit_says_the_same_as_the_search_but_for_white_space(lines: list[str], search: str) -> None:
    text = "\n".join(lines)
    for hit in find(text, search).hits:
        assert text[hit.start : hit.end].split() == search.split()


@given(LINES.filter(lambda lines: any(line.strip() for line in lines)), st.sampled_from(["  ", "    ", "\t"]))
def test_a_constant_shift_is_found_both_ways(lines: list[str], added: str) -> None:
    text = "\n".join(lines)
    moved = Shift(added=added).applied(text)
    assert moved is not None
    assert find(f"x\n{moved}\nx", text).hits
    assert find(f"x\n{text}\nx", moved).hits


@pytest.mark.parametrize(
    ("search", "lines"),
    [
        ("    x = 1\n", [2]),
        ("\n    x = 1", [5]),
        ("    x = 1", [2, 6]),
        ("    y\n", [7]),
    ],
)
def test_a_blank_line_that_is_quoted_tells_places_apart(search: str, lines: list[int]) -> None:
    text = "a()\n    x = 1\n\nb()\n\n    x = 1\n    y\n    z\n"
    assert [text.count("\n", 0, hit.start) + 1 for hit in find_exact(text, search)] == lines


@given(LETTERS, LETTERS, LETTERS, LETTERS)
def test_the_core_of_a_change_is_the_same_change(before: str, old: str, new: str, after: str) -> None:
    whole = before + old + after
    splice = Splice(start=len(before), end=len(before) + len(old), text=new)
    core = splice.core(whole)
    assert core.applied(whole) == splice.applied(whole) == before + new + after
    assert len(core.text) <= len(new)


@pytest.mark.parametrize(
    ("whole", "old", "new", "result"),
    [
        ("a\nb\nc\n", "b", "", "a\nc\n"),
        ("a\nb", "b", "", "a"),
        ("a\r\nb", "b", "", "a"),
        ("a b\n", "b", "", "a \n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\nb\r\nc\n", "a", "x\ny", "x\ny\nb\r\nc\n"),
    ],
)
def test_a_replacement_takes_the_line_ends_of_its_place(whole: str, old: str, new: str, result: str) -> None:
    start = whole.index(old)
    assert fitted(whole, start, start + len(old), new).applied(whole) == result


@pytest.mark.parametrize(
    ("text", "old", "moved"),
    [
        ("def f():\n    pass", "    def f():\n        x", "    def f():\n        pass"),
        ("def f():\n        pass", "    def f():\n        x", "    def f():\n        pass"),
        ("        def f(): pass", "    def f(): x", "    def f(): pass"),
        ("def f(): pass", "def f(): x", "def f(): pass"),
        ("\tdef f(): pass", "  def f(): x", "\tdef f(): pass"),
    ],
)
def test_a_symbol_is_moved_to_the_indentation_of_the_old_one(text: str, old: str, moved: str) -> None:
    assert reindented(text, old) == moved


def test_the_indentation_is_that_of_the_first_line_with_something_on_it() -> None:
    assert indentation("\n  \n    x\ny") == "    "
    assert indentation("") == ""


@pytest.mark.parametrize(
    ("search", "tier", "added"),
    [
        ("return self.cents", 2, ""),
        ("    def split(self):\n        return self.cents", 4, ""),
        ("def split(self):\n    return self.cents", 6, "    "),
    ],
)
def test_the_modules_example_is_as_it_says(search: str, tier: int, added: str) -> None:
    text = "class Bill:\n    def split(self):  \n        return self.cents\n"
    match = find(text, search)
    assert match.tier == tier
    assert [hit.shift for hit in match.hits] == [Shift(added=added)]


@pytest.mark.parametrize(
    ("file", "typed"),
    [
        ("# it\u2019s \u201cso\u201d", '# it\'s "so"'),
        ("# a\u2013b \u2014 c\u2011d", "# a-b - c-d"),
        ("# a\u00a0b\u2009c\u3000d", "# a b c d"),
        ("# cafe\u0301", "# caf\u00e9"),
        ("# caf\u00e9", "# cafe\u0301"),
        ("# \u26a0\ufe0f care\u00adful\u200b", "# \u26a0 careful"),
        ("# it's", "# it\u2019s"),
        ("# it\u00b4s 5\u2035 \u02cba\u02ca", "# it's 5' 'a'"),
        ("# a\u301cb", "# a~b"),
        ("# so on\u2026", "# so on..."),
        ("# so on...", "# so on\u2026"),
        ("# \ufb01ve \uff21\uff22 \u00b5s", "# five AB \u03bcs"),
        ("# a\u200eb\u202cc", "# abc"),
    ],
)
def test_characters_that_look_alike_are_found_and_stay(file: str, typed: str) -> None:
    text = f"def f():\n    {file}\n    return 1\n"
    match = find(text, f"{typed}\nreturn 1")
    assert (match.tier, lines_of(match, text)) == (8, [2])
    old = text[match.hits[0].start : match.hits[0].end]
    new = with_own_characters(old, f"{typed}\nreturn 1", f"{typed}, too\n\nx = '\u2014'\nreturn 2")
    assert new == f"{file}, too\n\nx = '\u2014'\nreturn 2"


def test_characters_that_look_alike_matter_where_both_stand() -> None:
    text = "a = '\u2013'\nb = '-'\n"
    assert (find(text, "'-'").tier, lines_of(find(text, "'-'"), text)) == (2, [2])
    assert len(find("x\u2013y\nx\u2014y\n", "x-y").hits) == 2


@pytest.mark.parametrize("search", ["cafe", "af\u00e9", "\u200b", "x = 1"])
def test_no_letter_and_no_word_is_cut_where_look_alikes_are_one(search: str) -> None:
    assert find("caf\u00e9 \u2013 cafe\u0301s\n", search).hits == ()


@given(st.text("ab e\u0301\u00e9\u00a0\u2013-'\u2019\n", max_size=12), st.text("ab\u00e9- '\n", max_size=12))
def test_look_alikes_stand_at_whole_characters(text: str, search: str) -> None:
    for hit in find(text, search).hits:
        assert 0 <= hit.start <= hit.end <= len(text)
        with_own_characters(text[hit.start : hit.end], search, search + "\nmore")
