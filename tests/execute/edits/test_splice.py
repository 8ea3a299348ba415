import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.execute.edits.splice import Splice, fitted, indentation, reindented

LETTERS = st.text(alphabet="ab\n", max_size=8)


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
