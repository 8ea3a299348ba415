import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.child_processes import (
    SLACK,
    Capture,
    Pieces,
    absolute_entries,
    absolute_program,
    outside_environment,
)

HOSTILE = {
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:",
    "LD_PRELOAD": "./libevil.so",
    "LD_AUDIT": "libevil.so",
    "DYLD_INSERT_LIBRARIES": "x",
    "BASH_ENV": "start.sh",
    "ENV": "start.sh",
}
CHUNKS = st.lists(st.binary(max_size=40), max_size=30)


def plant(folder: Path, name: str, canary: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
    (folder / name).chmod(0o755)


def test_a_child_gets_nothing_that_means_here() -> None:
    given = {**HOSTILE, "PATH": ":/usr/bin:.:bin:/bin:", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    kept = {"PATH": "/usr/bin:/bin", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    assert outside_environment(given) == kept


@pytest.mark.parametrize("path", ["", ":", ".", "bin:./x", "~/bin"])
def test_a_path_of_relative_entries_is_empty(path: str) -> None:
    assert absolute_entries(path) == ""
    assert absolute_program("git", {"PATH": path}) == "git"


def test_a_program_is_looked_up_once(tmp_path: Path) -> None:
    plant(tmp_path / "one", "tool", tmp_path / "canary")
    path = {"PATH": f"{tmp_path}/none:{tmp_path}/one"}
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    plant(tmp_path / "none", "tool", tmp_path / "canary")
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    assert absolute_program("./tool", path) == "./tool"


@pytest.mark.parametrize("contain", [True, False])
@pytest.mark.parametrize("path", [":/usr/bin:/bin", ".:/usr/bin:/bin", "bin:/usr/bin:/bin"])
def test_no_program_of_the_folder_is_run(tmp_path: Path, path: str, *, contain: bool) -> None:
    canary = tmp_path / "canary"
    for folder in (tmp_path, tmp_path / "bin"):
        for name in ("git", "true"):
            plant(folder, name, canary)
    for command in (("git", "--version"), "true; git --version"):
        done = proc.run(command, cwd=tmp_path, env={"PATH": path}, timeout=PATIENCE, contain=contain)
        assert done.stdout.startswith(b"git version")
    assert next(iter(proc.stream(("git", "--version"), cwd=tmp_path, env={"PATH": path})))
    assert not canary.exists()


@pytest.mark.parametrize("contain", [True, False])
@pytest.mark.parametrize("inherited", [True, False])
def test_the_loader_hears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contain: bool, inherited: bool
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    env = None if inherited else dict(os.environ)
    done = proc.run(("env",), cwd=tmp_path, env=env, timeout=PATIENCE, contain=contain)
    seen = {line.partition("=")[0] for line in done.stdout.decode().splitlines()}
    assert seen.isdisjoint(HOSTILE)
    assert b"cannot be preloaded" not in done.stderr


def test_output_within_the_bound_is_whole() -> None:
    capture = Capture(10)
    for chunk in (b"0123", b"4567", b"89"):
        capture.feed(chunk)
    assert (capture.data(), capture.cut()) == (b"0123456789", 0)
    capture.feed(b"ab")
    assert (capture.data(), capture.cut()) == (b"01234789ab"[:5] + b"789ab", 2)


@given(chunks=CHUNKS, bound=st.integers(2, 50))
def test_both_ends_are_kept_and_the_rest_is_counted(chunks: list[bytes], bound: int) -> None:
    capture, whole = Capture(bound), b"".join(chunks)
    for chunk in chunks:
        capture.feed(chunk)
    half = bound // 2
    kept = whole if len(whole) <= 2 * half else whole[:half] + whole[-half:]
    assert capture.data() == kept
    assert capture.cut() == len(whole) - len(kept)


def test_a_long_stream_is_held_in_little_memory() -> None:
    capture = Capture(100)
    for _ in range(100):
        capture.feed(b"x" * 5_000)
        assert len(capture.tail) <= 2 * capture.half + SLACK
    assert capture.cut() == 500_000 - 100


@given(chunks=CHUNKS)
def test_pieces_are_those_of_the_whole_stream(chunks: list[bytes]) -> None:
    pieces, whole, taken = Pieces(b"\0"), b"".join(chunks), []
    for chunk in chunks:
        pieces.feed(chunk)
        taken += pieces.take()
    expected = whole.split(b"\0")
    assert [*taken, *pieces.rest()] == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize(("stream", "open_"), [(b"a\0b", [b"b"]), (b"a\0", [])])
def test_a_piece_without_an_end_is_taken_last(stream: bytes, open_: list[bytes]) -> None:
    pieces = Pieces(b"\0")
    pieces.feed(stream)
    assert pieces.take() == [b"a"]
    assert pieces.rest() == open_
