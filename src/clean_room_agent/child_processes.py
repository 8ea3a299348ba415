"""What child processes have in common: their environment outside the sandbox, with absolute paths only; their
output, of which a bounded part is kept; and messages for the user about why one could not run or was killed.

An empty or relative entry of PATH, and of the folders that the loader looks into (`/usr/local/cuda/lib64:` has one), is
the folder in which a child runs: that of a repository, or one that code under test has filled.
"""

import errno
import functools
import os
from collections.abc import Mapping

from clean_room_agent.errors import SYSTEM_FAULTS, CommandError

LOADER = ("LD_", "DYLD_")
"""Prefixes of the variables that tell the loader what to load."""
SHELL_STARTS = frozenset({"BASH_ENV", "ENV"})
"""Variables with files that a shell reads before its command."""
SLACK = 1 << 16
"""Bytes by which the tail may grow before it is trimmed."""
SHOWN = 500
"""Characters of its last output in a message."""


def outside_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child outside the sandbox."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(LOADER) and name not in SHELL_STARTS
    }
    if "PATH" in kept:
        kept["PATH"] = absolute_entries(kept["PATH"])
    return kept


def absolute_entries(path: str) -> str:
    """The absolute entries of a list of folders."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def absolute_program(name: str, environment: Mapping[str, str]) -> str:
    """The absolute path of the program, looked up once; `name` itself if it is a path, or there is no such program."""
    if "/" in name:
        return name
    try:
        return _found(name, absolute_entries(environment.get("PATH", os.defpath)))
    except FileNotFoundError:
        return name


@functools.cache
def _found(name: str, path: str) -> str:
    # As `shutil.which`; but that module loads three compression libraries, and every command begins with a git.
    for folder in path.split(os.pathsep):
        place = os.path.join(folder, name)  # noqa: PTH118 - a text is wanted
        if os.path.isfile(place) and os.access(place, os.X_OK):  # noqa: PTH113
            return place
    raise FileNotFoundError(name)


class Capture:
    """The first and the last half of `bound` bytes of a stream of any length."""

    def __init__(self, bound: int) -> None:
        self.half = max(1, bound // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk of the stream."""
        self.total += len(chunk)
        space = self.half - len(self.head)
        if space > 0:
            self.head += chunk[:space]
            chunk = chunk[space:]
        self.tail += chunk
        if len(self.tail) > 2 * self.half + SLACK:
            del self.tail[: -self.half]

    def data(self) -> bytes:
        """The first and the last part, joined."""
        return bytes(self.head + self.tail[-self.half :])

    def cut(self) -> int:
        """How many bytes were left out between them."""
        return self.total - len(self.data())


def marked(data: bytes, cut: int) -> bytes:
    """A bounded stream with a line that marks where `cut` bytes were left out."""
    if cut == 0:
        return data
    middle = len(data) // 2
    return data[:middle] + b"\n[... %d bytes left out ...]\n" % cut + data[middle:]


class Pieces:
    """Splits a stream of bytes at a separator; the last piece is what follows the last separator, if anything."""

    def __init__(self, separator: bytes) -> None:
        self.separator = separator
        self.whole: list[bytes] = []
        self.open = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk of the stream."""
        *whole, self.open = (self.open + chunk).split(self.separator)
        self.whole.extend(whole)

    def take(self) -> list[bytes]:
        """The complete pieces that were not taken yet."""
        whole, self.whole = self.whole, []
        return whole

    def rest(self) -> list[bytes]:
        """Everything that was not taken yet, once the stream has ended."""
        return [*self.take(), *([self.open] if self.open else [])]


def not_started_command(argv: tuple[str, ...], number: int) -> CommandError:
    """The error for a program that could not be started, with this error number."""
    short = number in {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
    hint = SYSTEM_FAULTS[number][1] if short else f"install {argv[0]}, or put it on PATH"
    return CommandError(f"cannot start {argv[0]}: {os.strerror(number)}", hint=hint, command=argv)


def failed_command(
    argv: tuple[str, ...], how: str, returncode: int, stdout: bytes, stderr: bytes
) -> CommandError:
    """The error for a program that failed; `how` says in which way."""
    words = stderr.decode("utf-8", "replace").strip()[-SHOWN:]
    return CommandError(
        f"{' '.join(argv)[:SHOWN]}: {how}" + (f": {words}" if words else ""),
        command=argv,
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
    )


def inherited_environment(*, without: str) -> dict[str, str]:
    """This program's environment, without the variables whose names begin with `without`."""
    return {name: value for name, value in sorted(os.environ.items()) if not name.startswith(without)}
