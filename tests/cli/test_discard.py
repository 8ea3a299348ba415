"""`cra discard`, and what it shares with `cra apply` and `cra replay`."""

import pytest
from testing.repositories import git
from testing.runs.solving import Project

from clean_room_agent.workspace import Workspace


def refs(till: Project) -> list[str]:
    return git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra", "refs/heads/cra").split()


def test_discard_leaves_the_record_alone(till: Project, solved: str) -> None:
    assert refs(till)
    told = till.cra("discard", solved[:8])
    assert told.code == 0
    assert f"deleted refs/heads/cra/{solved[:8]}" in told.out
    assert refs(till) == []
    assert told.recorded.run is not None
    assert told.traces == {}
    assert till.cra("discard", "@").out == f"git has nothing of run {solved[:8]}\n"
    assert f"run {solved[:8]} was discarded" in till.cra("apply", "@").err


def test_discard_spares_a_branch_with_commits_of_the_users_own(till: Project, solved: str) -> None:
    branch = f"cra/{solved[:8]}"
    tree = git(till.top, "rev-parse", f"{branch}^{{tree}}").strip()
    mine = git(till.top, "commit-tree", tree, "-p", branch, "-m", "mine").strip()
    git(till.top, "update-ref", f"refs/heads/{branch}", mine)
    told = till.cra("discard", solved)
    assert told.code == 2
    assert "git branch -D" in told.err
    assert f"refs/heads/{branch}" in refs(till)


def test_discard_spares_the_branch_that_is_checked_out(till: Project, solved: str) -> None:
    git(till.top, "switch", "-q", f"cra/{solved[:8]}")
    told = till.cra("discard", solved)
    assert told.code == 2
    assert "switch --detach" in told.err


@pytest.mark.parametrize("command", ["apply", "discard", "replay"])
def test_a_run_that_is_not_there_leads_to_the_list(command: str, till: Project, solved: str) -> None:
    told = till.cra(command, "zzzz")
    assert (told.code, told.out) == (2, "")
    assert "cra runs" in told.err
    assert solved


@pytest.mark.parametrize("command", ["apply", "discard", "replay"])
def test_where_nothing_is_recorded_nothing_is_made(command: str, till: Project) -> None:
    told = till.cra(command, "abcd")
    assert told.code == 2
    assert "nothing has been recorded here yet" in told.err
    assert not Workspace(repo=till.top).folder.exists()
