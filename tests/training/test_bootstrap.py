"""Histories in, units out, whatever is wrong with one of them."""

from pathlib import Path

from testing.histories import make_history
from testing.repositories import git

from clean_room_agent.training.bootstrap import Mined, mine_sources
from clean_room_agent.training.commit_sources import Exclusions, Source


def mined(*sources: Source) -> Mined:
    return mine_sources(
        sources, Exclusions(), unit_commits=9, newest=None, progress=lambda _done, _total: None
    )


def test_what_git_can_read_of_a_damaged_history_counts(tmp_path: Path) -> None:
    top = tmp_path / "till"
    make_history(top)
    whole = Source(name="whole", git_dir=top / ".git", head=git(top, "rev-parse", "HEAD"))
    tree = git(top, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", feed=b"100644 a.py\0half")
    bad = git(top, "commit-tree", "-p", "HEAD", "-m", "A tree that ends in the middle", tree)
    damaged = Source(name="damaged", git_dir=top / ".git", head=bad)
    alone, both = mined(whole), mined(damaged, whole)
    assert [unit.content for unit in both.units] == [alone.units[0].content] * 2
    ((name, reason),) = both.unread
    assert name == "damaged"
    assert "tree" in reason
