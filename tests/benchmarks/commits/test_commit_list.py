"""What can be said of the lists of commits without running them."""

from pathlib import Path

import benchmarks.oracle.__main__
import pytest
from benchmarks.commits.commit_list import SearchEntry, read_list, write_commits

ORACLE = benchmarks.oracle.__main__.LIST
LISTS = sorted(ORACLE.parent.glob("*_commits*.toml"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_commit_keeps_the_rule(path: Path) -> None:
    listed = read_list(path)
    for commit in listed.commits:
        assert 1 <= len(commit.sources) <= 5, commit.id
        assert commit.changed_lines < 200, commit.id
        assert commit.test_files, commit.id
        assert commit.must_pass, commit.id
    assert len({commit.id for commit in listed.commits}) == len(listed.commits)
    for repository, search in listed.searches.items():
        taken = sum(commit.repository == repository for commit in listed.commits)
        assert (taken, taken + sum(search.left_out.values())) == (search.taken, search.looked_at)


def test_a_list_is_written_as_it_was_read(tmp_path: Path) -> None:
    for path in LISTS:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    copy = tmp_path / ORACLE.name
    listed = read_list(copy)
    search = SearchEntry(looked_at=3, taken=1, left_out={"changes no test": 2})
    write_commits(copy, listed.commits, {**listed.searches, "a/b": search})
    again = read_list(copy)
    assert again.commits == listed.commits
    assert again.searches == {**listed.searches, "a/b": search}
