from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.enrichment.file_facts import FileFacts, read_facts
from clean_room_agent.query.knowledge import KnowledgeBase

FILES = {
    "cart.py": '"""The cart."""\nimport money\n\n\nclass Cart:\n    """Holds items."""\n\n    def total(self):\n        return money.ZERO\n',
    "money.py": "ZERO = 0\n",
    "shop.py": "import cart\n",
    "empty.py": "",
}


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_repository(tmp_path_factory.mktemp("facts") / "repo", FILES)
    commit(made, {"cart.py": FILES["cart.py"] + "\n"}, "Count the cart\n\nTwice.")
    index(made)
    return made


@pytest.fixture(scope="module")
def kb(top: Path) -> Iterator[KnowledgeBase]:
    conn = get_connection("curated", repo_path=top, read_only=True)
    yield KnowledgeBase(conn)
    conn.close()


def known(kb: KnowledgeBase, top: Path, path: str) -> FileFacts:
    facts = read_facts(kb, top, path)
    assert facts is not None
    return facts


def test_a_file_has_its_documentation_definitions_neighbours_and_commits(
    kb: KnowledgeBase, top: Path
) -> None:
    facts = known(kb, top, "cart.py")
    assert (facts.doc, facts.imports, facts.imported_by) == ("The cart.", ("money.py",), ("shop.py",))
    assert [(entry.name, entry.depth, entry.doc) for entry in facts.definitions] == [
        ("Cart", 0, "Holds items."),
        ("Cart.total", 1, ""),
    ]
    assert facts.commits[0] == "Count the cart"
    assert facts.lines[:2] == ('"""The cart."""', "import money")


def test_an_empty_file_has_no_lines(kb: KnowledgeBase, top: Path) -> None:
    assert known(kb, top, "empty.py").lines == ()


def test_a_file_that_is_not_indexed_or_not_there_has_no_facts(kb: KnowledgeBase, top: Path) -> None:
    assert read_facts(kb, top, "nowhere.py") is None


def test_a_file_that_changed_since_has_no_facts(kb: KnowledgeBase, top: Path) -> None:
    before = (top / "money.py").read_bytes()
    (top / "money.py").write_text("ZERO = 1\n")
    try:
        assert read_facts(kb, top, "money.py") is None
    finally:
        (top / "money.py").write_bytes(before)
