import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, copy_repository, make_repository, write

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.query.search import SearchQuery

FILES = {
    "shop/__init__.py": '"""A shop."""\nfrom .cart import Cart\n',
    "shop/cart.py": (
        '"""Carts."""\n\n\nclass Cart:\n    """Holds items."""\n\n    def add_item(self, item):\n'
        "        # Kept sorted, because the invoice needs it.\n        # TODO: faster\n        pass\n"
    ),
    "shop/invoice.py": "from shop.cart import Cart\n\n\ndef print_invoice(cart):\n    return cart\n",
    "shop/other.py": "class Cart:\n    def add_item(self):\n        pass\n",
    "web/view.ts": "export class View {}\n",
    "docs/invoice.md": "An invoice lists items.\n",
}
BANK = {
    "bank/account.py": (
        "class Account:\n    limit = 10\n\n    def deposit(self, amount):\n        self.check(amount)\n"
        "        return round_up(amount)\n\n    def check(self, amount):\n        return amount < self.limit\n\n\n"
        "def round_up(amount):\n    return amount\n"
    ),
    "bank/savings.py": (
        "from bank.account import Account, round_up\n\n\ndef traced(function):\n    return function\n\n\n"
        "class Savings(Account):\n    @traced\n    def deposit(self, amount):\n"
        "        return super().deposit(round_up(amount))\n\n\n"
        "def settle(accounts):\n    for account in accounts:\n        account.check(1)\n\n\n"
        "def table():\n    return [round_up]\n"
    ),
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = make_repository(tmp_path_factory.mktemp("indexed") / "repo", FILES)
    again = {path: FILES[path] + "\n" for path in ("shop/cart.py", "shop/invoice.py")}
    commit(top, again, "Round totals")
    index(top)
    return top


@pytest.fixture
def top(tmp_path: Path, indexed: Path) -> Path:
    return copy_repository(indexed, tmp_path / "repo")


@pytest.fixture
def conn(top: Path) -> Iterator[Connection]:
    with contextlib.closing(get_connection("curated", repo_path=top)) as conn:
        yield conn


@pytest.fixture
def kb(conn: Connection) -> KnowledgeBase:
    return KnowledgeBase(conn)


def id_of(kb: KnowledgeBase, path: str) -> int:
    file = kb.get_file_by_path(path)
    assert file is not None
    return file.id


def test_files_are_found_by_path_id_and_language(kb: KnowledgeBase) -> None:
    assert [file.path for file in kb.get_files()] == sorted(FILES)
    assert [file.path for file in kb.get_files(language="typescript")] == ["web/view.ts"]
    cart = kb.get_file_by_path("shop/cart.py")
    assert cart is not None
    assert kb.get_file_by_id(cart.id) == cart
    assert (cart.language, cart.parse_error, len(cart.content_hash)) == ("python", None, 64)
    assert kb.get_file_by_path("cart.py") is None
    assert kb.get_file_by_id(999) is None


def test_symbols_of_a_file_stand_in_its_order(kb: KnowledgeBase) -> None:
    found = kb.get_symbols_for_file(id_of(kb, "shop/cart.py"))
    assert [(one.qualified_name, one.kind, one.start_line, one.end_line) for one in found] == [
        ("Cart", "class", 4, 10),
        ("Cart.add_item", "method", 7, 10),
    ]
    assert found[1].parent_symbol_id == found[0].id
    assert kb.get_symbol_by_id(found[0].id) == found[0]
    assert kb.get_symbol_by_id(999) is None


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("add_item", [("shop/cart.py", 7), ("shop/other.py", 2)]),
        ("Cart.add_item", [("shop/cart.py", 7), ("shop/other.py", 2)]),
        ("art.add_item", []),
        ("cart", []),
        ("100%_", []),
    ],
)
def test_symbols_are_found_by_plain_and_by_qualified_name(
    kb: KnowledgeBase, name: str, lines: list[tuple[str, int]]
) -> None:
    paths = {file.id: file.path for file in kb.get_files()}
    found = kb.search_symbols_by_name(name)
    assert [(paths[one.file_id], one.start_line) for one in found] == lines


def test_neighbors_are_callers_then_callees_the_surest_first(kb: KnowledgeBase, conn: Connection) -> None:
    add_item = kb.search_symbols_by_name("add_item")[0].id
    invoice = kb.search_symbols_by_name("print_invoice")[0].id
    cart = kb.search_symbols_by_name("Cart")[0].id
    conn.executemany(
        "INSERT INTO symbol_references (caller_symbol_id, callee_symbol_id, reference_kind, confidence) VALUES (?, ?, ?, ?)",
        [(invoice, add_item, "call", 0.5), (cart, add_item, "call", 1.0), (add_item, cart, "name", 0.9)],
    )
    found = kb.get_symbol_neighbors(add_item)
    assert [(one.symbol.id, one.direction, one.confidence) for one in found] == [
        (cart, "caller", 1.0),
        (invoice, "caller", 0.5),
        (cart, "callee", 0.9),
    ]
    assert [
        one.symbol.id for one in kb.get_symbol_neighbors(add_item, direction="callees", kinds=["call"])
    ] == []


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    top = make_repository(tmp_path_factory.mktemp("bank") / "repo", BANK)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        yield KnowledgeBase(conn)


