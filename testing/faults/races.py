"""Races for a path: another process swaps a folder and files for links to the outside, as fast as it can, while ours
reads, writes, copies and looks through them. Found is every secret that was read, and all that came to stand outside.
"""

import contextlib
import ctypes
import functools
import hashlib
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.errors import CommandError, RepositoryError
from clean_room_agent.indexer.extract import FileFacts, extract
from clean_room_agent.indexer.resolution import read_config
from clean_room_agent.orchestrator.testing.ignored_folders import copy_included, prepare_links
from clean_room_agent.orchestrator.testing.python_reports import read_report
from clean_room_agent.retrieval.stage_source import ContextFiles, FileText
from testing.faults.figures import Effort, Figure

TIMES: dict[Effort, int] = {"short": 2_000, "full": 100_000}
CONTROLS = 20_000
"""At most so many tries of a reader that looks first and opens afterwards; it stops at the first that is lost."""
SECRET = b"SECRET = 'outside'\n"
INSIDE = b"inside = 1\n"
FILES = ("file.py", "plain.py")
AT_FDCWD = -100
RENAME_EXCHANGE = 2


class Scene(Struct, frozen=True, kw_only=True):
    """`top/dir` and `top/plain.py` are real at one moment, and links to `outside` at the next."""

    top: Path
    outside: Path
    safe: Path
    """A folder with the same names that nobody swaps."""


Race = Callable[[Scene], bool]
"""One try; whether it was lost."""


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """The races that were lost, and a reader that can lose them, to show that they were run."""
    times = TIMES[effort]
    scene = make_scene(work / "scene")
    try:
        with swapping(scene):
            lost = sum(race(scene) for _, race in zip(range(times), _in_turn(), strict=False))
            control = next((number for number in range(1, CONTROLS + 1) if _check_first(scene)), 0)
    finally:
        shutil.rmtree(scene.top.parent)
    return (
        Figure(
            name="races for a path: escapes", tried=times, found=lost, target="0 in 100,000", met=not lost
        ),
        Figure(
            name="the same races, looked at before opening by name (a control, to be lost)",
            tried=control or CONTROLS,
            found=int(control > 0),
            target="1",
            met=control > 0,
        ),
    )


def make_scene(folder: Path) -> Scene:
    """The folders, with everything in its place."""
    scene = Scene(top=folder / "top", outside=folder / "outside", safe=folder / "safe")
    for place, data in ((scene.top / "dir", INSIDE), (scene.outside, SECRET), (scene.safe / "dir", INSIDE)):
        place.mkdir(parents=True)
        for name in FILES:
            (place / name).write_bytes(data)
    (scene.top / "plain.py").write_bytes(INSIDE)
    (scene.safe / "dir/linked").mkdir()
    (scene.top / "swap_dir").symlink_to(scene.outside)
    (scene.top / "swap_plain").symlink_to(scene.outside / "plain.py")
    return scene


@contextlib.contextmanager
def swapping(scene: Scene) -> Iterator[None]:
    """Meanwhile, another process swaps."""
    context = multiprocessing.get_context("spawn")
    started, stop = context.Event(), context.Event()
    process = context.Process(target=_swap, args=(scene.top, started, stop), daemon=True)
    process.start()
    started.wait(timeout=60)
    try:
        yield
    finally:
        stop.set()
        process.join(timeout=60)


def races() -> tuple[Race, ...]:
    """All ways in which this program comes to a path that others named."""
    by_name = tuple(
        functools.partial(_read, opening=opening, path=path)
        for opening in (safe_open.open_by_kernel, safe_open.open_by_names)
        for path in ("dir/file.py", "plain.py")
    )
    return (
        *by_name,
        _is_file,
        _write,
        _copy_in,
        _copy_out,
        _bring_link,
        _bring_copy,
        _show,
        _index,
        _configure,
        _report,
    )


def _in_turn() -> Iterator[Race]:
    while True:
        # Copying a folder starts a process: a hundredth of the tries.
        for number in range(100):
            yield from (race for race in races() if race is not _bring_copy or number == 0)


