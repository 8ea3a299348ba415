import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.item_names import ItemName, item_name, parse_item_name


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("a/b.py", ItemName(path="a/b.py")),
        ("a.py :: Cart.add", ItemName(path="a.py", symbol="Cart.add")),
        ("a.py :: Cart (head) (lines 3-9)", ItemName(path="a.py", symbol="Cart (head)", lines=(3, 9))),
        ("a.py :: f (lines 3-9) (lines 3-9)", ItemName(path="a.py", symbol="f", lines=(3, 9))),
        ("a.py :: f (about 120 tokens)", ItemName(path="a.py", symbol="f")),
        ("a.py (about 120 tokens)", ItemName(path="a.py")),
        ("a.py :: (imports)", ItemName(path="a.py", symbol="(imports)")),
    ],
)
def test_a_name_is_read_without_the_remarks_behind_it(name: str, item: ItemName) -> None:
    assert parse_item_name(name) == item


def test_a_file_is_named_by_its_path_and_a_piece_with_it() -> None:
    assert item_name("a.py") == item_name("a.py", None) == item_name("a.py", "") == "a.py"
    assert item_name("a.py", "f") == "a.py :: f"
    assert item_name("a.py", "f", (3, 9)) == "a.py :: f (lines 3-9)"


@given(
    path=st.from_regex(r"\A[a-z/.]{1,9}\Z"),
    symbol=st.from_regex(r"\A[A-Za-z.]{0,9}\Z"),
    lines=st.none() | st.tuples(st.integers(1, 999), st.integers(1, 999)),
)
def test_what_is_written_is_read_back(path: str, symbol: str, lines: tuple[int, int] | None) -> None:
    assert parse_item_name(item_name(path, symbol, lines)) == ItemName(path=path, symbol=symbol, lines=lines)
