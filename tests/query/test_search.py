import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, git, make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import files, symbols
from clean_room_agent.db.curated.files import list_files
from clean_room_agent.indexer.terms import terms_of
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.query.search import (
    SATURATION,
    ChunkScores,
    CommitHistory,
    DefinitionScore,
    FieldScores,
    NameIndex,
    SearchQuery,
    Vote,
    query_terms,
    surface_forms,
)

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def total(self): pass\n",
    "shop/cart_items.py": "class Item:\n    def total(self): pass\n",
    "web/cart/index.ts": "export class View {}\n",
    "web/_private.py": "def only_here(): pass\n",
}
FILES_OF_SCORES = {
    "a.py": '"""Parse."""\ndef parse(text):\n    return text\n',
    "b.py": "def other(text):\n    return parse(text)\n",
    "c.py": "def third(text):\n    return text\n",
}
A, B, C = 1, 2, 3
CHUNKED_FILES = {
    "one.py": (
        "def parse_date(text):\n    return split_date(text)\n\n\n"
        "def other(text):\n    return text\n\n\n"
        "def format_date(day):\n    return day\n"
    ),
    "far.py": "def other(text):\n    return text\n",
    "note.md": "parse date\n",
}


def test_the_first_line_weighs_twice_and_repeats_are_damped() -> None:
    weights = query_terms("Fix rounding\n\nrounding rounding totals")
    assert weights["fix"] == 2
    assert weights["total"] == 1
    assert weights["round"] == pytest.approx(2 + 1 + 0.6931, abs=1e-3)


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
        ("fix(cart): add up", {"shop/cart.py": 1.0, "web/cart/index.ts": 1.0, "shop/cart_items.py": 0.7}),
        ("carts: add up", {"shop/cart.py": 1.0, "web/cart/index.ts": 1.0, "shop/cart_items.py": 0.7}),
        ("feat(web/private)!: more", {"web/cart/index.ts": 1.0, "web/_private.py": 1.0}),
        ("fix: the cart", {}),
        ("Cart totals are wrong", {}),
    ],
)
def test_a_scope_means_files_and_folders(shop: Shop, text: str, found: dict[str, float]) -> None:
    assert {path: weight for path, (weight, _) in shop.by_path(shop.names.in_scope(text)).items()} == found


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldScores]:
    top: Path = make_repository(tmp_path_factory.mktemp("fields") / "repo", FILES_OF_SCORES)
    commit(top, {"c.py": FILES_OF_SCORES["c.py"] + "\n"}, "Parse no more")
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        assert [file.path for file in list_files(conn)] == ["a.py", "b.py", "c.py"]
        yield FieldScores(conn, CommitHistory(conn))


def test_a_definition_counts_more_than_a_use_and_that_more_than_a_message(fields: FieldScores) -> None:
    gains = fields.gains("pars", 1.0).gains
    assert gains[A] > gains[B] > gains[C] > 0


def test_a_gain_grows_with_the_weight_and_never_beyond_weight_times_rarity(fields: FieldScores) -> None:
    once, twice = fields.gains("pars", 1.0).gains, fields.gains("pars", 2.0).gains
    assert {file_id: 2 * gain for file_id, gain in once.items()} == pytest.approx(twice)
    everywhere = math.log(1 + 0.5 / 3.5)
    assert max(once.values()) < everywhere
    assert SATURATION > 0


def test_the_fields_that_hold_a_term_are_named_the_weightiest_first(fields: FieldScores) -> None:
    term = fields.gains("pars", 1.0)
    assert fields.holders(term, A) == ("symbols", "body", "docstrings")
    assert fields.holders(term, B) == ("body",)
    assert fields.holders(term, C) == ("history",)


def score(kb: KnowledgeBase, path: str, **weights: float) -> DefinitionScore | None:
    file = kb.get_file_by_path(path)
    assert file is not None
    return ChunkScores(kb._conn).score({file.id: path}, weights).get(file.id)