def _read(scene: Scene, *, opening: Callable[[int, str, int], int], path: str) -> bool:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        top = os.open(scene.top, os.O_RDONLY)
        stack.callback(os.close, top)
        handle = opening(top, path, safe_open.READ)
        stack.callback(os.close, handle)
        return os.read(handle, 100) == SECRET
    return False


def _is_file(scene: Scene) -> bool:
    with contextlib.suppress(OSError):
        return safe_open.status(scene.top, "dir/file.py").st_ino == (scene.outside / "file.py").stat().st_ino
    return False


def _write(scene: Scene) -> bool:
    with contextlib.suppress(OSError):
        safe_open.write_bytes(scene.top, "dir/new.py", b"ours")
    with contextlib.suppress(OSError):
        safe_open.write_bytes(scene.top, "dir/file.py", INSIDE)
    return _outside_changed(scene)


def _copy_in(scene: Scene) -> bool:
    copy_included(scene.top, scene.safe, ("dir/file.py", "dir/plain.py"))
    return _outside_changed(scene)


def _copy_out(scene: Scene) -> bool:
    copy_included(scene.safe, scene.top, ("dir/file.py", "plain.py"))
    return any(
        (scene.safe / path).read_bytes() == SECRET
        for path in ("dir/file.py", "plain.py")
        if (scene.safe / path).exists()
    )


def _bring_link(scene: Scene) -> bool:
    with contextlib.suppress(CommandError):  # what was looked at is another thing when it is copied
        prepare_links(scene.top, scene.safe, ("dir/linked",), how="link")
    for folder in ("dir", "swap_dir"):
        with contextlib.suppress(OSError):
            (scene.top / folder / "linked").unlink()
    return _outside_changed(scene)


def _bring_copy(scene: Scene) -> bool:
    with contextlib.suppress(CommandError):
        prepare_links(scene.top, scene.safe, ("dir/linked",), how="copy")
    lost = _outside_changed(scene)
    for folder in ("dir", "swap_dir"):
        with contextlib.suppress(OSError):
            (scene.top / folder / "linked").rmdir()
    return lost


def _show(scene: Scene) -> bool:
    wanted = hashlib.sha256(SECRET).hexdigest()
    with contextlib.suppress(RepositoryError):  # most often it is another file than that which was indexed
        return isinstance(ContextFiles(scene.top).read("dir/file.py", wanted), FileText)
    return False


def _index(scene: Scene) -> bool:
    facts = extract(scene.top, "dir/file.py", max_bytes=1000)
    return isinstance(facts, FileFacts) and facts.file.content_hash == hashlib.sha256(SECRET).hexdigest()


def _configure(scene: Scene) -> bool:
    return read_config(scene.top, "dir/file.py") == SECRET.decode()


def _report(scene: Scene) -> bool:
    reading = read_report(scene.top / "plain.py", lambda _: False)
    return bool(reading.report.outcomes)


def _check_first(scene: Scene) -> bool:
    """A reader that looks first whether the folder is a link: what this program must not do."""
    with contextlib.suppress(OSError):
        folder = scene.top / "dir"
        return not folder.is_symlink() and (folder / "file.py").read_bytes() == SECRET
    return False


def _outside_changed(scene: Scene) -> bool:
    there = {path.name: path.read_bytes() for path in scene.outside.iterdir()}
    return there != dict.fromkeys(FILES, SECRET)


def _swap(top: Path, started: Event, stop: Event) -> None:
    """Until told to stop: each pair of names means the other's file."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    pairs = [
        (os.fsencode(top / name), os.fsencode(top / link))
        for name, link in (("dir", "swap_dir"), ("plain.py", "swap_plain"))
    ]
    while not stop.is_set():
        for _ in range(200):
            for name, link in pairs:
                if exchange(AT_FDCWD, name, AT_FDCWD, link, RENAME_EXCHANGE) != 0:
                    raise OSError(ctypes.get_errno(), "cannot exchange two names here", os.fsdecode(name))
        started.set()
