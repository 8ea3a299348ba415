"""Explains why a program could not run or was killed, in words for the user."""

import os
import sys

from clean_room_agent.errors import CommandError

SHOWN = 500
"""Characters of what it said last."""


def not_started(argv: tuple[str, ...], number: int) -> CommandError:
    """The program could not be started, with this error number."""
    hint = f"install {argv[0]}, or put it on PATH"
    return CommandError(f"cannot start {argv[0]}: {os.strerror(number)}", hint=hint, command=argv)


def failed(argv: tuple[str, ...], how: str, returncode: int, stdout: bytes, stderr: bytes) -> CommandError:
    """The program ran and did not do its work; `how` says in which way."""
    words = stderr.decode("utf-8", "replace").strip()[-SHOWN:]
    return CommandError(
        f"{' '.join(argv)[:SHOWN]}: {how}" + (f": {words}" if words else ""),
        command=argv,
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
    )


def unwatched(argv: tuple[str, ...], stderr: bytes) -> CommandError:
    """The Python that is to watch over the program does not start."""
    words = stderr.decode("utf-8", "replace").strip()[-SHOWN:]
    return CommandError(
        f"cannot start {argv[0]}: the Python that watches over it ({sys.executable}) does not start: {words}",
        hint="it is started without LD_LIBRARY_PATH and the like: use a Python that finds its libraries by itself",
        command=argv,
    )
