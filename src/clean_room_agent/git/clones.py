"""Clones and their objects, through GitPython. Only mining imports it: the import is slow, and needs the extra `data`.

GitPython passes our whole environment to its processes, so every process is started while that is free of git's
variables.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from clean_room_agent.errors import GitError, UsageError
from clean_room_agent.git.command import FIXED, SAFE
from clean_room_agent.proc import absolute_program, outside_environment


@contextmanager
def _as_for_a_child() -> Iterator[None]:
    """Reduce our own environment to what a child process may get while one is started, with git at an absolute path."""
    before = dict(os.environ)
    kept = {name: value for name, value in outside_environment(before).items() if not name.startswith("GIT_")}
    os.environ.clear()
    os.environ.update(kept | {"GIT_PYTHON_GIT_EXECUTABLE": absolute_program("git", kept)})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


with _as_for_a_child():  # the import looks for git, and runs it
    import git as gitpython

CLONED_BY = "https:file"
"""The transports that a clone may use: no command of ours starts a shell on another machine."""
SETTINGS: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": str(len(SAFE)),
    **{f"GIT_CONFIG_KEY_{at}": setting.partition("=")[0] for at, setting in enumerate(SAFE)},
    **{f"GIT_CONFIG_VALUE_{at}": setting.partition("=")[2] for at, setting in enumerate(SAFE)},
}
UNKNOWN = "could not be resolved"
"""What GitPython says of an object that there is not."""
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0: unknown)."""


class Objects:
    """The objects of one repository, read by one long-running git process. Not thread-safe."""

    def __init__(self, git_dir: Path) -> None:
        """`git_dir` is the folder with the objects: a bare repository, or the `.git` of another."""
        self._git = gitpython.Git(str(git_dir))
        self._git.update_environment(**SETTINGS, **FIXED, GIT_DIR=str(git_dir))
        self.read("HEAD")  # fails here, if at all

    def read(self, name: str) -> bytes | None:
        """The content of the object `name`, which may be `<commit>:<path>`; None if there is no such object."""
        if "\n" in name:
            return None
        try:
            with _as_for_a_child():  # it starts the process, if there is none
                return bytes(self._git.get_object_data(name)[3])
        except (ValueError, OSError) as exc:
            if UNKNOWN not in str(exc):  # git died of a damaged object, or its answer was not understood
                self._git.clear_cache()
            return None

    def list_folder(self, commit: str) -> dict[str, str]:
        """The names of the files at the top of a commit's tree, with their object ids."""
        data = self.read(f"{commit}^{{tree}}") or b""
        entries: dict[str, str] = {}
        while data:
            head, _, rest = data.partition(b"\0")
            mode, _, name = head.partition(b" ")
            if mode.startswith(b"100"):
                entries[os.fsdecode(name)] = rest[:20].hex()
            data = rest[20:]
        return entries

    def close(self) -> None:
        """End the process."""
        self._git.clear_cache()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


WORK = {
    gitpython.RemoteProgress.RECEIVING: "receiving",
    gitpython.RemoteProgress.RESOLVING: "resolving",
    gitpython.RemoteProgress.COUNTING: "counting",
}


def clone(url: str, target: Path, progress: Progress) -> None:
    """Clone the repository at `url` (https, or a path) to `target` as a bare one; a failure leaves nothing behind.

    Raises:
        UsageError: the address is of another kind.
        GitError: git failed.
    """
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = {**SETTINGS, **FIXED, "GIT_ALLOW_PROTOCOL": CLONED_BY}
    try:
        with _as_for_a_child():
            gitpython.Repo.clone_from(
                url,
                part,
                progress=_progress_callback(progress),
                env=environment,
                bare=True,
            ).close()
        part.rename(target)
    except gitpython.UnsafeProtocolError as exc:
        raise UsageError(
            f"{url} is not an address that can be cloned", hint="give an https URL or a path"
        ) from exc
    except gitpython.GitCommandError as exc:
        words = str(exc.stderr).strip()[-600:]
        raise GitError(f"git clone {url}: {words}", hint="clone it by hand, and give the path") from exc
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _progress_callback(progress: Progress) -> Callable[[int, str | float, str | float | None, str], None]:
    """A callback for each line of git's progress."""

    def tell(op_code: int, done: str | float, total: str | float | None, _message: str) -> None:
        doing = WORK.get(op_code & gitpython.RemoteProgress.OP_MASK)
        if doing is not None:
            progress(doing, int(done or 0), int(total or 0))

    return tell
