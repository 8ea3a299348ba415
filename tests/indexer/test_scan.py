"""Which files belong into the index, and which may have changed since."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from clean_room_agent.db.curated.files import Stamp
from clean_room_agent.indexer.scan import RACY_NS, Scan, scan

WRITTEN = 10**18


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
        os.utime(path, ns=(WRITTEN, WRITTEN))


def stamp(root: Path, name: str) -> Stamp:
    status = (root / name).stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def scanned(
    root: Path, *paths: str, known: Mapping[str, Stamp] = MappingProxyType({}), after: int = RACY_NS + 1
) -> Scan:
    return scan(root, paths, known, scanned_at=WRITTEN + after, max_bytes=100)


def test_a_file_that_is_as_it_was_is_no_suspect(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.py")
    found = scanned(tmp_path, "b.py", "a.py", "a.py", known={"a.py": stamp(tmp_path, "a.py")})
    assert found.present == ("a.py", "b.py")
    assert found.suspects == ("b.py",)
    assert dict(found.sizes) == {"a.py": 6, "b.py": 6}


def test_another_stamp_makes_a_suspect(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    size, written, inode = stamp(tmp_path, "a.py")
    for one in ((7, written, inode), (size, 1, inode), (size, written, 0)):
        assert scanned(tmp_path, "a.py", known={"a.py": one}).suspects == ("a.py",)


def test_what_was_written_just_before_the_last_scan_is_a_suspect(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    known = {"a.py": stamp(tmp_path, "a.py")}
    assert scanned(tmp_path, "a.py", known=known, after=RACY_NS).suspects == ("a.py",)
    assert scanned(tmp_path, "a.py", known=known, after=RACY_NS + 1).suspects == ()


def test_files_that_are_known_and_not_present_are_gone(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    known = {"old.py": stamp(tmp_path, "a.py"), "old.png": (1, 1, 1)}
    assert scanned(tmp_path, "a.py", "old.py", known=known).gone == ("old.png", "old.py")


def test_secrets_links_folders_and_our_own_files_do_not_belong(tmp_path: Path) -> None:
    write(tmp_path, "a.py", ".env", ".clean_room/config.toml", "folder/b.py")
    (tmp_path / "link.py").symlink_to("a.py")
    found = scanned(tmp_path, "a.py", ".env", ".clean_room/config.toml", "folder", "link.py", "missing.py")
    assert found.present == ("a.py",)
    assert found.left_out == {}
