"""Whatever happens to a repository, its history in the index is what a fresh one would hold."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import FIRST_DATE, git, make_repository
from tests.indexer.history.history_index import HistoryIndex

from clean_room_agent.errors import CommandError
from clean_room_agent.indexer.history import rows, sync
from clean_room_agent.indexer.index_config import IndexConfig

NAMES = tuple(f"f{number}.txt" for number in range(8))
STEPS = 12


class Player:
    """Somebody who works without a plan; dates tie and go backwards."""

    def __init__(self, top: Path, seed: int) -> None:
        self.top = top
        self.random = random.Random(seed)
        self.date = FIRST_DATE
        make_repository(top, {name: content(number) for number, name in enumerate(NAMES[:5])})

    def step(self) -> str:
        """Does something; its name."""
        plays: list[Callable[[], None]] = [
            self.edit,
            self.edit,
            self.rename,
            self.swap,
            self.delete,
            self.branch,
            self.switch,
            self.merge,
            self.merge,
            self.amend,
            self.reset,
            self.leave_untracked,
            self.pick,
        ]
        play = self.random.choice(plays)
        play()
        return play.__name__

    def edit(self) -> None:
        """Changes some files, or writes them anew."""
        self._edit()
        self._commit()

    def rename(self) -> None:
        """Gives a file another name, perhaps that of another."""
        source, target = self.random.choice(self._files()), self.random.choice(NAMES)
        (self.top / source).rename(self.top / target)
        if self.random.random() < 0.3:
            self._edit()
        self._commit()

    def swap(self) -> None:
        """Two files change their names."""
        first, second = self.random.choices(self._files(), k=2)
        text = (self.top / first).read_text()
        (self.top / first).write_text((self.top / second).read_text())
        (self.top / second).write_text(text)
        self._commit()

    def delete(self) -> None:
        """Deletes a file, but not the last."""
        files = self._files()
        if len(files) > 1:
            (self.top / self.random.choice(files)).unlink()
        self._commit()

    def branch(self) -> None:
        """Begins a branch here."""
        git(self.top, "checkout", "-q", "-B", f"b{self.random.randint(0, 3)}")

    def switch(self) -> None:
        """Goes to another branch."""
        self._tidy()
        git(self.top, "checkout", "-q", self._other())

    def merge(self) -> None:
        """Merges another branch, unless that fails."""
        self._tidy()
        self._try("merge", "-q", "--no-edit", "-X", "ours", self._other())

    def pick(self) -> None:
        """Takes a commit of any branch over, unless that fails."""
        self._tidy()
        commits = git(self.top, "rev-list", "--no-merges", "--all").split()
        self._try("cherry-pick", "--allow-empty", "-X", "ours", self.random.choice(commits))

    def amend(self) -> None:
        """Makes the last commit another one."""
        self._edit()
        self._commit("--amend")

    def reset(self) -> None:
        """Throws commits away."""
        self._tidy()
        count = int(git(self.top, "rev-list", "--first-parent", "--count", "HEAD"))
        git(self.top, "reset", "-q", "--hard", f"HEAD~{self.random.randint(0, min(3, count - 1))}")

    def leave_untracked(self) -> None:
        """Writes a file, and perhaps deletes another, without a commit."""
        (self.top / self.random.choice(NAMES)).write_text("odd\n")
        files = self._files()
        if len(files) > 1 and self.random.random() < 0.5:
            (self.top / self.random.choice(files)).unlink()

    def _files(self) -> list[str]:
        return [name for name in NAMES if (self.top / name).exists()]

    def _other(self) -> str:
        branches = git(self.top, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        return self.random.choice(branches)

    def _tidy(self) -> None:
        git(self.top, "add", "-A")
        git(self.top, "reset", "-q", "--hard")

    def _edit(self) -> None:
        for name in self.random.sample(NAMES, self.random.randint(1, 3)):
            path = self.top / name
            before = path.read_text() if path.exists() else content(self.random.randint(0, 9))
            path.write_text(f"{before}more {self.random.random()}\n")

    def _commit(self, *options: str) -> None:
        git(self.top, "add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", f"Change {self.random.randint(0, 9)}", *options)

    def _try(self, *arguments: str) -> None:
        try:
            self._git(*arguments)
        except CommandError:
            git(self.top, "reset", "-q", "--hard")

    def _git(self, *arguments: str) -> None:
        self.date += self.random.choice([0, 0, 1, 60, -50])
        git(self.top, *arguments, date=self.date)


def content(number: int) -> str:
    """Lines by which git knows a file again."""
    return "".join(f"{number} line {line}\n" for line in range(8))


@pytest.mark.parametrize(("seed", "bound"), [(1, 100), (2, 100), (3, 8), (4, 15)])
def test_history_that_went_on_equals_one_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, bound: int
) -> None:
    for module in (rows, sync):
        monkeypatch.setattr(module, "SEARCHED_COMMITS", 9)
    player = Player(tmp_path / "repo", seed)
    index = HistoryIndex(player.top, tmp_path / "index.sqlite", IndexConfig(history=bound, pair_bound=4))
    with contextlib.closing(index.conn):
        for step in range(STEPS):
            player.step()
            if step % 3 == 2 or player.random.random() < 0.4:
                index.refresh()
                index.assert_as_fresh()
