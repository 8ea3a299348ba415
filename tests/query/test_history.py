import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, git, make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import files
from clean_room_agent.query.search import CommitHistory, Vote


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
