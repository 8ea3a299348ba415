"""Files are replaced all at once, whatever fails, and what the user has changed meanwhile is never replaced."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from testing.faults.applies import CALLS, tree_of
from testing.repositories import write

from clean_room_agent.errors import RepositoryError
from clean_room_agent.tree_entries import NewFile, state_of
from clean_room_agent.tree_update import complete_update, update_tree

FILES = {
    "a.py": NewFile(data=b"new a\n"),
    "gone/in.py": None,
    "made/in/it.py": NewFile(data=b"new\n", executable=True),
    "link": NewFile(data=b"a.py", link=True),
    "tool": NewFile(data=b"tool\n", executable=True),
}


class Killed(BaseException):
    """As if the process ended here: nothing that it would still do on the way out is done."""


class Tree:
    """A tree to update, and the folder of its journal."""

    def __init__(self, folder: Path) -> None:
        self.top, self.journal = folder / "top", folder / "journal"
        self.journal.mkdir(parents=True)
        files = {"a.py": "a\n", "gone/in.py": "gone\n", "tool": "tool\n"}
        write(self.top, {**files, "mine.py": "mine\n"})
        (self.top / "link").symlink_to("mine.py")
        (self.top / "a.py").chmod(0o640)
        self.before = tree_of(self.top)

    def update(self) -> None:
        seen = {path: state_of(self.top, path) for path in FILES}
        update_tree(self.top, self.journal, FILES, seen, what="applying run r")

    def complete(self) -> str:
        return complete_update(self.top, self.journal)

    def outcome(self) -> str:
        """Whether all is old or new; the names of temporary files if there are any."""
        left = [path.name for path in (*self.top.rglob(".cra-*"), *self.journal.glob("*.journal"))]
        if left:
            return str(left)
        found = tree_of(self.top)
        return "old" if found == self.before else "new" if found == AFTER else str(found)


AFTER = {
    "a.py": (0o640, b"new a\n"),
    "made/in/it.py": (0o755, b"new\n"),
    "link": (0, b"a.py"),
    "tool": (0o755, b"tool\n"),
    "mine.py": (0o644, b"mine\n"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@contextmanager
def failing(at: int, error: BaseException, *, ever_after: bool = False) -> Iterator[list[str]]:
    """The call of this number that changes something on the disk raises `error`; yields the calls so far."""
    calls: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name != "open" or (len(args) > 1 and args[1] & os.O_CREAT):
                calls.append(f"{name} {args[0]}")
                if len(calls) == at or (ever_after and len(calls) > at):
                    raise error
            return real(*args, **options)

        return call

    watched: dict[str, Any] = {name: counted(name, getattr(os, name)) for name in CALLS}
    with patch.multiple(os, **watched):
        yield calls


def calls_of(folder: Path) -> list[str]:
    tree = Tree(folder)
    with failing(0, Killed()) as calls:
        tree.update()
    return calls


def test_everything_is_replaced_and_nothing_else(tree: Tree) -> None:
    tree.update()
    assert tree.outcome() == "new"
    assert sorted(path.name for path in tree.top.iterdir() if path.is_dir()) == ["made"]
    assert list(tree.journal.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EXDEV, errno.EBUSY])
def test_a_call_that_fails_leaves_all_old_or_all_new(tmp_path: Path, number: int) -> None:
    outcomes = set()
    for at in range(1, len(calls_of(tmp_path / "counted")) + 1):
        tree = Tree(tmp_path / str(at))
        try:
            with failing(at, OSError(number, os.strerror(number))):
                tree.update()
        except RepositoryError as error:
            told = error.message
        else:
            told = ""
        outcome = tree.outcome()
        if outcome not in {"old", "new"}:
            assert "temporary files cannot be removed" in told, (at, told)
            assert "completed" in tree.complete()
            outcome = tree.outcome()
        outcomes.add(outcome)
        assert outcome == ("old" if "nothing was changed" in told else "new"), (at, outcome, told)
    assert outcomes == {"old", "new"}


def test_a_kill_anywhere_is_completed_or_undone(tmp_path: Path) -> None:
    outcomes = []
    for at in range(1, len(calls_of(tmp_path / "counted")) + 1):
        tree = Tree(tmp_path / str(at))
        with pytest.raises(Killed), failing(at, Killed(), ever_after=True):
            tree.update()
        with suppress(Killed), failing(1 + at % 7, Killed(), ever_after=True):
            tree.complete()
        tree.complete()
        outcomes.append(tree.outcome())
    assert outcomes == sorted(outcomes, reverse=True), "undone up to a point, completed from there on"
    assert {*outcomes} == {"old", "new"}


def kill_half_way(tree: Tree) -> None:
    """After what is removed is gone, and the first file has become new."""
    calls = calls_of(tree.top.parent / "counted")
    first = next(
        n for n, call in enumerate(calls, start=1) if call.startswith("rename") and call.endswith(".new")
    )
    with pytest.raises(Killed), failing(first + 1, Killed(), ever_after=True):
        tree.update()
    assert (tree.top / "a.py").read_bytes() == b"new a\n"
    assert (tree.top / "tool").stat().st_mode & stat.S_IXUSR == 0


def test_what_the_user_did_to_a_new_file_after_a_kill_stays(tree: Tree) -> None:
    kill_half_way(tree)
    (tree.top / "a.py").write_bytes(b"mine\n")
    assert tree.complete().startswith("applying run r was interrupted; it was completed: a.py, ")
    found = tree_of(tree.top)
    assert found == {**AFTER, "a.py": (0o640, b"mine\n")}


def test_a_file_that_the_user_changed_after_a_kill_is_named_and_kept_and_all_else_is_undone(
    tree: Tree,
) -> None:
    kill_half_way(tree)
    (tree.top / "tool").write_bytes(b"mine\n")
    with pytest.raises(RepositoryError) as caught:
        tree.complete()
    assert "left as they are: tool; restored: a.py, " in caught.value.message
    assert tree_of(tree.top) == {**tree.before, "tool": (0o644, b"mine\n")}
    assert tree.complete() == "", "said once"


def test_without_its_temporary_files_an_update_ends_and_what_they_held_is_named(tree: Tree) -> None:
    kill_half_way(tree)
    for path in tree.top.rglob(".cra-*"):
        if path.is_file() or path.is_symlink():
            path.unlink()
    with pytest.raises(RepositoryError, match=r"left as they are: .*tool"):
        tree.complete()
    assert tree.complete() == ""
    assert (tree.top / "tool").read_bytes() == b"tool\n"


def bring_by_hand(tree: Tree) -> None:
    """All as it becomes, in new files, as `git checkout` of the result would bring it."""
    for path, new in FILES.items():
        if new is None and (tree.top / path).is_file():
            (tree.top / path).unlink()
    for path, new in FILES.items():
        if new is not None:
            place = tree.top / path
            if place.is_dir():
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to("a.py") if new.link else place.write_bytes(new.data)
            if new.executable:
                place.chmod(0o755)


def test_what_the_user_brought_himself_after_a_kill_stays(tmp_path: Path) -> None:
    for at in range(1, len(calls_of(tmp_path / "counted")) + 1):
        tree = Tree(tmp_path / str(at))
        with pytest.raises(Killed), failing(at, Killed(), ever_after=True):
            tree.update()
        bring_by_hand(tree)
        tree.complete()
        found = {path: content for path, (_, content) in tree_of(tree.top).items()}
        assert found == {path: content for path, (_, content) in AFTER.items()}, at


def test_what_cannot_be_restored_any_more_is_named(tree: Tree) -> None:
    kill_half_way(tree)
    for path in tree.top.rglob(".cra-*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(RepositoryError) as caught:
        tree.complete()
    gone = "(what it was is no longer beside it)"
    assert f"a.py {gone}, gone/in.py {gone}, " in caught.value.message


def test_what_a_program_writes_to_an_old_file_that_it_has_open_is_kept(tree: Tree) -> None:
    real = os.rename
    with (tree.top / "a.py").open("r+b") as held:

        def rename(*args: Any, **options: Any) -> None:
            real(*args, **options)
            if args[1] == "a.py" and args[0].endswith(".new"):
                held.write(b"m")
                held.flush()

        with patch.object(os, "rename", rename), pytest.raises(RepositoryError, match=r"they are: a\.py"):
            tree.update()
    assert tree_of(tree.top) == {**tree.before, "a.py": (0o640, b"m\n")}


def test_a_file_that_changes_while_it_is_replaced_is_not_replaced(tree: Tree) -> None:
    seen = {path: state_of(tree.top, path) for path in FILES}
    (tree.top / "a.py").write_bytes(b"mine\n")
    with pytest.raises(RepositoryError, match=r"left as they are: a\.py"):
        update_tree(tree.top, tree.journal, FILES, seen, what="applying run r")
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
    assert tree.outcome() == "old"


def test_while_temporary_files_cannot_be_removed_the_journal_stays(tree: Tree) -> None:
    """As in a folder that only grows: files can be created there, and neither renamed nor removed."""
    denied = PermissionError(errno.EPERM, "Operation not permitted")
    with patch.multiple(os, unlink=Mock(side_effect=denied), rename=Mock(side_effect=denied)):
        with pytest.raises(RepositoryError, match="and so did undoing it"):
            tree.update()
        with pytest.raises(RepositoryError, match="undoing it"):
            tree.complete()
    tree.complete()
    assert tree.outcome() in {"old", "new"}


def test_where_files_cannot_have_two_names_a_copy_is_kept(tree: Tree) -> None:
    with patch.object(os, "link", side_effect=PermissionError(errno.EPERM, "Operation not permitted")):
        tree.update()
    assert tree.outcome() == "new"


@pytest.mark.parametrize("content", [b'{"mark": "../x"}', b"", b"[" * 100_000, b"\xff", b"null"])
def test_a_journal_that_is_damaged_is_named(tree: Tree, content: bytes) -> None:
    (tree.journal / "apply.journal").write_bytes(content)
    with pytest.raises(RepositoryError, match=r"apply\.journal cannot be read"):
        tree.complete()
