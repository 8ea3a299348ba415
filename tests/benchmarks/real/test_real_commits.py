from pathlib import Path

from benchmarks.commits.commit_list import read_list
from benchmarks.real.real_commits import FOLDER, LISTS, changes
from benchmarks.real.tasks import commit_all
from testing.repositories import git

BEFORE = """
def kept(a):
    return a

class Box:
    def size(self):
        return 1
"""
AFTER = """
def kept(a):  # a comment is no change
    return a

def loud(text: str, *, end: str = "!") -> str:
    return text.upper() + end

def _own():
    return 2

class Box:
    def size(self):
        return _own()

    def fill(self, x):
        self.x = x
"""


def test_what_a_commit_changes_is_told_by_function(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(BEFORE, encoding="utf-8")
    commit_all(tmp_path)
    base = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "box.py").write_text(AFTER, encoding="utf-8")
    (tmp_path / "new.py").write_text("def made():\n    pass\n", encoding="utf-8")
    commit_all(tmp_path)
    added, changed = changes(tmp_path, base, "HEAD", "box.py")
    assert added == ["def loud(text: str, *, end: str='!') -> str", "def Box.fill(self, x)"]
    assert changed == ["loud", "_own", "Box.size", "Box.fill"]
    assert changes(tmp_path, base, "HEAD", "new.py") == (["def made()"], ["made"])


def test_that_each_list_is_there() -> None:
    assert all(read_list(FOLDER / f"{name}.toml").commits for name in LISTS)
