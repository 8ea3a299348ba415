"""Temporary indexes leave the user's index alone."""

import os

from testing.repositories import git, write

from clean_room_agent.git.command import names
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.scratch_index import copied_index, identity, scratch_index


def listed(repo: Repository, pins: dict[str, str]) -> tuple[str, ...]:
    return tuple(names(repo.git("ls-files", "-z", pins=pins)))


def test_an_index_holds_a_tree_or_nothing_and_goes_afterwards(repo: Repository) -> None:
    with scratch_index(repo, repo.head) as pins:
        assert listed(repo, pins) == ("a.py", "b.py", "c.py")
    with scratch_index(repo, None) as pins:
        assert listed(repo, pins) == ()
    assert not os.path.exists(pins["GIT_INDEX_FILE"])  # noqa: PTH110 - one call


def test_a_copy_has_what_is_staged_and_the_original_stays(repo: Repository) -> None:
    write(repo.top, {"new.py": "n\n"})
    git(repo.top, "add", "new.py")
    before = (repo.git_dir / "index").read_bytes()
    with copied_index(repo) as pins:
        assert "new.py" in listed(repo, pins)
        repo.git("rm", "-q", "--cached", "new.py", pins=pins)
        assert "new.py" not in listed(repo, pins)
    assert (repo.git_dir / "index").read_bytes() == before


def test_author_and_committer_are_alike_and_the_date_is_optional() -> None:
    assert identity(("Ann", "a@b.c"), None) == {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    assert identity(("Ann", "a@b.c"), "@0 +0000")["GIT_COMMITTER_DATE"] == "@0 +0000"
