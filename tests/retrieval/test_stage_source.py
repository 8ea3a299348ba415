import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.retrieval.shop import SHOP, large_module
from tests.retrieval.world import World

from clean_room_agent.errors import RepositoryError
from clean_room_agent.file_contents import content_hash
from clean_room_agent.retrieval.pieces import IndexedDefinition
from clean_room_agent.retrieval.stage_source import (
    MAX_SAME_NAME,
    FileText,
    FileView,
    NotEditable,
    read_indexed,
    top_names,
)

Make = Callable[..., World]


def read(root: Path, path: str, data: bytes) -> FileText | NotEditable:
    (root / path).write_bytes(data)
    return read_indexed(root, path, content_hash(data))


@pytest.mark.parametrize(
    ("data", "changed"), [(b"a\nb\n", b"a\r\nb\r\n"), (b"# $Id$\n", b"# $Id: 0123abc $\n")]
)
def test_what_a_checkout_changes_is_the_text_that_was_indexed(
    tmp_path: Path, data: bytes, changed: bytes
) -> None:
    for indexed, shown in ((data, changed), (changed, data)):
        (tmp_path / "a.py").write_bytes(shown)
        found = read_indexed(tmp_path, "a.py", content_hash(indexed))
        assert isinstance(found, FileText)
        assert found.content_hash == content_hash(data)


@pytest.mark.parametrize(("path", "data"), [(".env", b"TOKEN=1"), ("a.bin", b"\x00\x01"), ("key.pem", b"x")])
def test_secrets_and_binaries_are_not_shown(tmp_path: Path, path: str, data: bytes) -> None:
    assert isinstance(read(tmp_path, path, data), NotEditable)


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.py").write_text("x")
    (tmp_path / "inside/link.py").symlink_to(tmp_path / "outside.py")
    found = read_indexed(tmp_path / "inside", "link.py", content_hash(b"x"))
    assert isinstance(found, NotEditable)


def test_a_missing_or_changed_file_asks_for_a_refresh(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="no longer exists"):
        read_indexed(tmp_path, "a.py", "0")
    (tmp_path / "a.py").write_text("x")
    with pytest.raises(RepositoryError, match="changed after it was indexed"):
        read_indexed(tmp_path, "a.py", "0")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("shop/cart.py", ("shop/cart.py",)), ("./shop/cart.py", ("shop/cart.py",)), ("shop\\cart.py", ("shop/cart.py",)),
        ("cart.py", ("shop/cart.py",)), ("/home/me/project/shop/cart.py", ("shop/cart.py",)), ("art.py", ()), ("", ()), ("/", ()),
    ],
)  # fmt: skip
def test_a_path_is_found_by_what_it_ends_with_or_what_ends_with_it(
    make: Make, name: str, found: tuple[str, ...]
) -> None:
    assert make(SHOP).source().resolve_path(name, most=1) == found


def test_a_symbol_of_too_many_definitions_is_found_and_not_meant(make: Make) -> None:
    files = {f"m{number}.py": "def run():\n    pass\n" for number in range(MAX_SAME_NAME + 1)}
    source = make({**files, "one.py": "class Cart:\n    def add(self):\n        pass\n"}).source()
    assert len(source.find_symbols("run")) == MAX_SAME_NAME + 1
    assert source.meant_by("run") == ()
    assert [symbol.qualified_name for symbol in source.meant_by("Cart.add")] == ["Cart.add"]


def test_a_view_has_the_definitions_and_the_pieces_of_its_file(make: Make) -> None:
    source = make(SHOP).source()
    view = source.view("shop/money.py", max_lines=60, available_tokens=1000)
    assert isinstance(view, FileView)
    assert [(entry.name, entry.doc) for entry in view.definitions] == [
        ("round_amount", "Round to cents."),
        ("format_amount", "With two digits."),
    ]
    assert [piece.name for piece in view.pieces] == ["(header)", "round_amount", "format_amount"]
    assert source.definitions_at("shop/money.py") == view.definitions
    assert source.definitions_at("nowhere.py") == ()


def test_what_would_fill_most_of_the_context_is_divided(make: Make) -> None:
    source = make({"big.py": large_module(1, 60)}).source()
    whole = source.view("big.py", max_lines=1000, available_tokens=10_000)
    parts = source.view("big.py", max_lines=1000, available_tokens=300)
    assert isinstance(whole, FileView)
    assert isinstance(parts, FileView)
    assert "task_0" in [piece.name for piece in whole.pieces]
    divided = [piece for piece in parts.pieces if piece.name.startswith("task_0 (lines ")]
    assert len(divided) > 2
    assert all(before.end_line < after.start_line for before, after in itertools.pairwise(divided))


def test_the_names_of_a_file_are_its_top_level_ones_values_last() -> None:
    entries = [
        ("RATE", "variable"),
        ("Cart", "class"),
        ("Cart.add", "method"),
        ("total", "function"),
        ("Cart", "class"),
    ]
    definitions = [
        IndexedDefinition(symbol_id=at, name=name, kind=kind, start_line=at, end_line=at, signature="")
        for at, (name, kind) in enumerate(entries, start=1)
    ]
    assert top_names(definitions, most=9) == ("Cart", "total", "RATE")
    assert top_names(definitions, most=1) == ("Cart",)
