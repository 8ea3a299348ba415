"""What can be said of the lists of commits without running them."""

from pathlib import Path

import benchmarks.oracle.__main__
import pytest
from benchmarks.commits.commit_list import CommitList, SearchEntry, read_list, write_commits
from benchmarks.solve_real.__main__ import LIST as REPAIRS

UNSEEN = REPAIRS.with_name("unseen_commits.toml")
LISTS = {"oracle": benchmarks.oracle.__main__.LIST, "repairs": REPAIRS, "unseen": UNSEEN}


@pytest.fixture(params=sorted(LISTS))
def listed(request: pytest.FixtureRequest) -> CommitList:
    return read_list(LISTS[request.param])


def test_every_commit_keeps_the_rule(listed: CommitList) -> None:
    for commit in listed.commits:
        assert 1 <= len(commit.sources) <= 5, commit.id
        assert commit.changed_lines < 200, commit.id
        assert commit.test_files, commit.id
        assert commit.must_pass, commit.id
    assert len({commit.id for commit in listed.commits}) == len(listed.commits)


def test_the_oracle_has_sixty_commits_of_six_repositories_in_two_languages() -> None:
    listed = read_list(benchmarks.oracle.__main__.LIST)
    assert len(listed.commits) >= 60
    assert len({commit.repository for commit in listed.commits}) >= 6
    kinds = {listed.environments[commit.environment].kind for commit in listed.commits}
    assert kinds == {"python", "node"}


def test_the_unseen_commits_are_of_other_repositories_and_of_different_runners() -> None:
    listed = read_list(UNSEEN)
    seen = {*read_list(benchmarks.oracle.__main__.LIST).repositories, *read_list(REPAIRS).repositories}
    used = {commit.repository for commit in listed.commits}
    assert len(listed.commits) >= 24
    assert len(used) >= 4
    assert not used & seen
    assert len({listed.repositories[name].runner for name in used} - {"pytest"}) >= 2


@pytest.mark.parametrize("path", [benchmarks.oracle.__main__.LIST, UNSEEN])
def test_every_commit_that_was_looked_at_was_taken_or_left_out_for_a_reason(path: Path) -> None:
    listed = read_list(path)
    for repository, search in listed.searches.items():
        taken = sum(commit.repository == repository for commit in listed.commits)
        assert (taken, taken + sum(search.left_out.values())) == (search.taken, search.looked_at)


def test_a_list_is_written_as_it_was_read(tmp_path: Path) -> None:
    repairs = tmp_path / REPAIRS.name
    repairs.write_bytes(REPAIRS.read_bytes())
    copy = tmp_path / "list.toml"
    copy.write_bytes(benchmarks.oracle.__main__.LIST.read_bytes())
    listed = read_list(copy)
    search = SearchEntry(looked_at=3, taken=1, left_out={"changes no test": 2})
    write_commits(copy, listed.commits, {**listed.searches, "a/b": search})
    again = read_list(copy)
    assert again.commits == listed.commits
    assert again.searches == {**listed.searches, "a/b": search}
