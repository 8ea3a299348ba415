import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from clean_room_agent import safe_open


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files, links and worse, beside a file that is outside."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    top = tmp_path / "top"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").write_text("inside")
    (top / "to_file").symlink_to("a/b/file")
    (top / "to_secret").symlink_to(tmp_path / "secret")
    (top / "to_folder").symlink_to("a")
    (top / "to_outside").symlink_to(tmp_path / "outside")
    (top / "to_proc").symlink_to("/proc/self/root")
    os.mkfifo(top / "fifo")
    return top


OUT = (
    "", ".", "..", "../secret", "a/../../secret", "a/b/../b/file", "/etc/passwd", "a//b/file", "./a/b/file", "a/b/file/",
    "to_file", "to_secret", "to_folder/b/file", "to_outside/secret", "to_proc/etc/passwd", "a\0", "\ud800", "missing",
    "a/b/file/deeper", "x" * 300,
)  # fmt: skip


def test_a_file_beneath_is_opened_and_nothing_else(tree: Path) -> None:
    top = os.open(tree, os.O_RDONLY)
    try:
        handle = safe_open.open_beneath(top, "a/b/file", safe_open.READ)
        assert os.read(handle, 100) == b"inside"
        os.close(handle)
        for path in OUT:
            with pytest.raises(OSError, match=r".") as caught:
                safe_open.open_beneath(top, path, safe_open.READ)
            assert caught.value.errno not in {0, None, errno.EBADF}
    finally:
        os.close(top)


@pytest.mark.parametrize("path", OUT)
def test_what_leads_out_is_neither_read_nor_seen_nor_written(tree: Path, path: str, tmp_path: Path) -> None:
    before = sorted((p, p.lstat().st_mode) for p in tmp_path.rglob("*"))
    with pytest.raises(OSError):  # noqa: PT011 - which one it is depends on the path
        safe_open.read_bytes(tree, path)
    assert not safe_open.is_file(tree, path)
    if path not in {"missing", "to_file", "to_secret"}:
        with pytest.raises(OSError):  # noqa: PT011
            safe_open.write_bytes(tree, path, b"x")
        with pytest.raises(OSError):  # noqa: PT011
            safe_open.make_link(tree, path, tmp_path)
        assert sorted((p, p.lstat().st_mode) for p in tmp_path.rglob("*")) == before
    assert (tmp_path / "secret").read_text() == "secret"


def test_what_is_no_regular_file_is_not_read_and_nobody_waits_for_it(tree: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tree)  # the whole path may be too long for a socket's address
    try:
        listener.bind("socket")
    finally:
        os.chdir(here)
    for name in ("fifo", "a", "socket"):
        with pytest.raises(OSError):  # noqa: PT011
            safe_open.read_bytes(tree, name)
    listener.close()


def test_no_handle_is_left_open(tree: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (*OUT, "fifo", "a", "a/b/file"):
        for act in (safe_open.read_bytes, safe_open.is_file):
            try:
                act(tree, path)
            except OSError:
                continue
    safe_open.write_bytes(tree, "new/er/file", b"x")
    with pytest.raises(OSError, match="directory"):
        safe_open.write_bytes(tree, "new/er", b"x")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert sorted(path.name for path in (tree / "new").rglob("*")) == ["er", "file"]


def test_a_written_file_takes_the_place_of_a_link_and_of_a_hard_link(tree: Path, tmp_path: Path) -> None:
    os.link(tmp_path / "secret", tree / "hard")
    for name in ("to_secret", "hard"):
        safe_open.write_bytes(tree, name, b"new", mode=0o755)
        assert (tree / name).read_bytes() == b"new"
        assert stat.S_IMODE((tree / name).lstat().st_mode) == 0o755
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_copy_has_bytes_mode_and_time_and_no_right_of_its_owner(tree: Path, tmp_path: Path) -> None:
    source = tree / "a/b/file"
    source.chmod(0o4751)
    os.utime(source, ns=(1, 2_000_000_000))
    target = tmp_path / "target"
    target.mkdir()
    safe_open.copy_file(tree, target, "a/b/file")
    copy = target / "a/b/file"
    assert copy.read_text() == "inside"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o751
    assert copy.stat().st_mtime_ns == 2_000_000_000


def test_a_copy_does_not_go_through_a_link_of_the_target(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError):  # noqa: PT011
        safe_open.copy_file(tree, target, "a/b/file")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]


def test_a_held_folder_stays_the_same_one_when_its_name_is_given_to_another(
    tree: Path, tmp_path: Path
) -> None:
    with safe_open.hold_parent(tree, "a/b/new") as folder:
        (tree / "a").rename(tree / "moved")
        (tree / "a").symlink_to(tmp_path / "outside")
        (folder / "new").write_text("x")
    assert (tree / "moved/b/new").exists()
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]


def test_a_folder_is_empty_only_where_nothing_is_in_it_and_no_link_leads_there(tmp_path: Path) -> None:
    (tmp_path / "full/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "hollow").symlink_to(tmp_path / "full/inner")
    (tmp_path / "file").write_bytes(b"")
    found = {
        path: safe_open.is_empty_folder(tmp_path, path)
        for path in ("full", "full/inner", "link/inner", "hollow", "file", "gone")
    }
    assert found == dict.fromkeys(found, False) | {"full/inner": True}


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(path.parent):
        bound.bind(path.name)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (os.mkdir, "a folder"),
        (bind, "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path.parent / "top" / "fifo"), "a FIFO"),
    ],
)
def test_what_is_named_and_no_file_is_refused_at_once(
    tree: Path, make: Callable[[Path], object], kind: str
) -> None:
    path = tree.parent / "named"
    make(path)
    with pytest.raises(OSError, match=f"it is {kind}, not a file"):
        safe_open.open_named(path)


def test_what_is_open_already_is_read_to_its_end(tree: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"told")
    os.close(writing)
    with safe_open.open_named(Path(f"/dev/fd/{reading}")) as file:
        assert file.read() == b"told"
    os.close(reading)
    with safe_open.open_named(tree / "to_file") as file:
        assert file.read() == b"inside"
