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
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.query.scores import (
    SATURATION,
    ChunkScores,
    CommitHistory,
    DefinitionScore,
    FieldScores,
    Vote,
)

FILES = {
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


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldScores]:
    top: Path = make_repository(tmp_path_factory.mktemp("fields") / "repo", FILES)
    commit(top, {"c.py": FILES["c.py"] + "\n"}, "Parse no more")
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


def test_a_term_that_no_file_holds_is_of_no_worth(fields: FieldScores) -> None:
    assert fields.rarity("nowhere") == 0.0
    assert fields.gains("nowhere", 1.0).gains == {}


def test_among_few_files_every_term_is_distinctive(fields: FieldScores) -> None:
    assert fields.is_distinctive("text")


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
