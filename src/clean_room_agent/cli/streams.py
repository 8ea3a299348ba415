"""The three standard streams, whatever the parent process made of them: closed, broken or full, none ends a command.

A closed one is opened on /dev/null, so that no file opened later gets its number and what is printed with it. Output that
cannot be written is dropped, since the work of a command counts although nobody hears of it; the end of the process says so.
"""

import errno
import io
import os
import select
import sys
from typing import IO, Any

STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))
"""By number: the name in `sys`, and how it is opened."""


class Output(io.FileIO):
    """A descriptor for writing that takes everything, and keeps the first error."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write `data`, or drop it."""
        size = memoryview(data).nbytes
        while self.failure is None:
            try:
                written = super().write(data)
            except OSError as exc:
                self.failure = exc
            else:
                if written is not None:
                    return written
                select.select([], [self], [])  # another process made it non-blocking, and it is full
        return size


def open_streams() -> None:
    """Open the closed ones of the standard streams, and let no error of output reach its writer."""
    for number, (_, flags) in enumerate(STREAMS):
        if not _is_open(number):
            _open_null(number, flags)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = _output_stream(1, sys.stdout)
    sys.stderr = _output_stream(2, sys.stderr)


def failure_of(stream: IO[str]) -> OSError | None:
    """Why not all of what was written to a standard stream reached it, so far; None if it did, or nobody reads it."""
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    failure = raw.failure if isinstance(raw, Output) else None
    return None if failure is None or failure.errno == errno.EPIPE else failure


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _open_null(number: int, flags: int) -> None:
    handle = os.open(os.devnull, flags)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    os.set_inheritable(number, True)


def _output_stream(number: int, stream: IO[str] | None) -> io.TextIOWrapper:
    """A stream like `stream`; characters that its encoding lacks are written as escapes."""
    like = (
        stream if isinstance(stream, io.TextIOWrapper) else io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    )
    return io.TextIOWrapper(
        io.BufferedWriter(Output(number, "w", closefd=False)),
        encoding=like.encoding,
        errors="backslashreplace",
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )
