"""Histories in, units out, whatever is wrong with one of them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.histories import make_history
from testing.patience import PATIENCE
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


KILLED = """
import os, sys, time
from pathlib import Path
from clean_room_agent.training.bootstrap import make_shards

def make(unit):
    (Path(sys.argv[1]) / f"{unit}-{os.getpid()}").touch()
    time.sleep(600)

if __name__ == "__main__":
    make_shards(make, ["a", "b", "c"], lambda _done, _total: None, jobs=2, engine="local")
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_began_them(tmp_path: Path, how: signal.Signals) -> None:
    script, begun = tmp_path / "killed.py", tmp_path / "begun"
    script.write_text(KILLED, encoding="utf-8")
    begun.mkdir()
    process = subprocess.Popen((sys.executable, str(script), str(begun)))
    until(lambda: len(list(begun.iterdir())) == 2)
    process.send_signal(how)
    process.wait()
    workers = [int(file.name.partition("-")[2]) for file in begun.iterdir()]
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