def test_the_definition_that_says_most_is_the_nearest(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", CHUNKED_FILES)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        kb = KnowledgeBase(conn)
        found = score(kb, "one.py", pars=1.0, date=1.0)
        only = score(kb, "one.py", format=1.0)
        assert found is not None
        assert only is not None
        file = kb.get_file_by_path("one.py")
        assert file is not None
        names = {
            one.best: symbols.get_symbol(conn, symbols.first_symbol_id(file.id) + one.best)
            for one in (found, only)
        }
        assert [symbol.name if symbol else "" for symbol in names.values()] == ["parse_date", "format_date"]
        more = score(kb, "one.py", pars=2.0, date=2.0)
        assert more is not None
        assert more.score == 2 * found.score
        assert score(kb, "far.py", pars=1.0, date=1.0) is None
        assert score(kb, "note.md", pars=1.0) is None
        assert score(kb, "one.py") is None


class Told:
    """The past of one small repository, by path."""

    def __init__(self, past: CommitHistory, paths: dict[int, str]) -> None:
        self.past = past
        self.paths = paths
        self.ids = {path: file_id for file_id, path in paths.items()}

    def by_path(self, votes: dict[int, Vote]) -> dict[str, Vote]:
        return {self.paths[file_id]: vote for file_id, vote in votes.items()}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    top: Path = make_repository(
        tmp_path_factory.mktemp("past") / "repo", {f"{name}.py": f"{name} = 0\n" for name in "abcd"}
    )
    commit(top, {"a.py": "a = 1\n"}, "Parse dates with a comma")
    commit(top, {"a.py": "a = 2\n", "b.py": "b = 2\n"}, "Parse dates twice, twice")
    commit(top, {"c.py": "c = 3\n"}, 'Quote "words" in é: 1')
    commit(top, {"a.py": "a = 4\n", "b.py": "b = 4\n", "c.py": "c = 4\n"}, "Tidy up")
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        yield Told(CommitHistory(conn), {file.id: file.path for file in files.list_files(conn)})


def test_a_term_was_said_of_the_files_that_the_commit_touched(told: Told) -> None:
    said = {told.paths[file_id]: times for file_id, times in told.past.mentions("twice").items()}
    assert said == {"a.py": pytest.approx(2 / 2**0.5), "b.py": pytest.approx(2 / 2**0.5)}
    assert told.past.mentions("wice") == {}
    assert told.past.mentions("never") == {}
    assert set(told.past.mentions("quot")) == {told.ids["c.py"]}


def test_commits_with_like_messages_vote_for_their_files(told: Told) -> None:
    votes = told.by_path(told.past.votes({"pars": 1.0, "date": 1.0, "comma": 1.0}))
    assert set(votes) == {"a.py", "b.py"}
    assert votes["a.py"].weight > votes["b.py"].weight > 0
    assert (votes["a.py"].count, votes["b.py"].count) == (2, 1)
    commit_hash, message = told.past.commit(votes["a.py"].source)
    assert message == "Parse dates with a comma"
    assert len(commit_hash) == 40
    assert told.past.votes({"skip_newest": 1.0}) == {}


def test_what_changed_together_more_exclusively_is_nearer(told: Told) -> None:
    company = told.by_path(told.past.co_changed({told.ids["a.py"]: 2.0}))
    assert set(company) == {"b.py", "c.py", "d.py"}  # d.py came with the first commit
    assert company["b.py"].weight > company["c.py"].weight > company["d.py"].weight > 0
    assert company["b.py"].source == told.ids["a.py"]


def test_a_repository_without_history_says_nothing(tmp_path: Path) -> None:
    with contextlib.closing(get_connection("curated", repo_path=tmp_path)) as conn:
        past = CommitHistory(conn)
        assert past.votes({"a": 1.0}) == past.co_changed({1: 1.0}) == {}
        assert past.mean_length(0) == past.length(1) == 0


@pytest.mark.parametrize("when", [str(2**63), "9" * 26, "1" * 5000])
def test_one_commit_with_an_absurd_date_breaks_nothing(tmp_path: Path, when: str) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    commit(top, {"a.py": "a = 2\n", "b.py": "b = 2\n"}, "Both")
    tree, parent = git(top, "rev-parse", "HEAD^{tree}").strip(), git(top, "rev-parse", "HEAD").strip()
    text = f"tree {tree}\nparent {parent}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> {when} +0000\n\nx\n"
    (tmp_path / "commit").write_text(text)
    made = git(top, "hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "commit")).strip()
    git(top, "update-ref", "HEAD", made)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        ids = {file.path: file.id for file in files.list_files(conn)}
        votes = CommitHistory(conn).co_changed({ids["a.py"]: 1.0})
    assert {file_id: vote.source for file_id, vote in votes.items()} == {ids["b.py"]: ids["a.py"]}
