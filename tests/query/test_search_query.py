import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import files
from clean_room_agent.indexer.terms import terms_of
from clean_room_agent.query.search_query import NameIndex, SearchQuery, query_terms, surface_forms

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def total(self): pass\n",
    "shop/cart_items.py": "class Item:\n    def total(self): pass\n",
    "web/cart/index.ts": "export class View {}\n",
    "web/_private.py": "def only_here(): pass\n",
}


def test_the_first_line_weighs_twice_and_repeats_are_damped() -> None:
    weights = query_terms("Fix rounding\n\nrounding rounding totals")
    assert weights["fix"] == 2
    assert weights["total"] == 1
    assert weights["round"] == pytest.approx(2 + 1 + 0.6931, abs=1e-3)


def test_compounds_weigh_twice_beside_their_parts() -> None:
    assert query_terms("get_invoice") == {"get": 2, "get_invoice": 4, "invoic": 2}


def test_terms_are_sorted_so_that_sums_do_not_depend_on_hashing() -> None:
    assert list(query_terms("zebra apple mango")) == ["appl", "mango", "zebra"]


def test_terms_are_called_what_the_text_calls_them() -> None:
    spoken = surface_forms("Ways to parse_reply: parsing replies")
    assert spoken["parse_reply"] == "parse_reply"
    assert spoken[next(iter(terms_of("ways")))] == "ways"
    assert spoken[next(iter(terms_of("replies")))] == "reply"


class Shop:
    """The names of one small repository, by path."""

    def __init__(self, names: NameIndex, paths: dict[int, str]) -> None:
        self.names = names
        self.paths = paths

    def by_path(self, found: dict[int, tuple[float, str]]) -> dict[str, tuple[float, str]]:
        return {self.paths[file_id]: value for file_id, value in found.items()}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    top: Path = make_repository(tmp_path_factory.mktemp("names") / "repo", FILES)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        paths = {file.id: file.path for file in files.list_files(conn)}
        yield Shop(NameIndex(conn, paths), paths)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The cart is wrong", {"shop/cart.py": (1.0, "cart"), "web/cart/index.ts": (0.5, "cart")}),
        ("The shop is closed", {"shop/__init__.py": (0.5, "shop")}),
        ("A private matter", {"web/_private.py": (1.0, "private")}),
        ("carton, cartoon", {}),
        ("", {}),
    ],
)
def test_a_file_is_mentioned_by_its_name_or_its_folders(
    shop: Shop, text: str, found: dict[str, tuple[float, str]]
) -> None:
    assert shop.by_path(shop.names.mentioned(text)) == found


def test_a_name_that_few_files_define_says_more(shop: Shop) -> None:
    found = shop.by_path(
        shop.names.defining(SearchQuery(text="", names=("Cart.total", "only_here", "nothing")))
    )
    assert set(found) == {"shop/cart.py", "shop/cart_items.py", "web/_private.py"}
    assert found["shop/cart.py"][0] > found["web/_private.py"][0] > found["shop/cart_items.py"][0] > 0
    assert {path: name for path, (_, name) in found.items()} == {
        "shop/cart.py": "Cart",
        "shop/cart_items.py": "total",
        "web/_private.py": "only_here",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "fix(cart): add up",
            {"shop/cart.py": 1.0, "web/cart/index.ts": 1.0, "shop/cart_items.py": 0.7},
        ),
        ("carts: add up", {"shop/cart.py": 1.0, "web/cart/index.ts": 1.0, "shop/cart_items.py": 0.7}),
        ("feat(web/private)!: more", {"web/cart/index.ts": 1.0, "web/_private.py": 1.0}),
        ("fix: the cart", {}),
        ("Cart totals are wrong", {}),
    ],
)
def test_a_scope_means_files_and_folders(shop: Shop, text: str, found: dict[str, float]) -> None:
    assert {path: weight for path, (weight, _) in shop.by_path(shop.names.in_scope(text)).items()} == found
