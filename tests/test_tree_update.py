"""Files of the user's tree are replaced whole, and what the user has changed meanwhile is never replaced."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from testing.faults.applies import CALLS, tree_of
from testing.repositories import write

from clean_room_agent.errors import RepositoryError
from clean_room_agent.tree_update import NewFile, state_of, update_tree

FILES = {
    "a.py": NewFile(data=b"new a\n"),
    "gone/in.py": None,
    "made/in/it.py": NewFile(data=b"new\n", executable=True),
    "link": NewFile(data=b"a.py", link=True),
    "tool": NewFile(data=b"tool\n", executable=True),
}
AFTER = {
    "a.py": (0o640, b"new a\n"),
    "made/in/it.py": (0o755, b"new\n"),
    "link": (0, b"a.py"),
    "tool": (0o755, b"tool\n"),
    "mine.py": (0o644, b"mine\n"),
}


class Tree:
    """A tree to update."""

    def __init__(self, top: Path) -> None:
        self.top = top
        files = {"a.py": "a\n", "gone/in.py": "gone\n", "tool": "tool\n"}
        write(self.top, {**files, "mine.py": "mine\n"})
        (self.top / "link").symlink_to("mine.py")
        (self.top / "a.py").chmod(0o640)
        self.before = tree_of(self.top)
        self.seen = {path: state_of(self.top, path) for path in FILES}

    def update(self) -> None:
        update_tree(self.top, FILES, self.seen, what="applying run r")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "top")


@contextmanager
def failing(at: int, error: BaseException) -> Iterator[list[str]]:
    """The call of this number that changes something on the disk raises `error`; yields the calls so far."""
    calls: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name != "open" or (len(args) > 1 and args[1] & os.O_CREAT):
                calls.append(name)
                if len(calls) == at:
                    raise error
            return real(*args, **options)

        return call

    watched: dict[str, Any] = {name: counted(name, getattr(os, name)) for name in CALLS}
    with patch.multiple(os, **watched):
        yield calls


def test_everything_is_replaced_and_nothing_else(tree: Tree) -> None:
    tree.update()
    assert tree_of(tree.top) == AFTER
    assert sorted(path.name for path in tree.top.iterdir() if path.is_dir()) == ["made"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EXDEV, errno.EBUSY])
def test_a_call_that_fails_leaves_each_file_old_or_new_and_says_which(tmp_path: Path, number: int) -> None:
    counted = Tree(tmp_path / "counted")
    with failing(0, OSError()) as calls:
        counted.update()
    outcomes = set()
    for at in range(1, len(calls) + 1):
        tree = Tree(tmp_path / str(at))
        told = ""
        try:
            with failing(at, OSError(number, os.strerror(number))):
                tree.update()
        except RepositoryError as error:
            told = error.message
        found = tree_of(tree.top)
        if "nothing was changed" in told:
            assert found == tree.before, at
        elif not told:
            assert found == AFTER, at
        else:
            assert "stopped half way" in told
            known = {path: content for path, content in found.items() if "/.cra-" not in f"/{path}"}
            assert all(known[path] in (tree.before.get(path), AFTER.get(path)) for path in known), at
        outcomes.add(told.rpartition("; ")[2] == "nothing was changed")
    assert outcomes == {True, False}


def test_a_file_that_changes_while_it_is_replaced_is_not_replaced(tree: Tree) -> None:
    (tree.top / "a.py").write_bytes(b"mine\n")
    with pytest.raises(RepositoryError, match=r"a\.py: changed here meanwhile; nothing was changed"):
        tree.update()
    assert tree_of(tree.top) == {**tree.before, "a.py": (0o640, b"mine\n")}


def test_mode_owner_and_attributes_are_kept(tree: Tree) -> None:
    file = tree.top / "a.py"
    file.chmod(0o601)
    attributes = {"user.note": b"kept"}
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        attributes = {}
    if os.geteuid() == 0:
        os.chown(file, 12345, 12346)
    before = file.stat()
    tree.update()
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {name: os.getxattr(file, name) for name in os.listxattr(file) if name in attributes} == attributes


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_whose_owner_cannot_be_kept_is_not_replaced(tree: Tree) -> None:
    os.chown(tree.top / "a.py", 12345, 12346)
    denied = PermissionError(errno.EPERM, "Operation not permitted")
    with patch.object(os, "fchown", side_effect=denied), pytest.raises(RepositoryError) as caught:
        tree.update()
    assert "nothing was changed" in caught.value.message
    assert "owner" in caught.value.hint
    assert tree_of(tree.top) == tree.before
