import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import (
    POINTER,
    NotTextError,
    atomic_write,
    decode,
    read_given,
    sync_folder,
)


@given(st.binary(max_size=400))
def test_what_is_accepted_survives_a_round_trip(data: bytes) -> None:
    try:
        file = decode(data)
    except NotTextError:
        return
    assert file.encode(file.text) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\r\nb\n", "a\r\nb\n"),
        (b"\xef\xbb\xbfa\n", "a\n"),
        ("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "# coding: latin-1\nx = 'é'\n"),
        ("é\n".encode("latin-1"), "é\n"),
        ("\ufeffa\n".encode("utf-16-le"), "a\n"),
        (b"", ""),
        (b"no newline", "no newline"),
    ],
)
def test_text_is_read_in_its_own_form(data: bytes, text: str) -> None:
    assert decode(data).text == text


def test_an_edit_keeps_line_ends_and_mark() -> None:
    file = decode(b"\xef\xbb\xbfa\r\nb\r\n")
    assert file.encode("a\nc\n") == b"\xef\xbb\xbfa\r\nc\r\n"


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff" * 8 + b"\1\2\3" * 9, b"x" * 11, POINTER])
def test_what_is_no_text_says_why(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decode(data, max_bytes=10 if data.startswith(b"x") else 1000)


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    file = decode("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    with pytest.raises(NotTextError, match="'€'"):
        file.encode("€")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_umasks_mode_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "new", "text\n")
    finally:
        os.umask(old)
    assert mode_of(tmp_path / "new") == 0o640
    (tmp_path / "new").chmod(0o600)
    atomic_write(tmp_path / "new", b"bytes")
    assert mode_of(tmp_path / "new") == 0o600
    assert (tmp_path / "new").read_bytes() == b"bytes"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_private_file_is_private_whatever_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").touch(mode=0o644)
    atomic_write(tmp_path / "old", "text", private=True)
    assert mode_of(tmp_path / "old") == 0o600


def test_a_link_stays_and_what_it_leads_to_changes(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    atomic_write(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_a_pipe_is_written_to() -> None:
    code = "from pathlib import Path; from clean_room_agent.file_contents import atomic_write; "
    done = subprocess.run(
        [sys.executable, "-c", code + "atomic_write(Path('/dev/stdout'), 'hello')"],
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"hello", done.stderr


def test_a_pipe_that_nobody_reads_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page.html")
    with pytest.raises(UsageError, match=r"cannot write .*page\.html: nobody reads it"):
        atomic_write(tmp_path / "page.html", "text")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("before")
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, bounds[1]))
    try:
        with pytest.raises(UsageError, match=r"cannot write .*plan\.json: File too large") as caught:
            atomic_write(tmp_path / "plan.json", "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
    assert caught.value.hint == "name another place"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert (tmp_path / "plan.json").read_text() == "before"


def test_a_missing_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        atomic_write(tmp_path / "no" / "plan.json", "x")


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="more than 64,000,000 bytes"):
        read_given(tmp_path / "huge")


@pytest.mark.parametrize(
    ("number", "tolerated"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)]
)
def test_a_folder_that_cannot_be_synced_is_no_error_but_a_disk_that_fails_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, *, tolerated: bool
) -> None:
    whole = os.fsync

    def sync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        whole(handle)

    monkeypatch.setattr("os.fsync", sync)
    if tolerated:
        assert not sync_folder(tmp_path)
        atomic_write(tmp_path / "file", "text")
    else:
        with pytest.raises(UsageError, match="Input/output error") as caught:
            atomic_write(tmp_path / "file", "text")
        assert "system's log" in caught.value.hint
    assert (tmp_path / "file").read_text() == "text"


def test_links_in_a_circle_are_no_place_to_write(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(UsageError, match="Too many levels of symbolic links"):
        atomic_write(tmp_path / "a", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