@pytest.mark.parametrize(
    ("name", "neighbors"),
    [
        (
            "round_up",
            [
                ("caller", "Account.deposit", "call", 1.0),
                ("caller", "Savings.deposit", "call", 0.95),
                ("caller", "table", "name", 0.95),
            ],
        ),
        (
            "Account.deposit",
            [
                ("caller", "Savings.deposit", "call", 0.9),
                ("callee", "round_up", "call", 1.0),
                ("callee", "Account.check", "call", 0.9),
            ],
        ),
        (
            "Account.check",
            [
                ("caller", "Account.deposit", "call", 0.9),
                ("caller", "settle", "call", 0.5),
                ("callee", "Account.limit", "attribute", 0.9),
            ],
        ),
        (
            "Savings.deposit",
            [
                ("callee", "traced", "decorator", 1.0),
                ("callee", "round_up", "call", 0.95),
                ("callee", "Account.deposit", "call", 0.9),
            ],
        ),
        ("Savings", [("callee", "Account", "inheritance", 0.95)]),
    ],
)
def test_neighbors_of_python_symbols_are_what_the_source_says(
    bank: KnowledgeBase, name: str, neighbors: list[tuple[str, str, str, float]]
) -> None:
    (symbol,) = bank.search_symbols_by_name(name)
    found = bank.get_symbol_neighbors(symbol.id)
    assert [
        (one.direction, one.symbol.qualified_name, one.reference_kind, one.confidence) for one in found
    ] == neighbors
    calls = bank.get_symbol_neighbors(symbol.id, direction="callers", kinds=["call"])
    assert calls == tuple(one for one in found if (one.direction, one.reference_kind) == ("caller", "call"))


