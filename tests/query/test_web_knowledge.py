"""Neighbours and re-exports of JavaScript and TypeScript."""

import contextlib
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import make_repository, write

from clean_room_agent.db.connection import get_connection
from clean_room_agent.query.knowledge import KnowledgeBase

WEB = {
    "web/index.ts": "export * from './cart'\nexport { Money as Price } from './money'\nexport * as tools from './tools'\n",
    "web/cart.ts": (
        "import { Money } from './money'\nexport class Cart extends Money {\n  total() { return this.round() }\n}\n"
    ),
    "web/money.ts": "export class Money {\n  round() {}\n}\n",
    "web/tools.ts": "export const noop = () => {}\n",
    "web/view.tsx": (
        "import { Cart, tools } from '.'\nexport const View = () => <p>{new Cart().total()}</p>\n"
        "export function page() { tools.noop(); return <View/> }\n"
    ),
}


@pytest.fixture
def web(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "web", WEB)
    index(top)
    return top


def passed_on(top: Path, path: str) -> list[tuple[str, str, str | None]]:
    """Name, file and symbol of what the file re-exports."""
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        kb = KnowledgeBase(conn)
        file = kb.get_file_by_path(path)
        assert file is not None
        rows = kb.get_reexports(file.id)
        return [(one.name, one.file.path, one.symbol.qualified_name if one.symbol else None) for one in rows]


def test_a_barrel_tells_the_files_behind_it_by_name(web: Path) -> None:
    assert passed_on(web, "web/index.ts") == [
        ("Cart", "web/cart.ts", "Cart"),
        ("Price", "web/money.ts", "Money"),
        ("tools", "web/tools.ts", None),
    ]
    assert passed_on(web, "web/cart.ts") == []


def test_a_barrel_follows_edits_behind_it(web: Path) -> None:
    write(web, {"web/cart.ts": "export { Money as Cart } from './money'\nexport const empty = 0\n"})
    index(web)
    assert passed_on(web, "web/index.ts") == [
        ("Cart", "web/money.ts", "Money"),
        ("Price", "web/money.ts", "Money"),
        ("empty", "web/cart.ts", "empty"),
        ("tools", "web/tools.ts", None),
    ]


@pytest.mark.parametrize(
    ("name", "neighbors"),
    [
        ("Cart", [("caller", "View", "call", 0.95), ("callee", "Money", "inheritance", 0.95)]),
        ("Cart.total", [("caller", "View", "call", 0.85), ("callee", "Money.round", "call", 0.9)]),
        ("noop", [("caller", "page", "call", 0.95)]),
        (
            "View",
            [
                ("caller", "page", "call", 1.0),
                ("callee", "Cart", "call", 0.95),
                ("callee", "Cart.total", "call", 0.85),
            ],
        ),
    ],
)
def test_neighbors_of_typescript_symbols_are_what_the_source_says(
    web: Path, name: str, neighbors: list[tuple[str, str, str, float]]
) -> None:
    with contextlib.closing(get_connection("curated", repo_path=web, read_only=True)) as conn:
        kb = KnowledgeBase(conn)
        (symbol,) = kb.search_symbols_by_name(name)
        found = kb.get_symbol_neighbors(symbol.id)
    assert [
        (one.direction, one.symbol.qualified_name, one.reference_kind, one.confidence) for one in found
    ] == neighbors
