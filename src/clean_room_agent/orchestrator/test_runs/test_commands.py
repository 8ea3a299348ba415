"""What a test command runs in: its environment, and what the guard in its processes saw."""

import contextlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.folders import remove_tree
from clean_room_agent.languages.shell_words import ASSIGNMENT, simple_commands
from clean_room_agent.languages.test_runner import (
    MAX_BYTES,
    GuardReader,
    ReportRequest,
    TooMuchError,
    guard_folder,
)
from clean_room_agent.languages.test_runners import TEST_RUNNERS

SETS_PATH = re.compile(r"(?<![\w$.-])PYTHONPATH=")
GUARD = Path(__file__).parent / "guard"
"""The folder of what the processes load, mounted read-only for them."""
FOLDER_VARIABLE = "CRA_TEST_REPORTS"
"""The variable that names the folder for what the guard saw."""
TOP_VARIABLE = "CRA_TEST_TOP"
"""The variable that names the tree."""
LEFT_OUT = "left-out.json"
TREE_VARIABLE = "CRA_TEST_TREE"
"""The variable that names the tree, if what the tests depend on is to be recorded."""
OBSERVED_VARIABLE = "CRA_TEST_OBSERVED"
"""The variable that says what is recorded of the functions that run (`guard/cra_observe.py`), if anything is."""
SOURCE_FOLDERS = ("src", "lib")
VENV_FOLDERS = (".venv", "venv")
MAX_PATH_FILES = 200
MAX_PATH_BYTES = 64 * 1024
"""Limit for one `.pth` file."""
DROPPED = ("GIT_", "CRA_TEST_", "PYTEST_XDIST_", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")
"""Prefixes of variables that are dropped: git's own, and those of a pytest that this program may be running under."""


def program_of(command: str) -> str:
    """The program that the command starts first, as far as its text says; "" if the shell has to find it out."""
    for words, _ in simple_commands(command):
        program = next((word.text for word in words if not ASSIGNMENT.match(word.text)), "")
        if program:
            return "" if set(program) & set("$`~*?[{<>") else program
    return ""


class Watched(Struct, frozen=True, kw_only=True):
    """What the guard saw of the runners that a command started."""

    ended: bool | None = None
    """Whether each ended by itself; None if none was seen to start."""
    replaced: tuple[tuple[str, str], ...] = ()
    """(function of the runner, file of its replacement), sorted."""


def clear_guard_folder(report: Path, left_out: Collection[str] = ()) -> None:
    """Remove what an earlier command left, and create the folder; `left_out` are tests and files, in the names of
    Python's runners, that the next command does not run.
    """
    folder = guard_folder(report)
    remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if left_out:
        safe_open.write_bytes(folder, LEFT_OUT, json.dumps(sorted(left_out)).encode())


def read_watched(report: Path) -> Watched:
    """What the guard saw: whether the runners in Python ended by themselves, and what was replaced in them and in Node."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        started = reader.names("python-*.started")
        ends = [_read_end(reader, f"{name.removesuffix('.started')}.ended") for name in started]
        seen = [_read_end(reader, name) for name in reader.names("*.replaced")]
    except TooMuchError:
        return Watched(ended=False)
    replaced = {pair for end in (*ends, *seen) if end is not None for pair in end}
    ended = all(end is not None for end in ends) if started else None
    return Watched(ended=ended, replaced=tuple(sorted(replaced)))


def merge_watched(seen: Iterable[Watched]) -> Watched:
    """What was seen of several runs of one command."""
    runs = tuple(seen)
    ends = [one.ended for one in runs if one.ended is not None]
    replaced = {pair for one in runs for pair in one.replaced}
    return Watched(ended=all(ends) if ends else None, replaced=tuple(sorted(replaced)))


def _read_end(reader: GuardReader, name: str) -> list[tuple[str, str]] | None:
    """What a runner wrote at its end; None if there is nothing readable."""
    try:
        pairs = json.loads(reader.read(name))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(pairs, list):
        return None
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]


def may_wait(command: str, root: Path) -> bool:
    """Whether the command, run in `root`, may start a runner that waits for changes unless the variable CI is set. With it, some
    of Python's tests are skipped, and their differences are printed in full.
    """
    return any(runner.may_wait(command, root) for runner in TEST_RUNNERS)


def test_environment(
    inherited: Mapping[str, str],
    worktree: Path,
    repo_top: Path,
    report: Path,
    *,
    command: str = "",  # noqa: PT028 - no test
    package: str = "",  # noqa: PT028
    traced: bool = False,  # noqa: PT028
    observed: str = "",  # noqa: PT028
    once: bool = False,  # noqa: PT028
) -> dict[str, str]:
    """The environment for tests in `worktree`, a copy of `repo_top`, made from `inherited`.

    PYTHONPATH has the guard, then the worktree's import roots first; the runners that `command` may start, if need be by
    `package` (the package.json's text), are asked to leave their results at `report` or beside it; `traced` has what the tests depend
    on recorded, `observed` (JSON) the functions that they run; PATH and VIRTUAL_ENV that point into the user's tree point into the
    worktree where the same is there; no bytecode is written (a retry within a second could be taken for the attempt before it);
    hashes of strings are the same in each run unless the user set otherwise, so that messages are; with `once`, CI is set
    likewise, so that no runner waits for changes.
    """
    env = {name: value for name, value in inherited.items() if not name.startswith(DROPPED)}
    roots = import_roots(inherited, worktree, repo_top)
    others = [entry for entry in env.get("PYTHONPATH", "").split(":") if entry]
    env["PYTHONPATH"] = ":".join(dict.fromkeys([str(GUARD), *map(str, roots), *others]))
    env[FOLDER_VARIABLE] = str(guard_folder(report))
    env[TOP_VARIABLE] = str(worktree)
    if traced:
        env[TREE_VARIABLE] = str(worktree)
    if observed:
        env[OBSERVED_VARIABLE] = observed
    request = ReportRequest(command=command, package=package, report=report, guard=GUARD)
    for runner in TEST_RUNNERS:
        env.update(runner.environment(env, request))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.setdefault("PYTHONHASHSEED", "0")
    if once:
        env.setdefault("CI", "1")
    for name in env.keys() & {"PATH", "VIRTUAL_ENV"}:
        entries = env[name].split(":")
        env[name] = ":".join(_path_in_worktree(entry, worktree, repo_top) for entry in entries)
    return env


def with_guard(command: str) -> str:
    """The command with the guard's folder first wherever it sets PYTHONPATH itself. Without that, its Python does not load the
    guard, and of its tests no more is known than their report says.
    """
    return SETS_PATH.sub(lambda found: f"{found[0]}{shlex.quote(str(GUARD))}:", command)


def import_roots(inherited: Mapping[str, str], worktree: Path, repo_top: Path) -> tuple[Path, ...]:
    """The folders of the worktree that imports start from: `src` and `lib` if they contain Python, the top, and
    whatever the user's own PYTHONPATH and editable installs name inside `repo_top`. In that order, without duplicates.
    """
    usual = [worktree / name for name in SOURCE_FOLDERS if _holds_python(worktree / name)]
    named = [
        moved
        for entry in (*inherited.get("PYTHONPATH", "").split(":"), *_pth_folders(inherited, repo_top))
        if entry and (moved := _path_in_worktree(entry, worktree, repo_top)) != entry
    ]
    return tuple(Path(entry) for entry in dict.fromkeys([*map(str, usual), str(worktree), *named]))


def _pth_folders(inherited: Mapping[str, str], repo_top: Path) -> Iterator[str]:
    """The folders that `.pth` files of the active or an in-tree virtual environment add, in the order of the files."""
    active = inherited.get("VIRTUAL_ENV", "")
    homes = [Path(active)] if active else []
    homes.extend(repo_top / name for name in VENV_FOLDERS)
    for home in homes:
        for file in sorted(home.glob("lib/python3*/site-packages/*.pth"))[:MAX_PATH_FILES]:
            # A repository can bring such a folder, and a link to a device in it.
            with contextlib.suppress(OSError):
                text = safe_open.read_bytes(file.parent, file.name, max_bytes=MAX_PATH_BYTES)
                for line in text.decode("utf-8", "replace").splitlines():
                    if line.startswith("/"):
                        yield line.rstrip()


def _path_in_worktree(entry: str, worktree: Path, repo_top: Path) -> str:
    """The same place in the worktree, if `entry` is in the user's tree and exists in the worktree; else `entry`."""
    for top in (repo_top, repo_top.resolve()):
        if Path(entry).is_relative_to(top):
            moved = worktree / Path(entry).relative_to(top)
            return str(moved) if moved.exists() else entry
    return entry


def _holds_python(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py")) or any(folder.glob("*/*.py"))