def test_neighbors_follow_an_edit(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", BANK)
    index(top)
    write(top, {"bank/savings.py": BANK["bank/savings.py"].replace("[round_up]", "[traced]")})
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        kb = KnowledgeBase(conn)
        (symbol,) = kb.search_symbols_by_name("round_up")
        found = kb.get_symbol_neighbors(symbol.id)
        assert [one.symbol.qualified_name for one in found] == ["Account.deposit", "Savings.deposit"]


def test_dependencies_are_read_in_both_directions(kb: KnowledgeBase) -> None:
    cart = id_of(kb, "shop/cart.py")
    assert [one.file.path for one in kb.get_dependencies(cart, direction="imported_by")] == [
        "shop/__init__.py",
        "shop/invoice.py",
    ]
    assert kb.get_dependencies(cart) == ()
    near = kb.get_dependency_subgraph([id_of(kb, "shop/invoice.py")], depth=1)
    assert [(one.source_file_id, one.target_file_id) for one in near] == [
        (id_of(kb, "shop/invoice.py"), cart)
    ]
    assert len(kb.get_dependency_subgraph([id_of(kb, "shop/invoice.py")], depth=2)) == 2
    assert kb.get_dependency_subgraph([cart], depth=0) == ()


def test_co_changes_are_ordered_by_count_then_path(kb: KnowledgeBase) -> None:
    cart = id_of(kb, "shop/cart.py")
    found = kb.get_co_change_neighbors(cart, min_count=1)
    assert [(one.file.path, one.count) for one in found[:3]] == [
        ("shop/invoice.py", 2),
        ("docs/invoice.md", 1),
        ("shop/__init__.py", 1),
    ]
    assert [one.file.path for one in kb.get_co_change_neighbors(cart)] == ["shop/invoice.py"]


def test_prose_of_a_file_is_read(kb: KnowledgeBase) -> None:
    cart = id_of(kb, "shop/cart.py")
    assert [(one.symbol_id is None, one.content) for one in kb.get_docstrings_for_file(cart)] == [
        (True, "Carts."),
        (False, "Holds items."),
    ]
    reasons = kb.get_rationale_comments(cart)
    assert [(one.line, one.is_rationale) for one in reasons] == [(8, True)]


def test_commits_of_a_file_are_newest_first(kb: KnowledgeBase) -> None:
    found = kb.get_recent_commits_for_file(id_of(kb, "shop/cart.py"))
    assert [one.message for one in found] == ["Round totals", "Begin"]
    assert found[0].files_changed == 2
    assert len(kb.get_recent_commits_for_file(id_of(kb, "shop/cart.py"), limit=1)) == 1


def test_a_file_context_holds_all_of_it(kb: KnowledgeBase) -> None:
    context = kb.get_file_context(id_of(kb, "shop/invoice.py"))
    assert context is not None
    assert [one.qualified_name for one in context.symbols] == ["print_invoice"]
    assert [one.file.path for one in context.imports] == ["shop/cart.py"]
    assert context.metadata is None
    assert kb.get_file_context(999) is None


def test_metadata_and_adapters_are_read(kb: KnowledgeBase, conn: Connection) -> None:
    conn.execute(
        "INSERT INTO file_metadata VALUES (?, 'p', 'shop', 'sales', '[\"Cart\", \"tax\"]', NULL, NULL)",
        (id_of(kb, "shop/cart.py"),),
    )
    assert [file.path for file in kb.search_files_by_metadata(concept="TAX")] == ["shop/cart.py"]
    assert [file.path for file in kb.search_files_by_metadata(domain="sales", module="shop")] == [
        "shop/cart.py"
    ]
    assert kb.search_files_by_metadata(domain="other") == ()
    assert kb.search_files_by_metadata() == ()
    context = kb.get_file_context(id_of(kb, "shop/cart.py"))
    assert context is not None
    assert context.metadata is not None
    assert context.metadata.concepts == ("Cart", "tax")
    insert = (
        "INSERT INTO adapter_metadata (stage_name, base_model, model_tag, version, active, deployed_at)"
        " VALUES ('scope', 'reasoning', ?, '1', ?, ?)"
    )
    conn.executemany(insert, [("old", 1, "2026-01-01"), ("new", 1, "2026-02-01"), ("off", 0, "2026-03-01")])
    adapter = kb.get_adapter_for_stage("scope")
    assert adapter is not None
    assert adapter.model_tag == "new"
    assert kb.get_adapter_for_stage("precision") is None


def test_the_overview_counts(kb: KnowledgeBase, indexed: Path) -> None:
    overview = kb.get_repo_overview()
    assert overview is not None
    assert (overview.repo.path, overview.files, overview.commits) == (str(indexed), 6, 2)
    assert overview.languages == (("python", 4), ("markdown", 1), ("typescript", 1))
    assert overview.symbols == (("class", 3), ("function", 1), ("method", 2))
    assert not overview.described


def ask(text: str) -> SearchQuery:
    return SearchQuery(text=text)


def test_a_ranking_is_by_field_and_says_why(kb: KnowledgeBase) -> None:
    hits = kb.rank(ask("print the invoice"), limit=10)
    assert hits[0].path == "shop/invoice.py"
    assert "docs/invoice.md" in {hit.path for hit in hits}
    assert hits[0].score > hits[1].score > 0
    assert "'invoice' in path, symbols, body" in hits[0].reasons[0]
    assert "near the task: print_invoice" in hits[0].reasons
    assert "the task says 'invoice'" in hits[0].reasons
    assert kb.rank(ask("invoice"), limit=1) == kb.rank(ask("invoice"), limit=5)[:1]


def test_a_ranking_hears_what_past_commits_said(kb: KnowledgeBase) -> None:
    hits = kb.rank(ask("totals"), limit=2)
    assert {hit.path for hit in hits} == {"shop/cart.py", "shop/invoice.py"}
    assert hits[0].reasons[0] == "words: 'totals' in history"
    assert hits[0].reasons[1].startswith("changed by like commits (1), such as ")


def test_a_commit_says_more_of_few_files_than_of_many_and_goes_along_with_a_renamed_one(
    tmp_path: Path,
) -> None:
    top = make_repository(tmp_path / "repo", {f"{name}.txt": f"{name} {name}\n" for name in "pqrs"})
    commit(top, {"q.txt": "q\nq\n", "r.txt": "r\nr\n", "s.txt": "s\ns\n"}, "Widen the margin")
    commit(top, {"p.txt": "p\np\n"}, "Narrow the margin")
    commit(top, {"s.txt": None, "moved.txt": "s\ns\n"}, "Move a file")
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        hits = KnowledgeBase(conn).rank(ask("margins"), limit=10)
    assert [hit.path for hit in hits] == ["p.txt", "q.txt", "r.txt", "moved.txt"]
    assert {hit.reasons[0] for hit in hits} == {"words: 'margins' in history"}
    assert hits[0].score > hits[1].score == hits[2].score > hits[3].score > 0


def test_a_ranking_sees_what_was_indexed_since(kb: KnowledgeBase, conn: Connection, top: Path) -> None:
    assert kb.rank(ask("unicorn"), limit=3) == ()
    write(top, {"shop/unicorn.py": "def ride(): pass\n"})
    update_paths(conn, top, ["shop/unicorn.py"])
    assert [hit.path for hit in kb.rank(ask("unicorn"), limit=3)] == ["shop/unicorn.py"]
    write(top, {"shop/dragon.py": "def fly(): pass\n"})
    index(top)
    assert [hit.path for hit in kb.rank(ask("dragon"), limit=3)] == ["shop/dragon.py"]


def test_a_symbol_search_is_cut_after_kinds_were_chosen(kb: KnowledgeBase) -> None:
    assert [one.kind for one in kb.search_symbols_by_name("Cart", kinds=["class"], limit=1)] == ["class"]
    assert kb.search_symbols_by_name("Cart", kinds=["function"]) == ()
