"""A pool of forked processes that share one list of tasks (threads would block each other in the parser)."""

import contextlib
import ctypes
import gc
import mmap
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from clean_room_agent.errors import IndexingError

MAX_TASKS = 8_000
"""A pipe holds so many without a reader. If there are more, the worker that takes a task also does every task that
follows it at this distance.
"""
TASK_BYTES = 4
PR_SET_PDEATHSIG = 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 30
"""More than a worker ever frees at once."""
LENGTH_BYTES = 8
NOTE_BYTES = 8192
"""More than the longest path has."""
NOTES: list[tuple[mmap.mmap, int]] = []
"""In a worker: the memory that it shares with its parent, and where its note begins in it."""


def note_reading(path: str) -> None:
    """In a worker, remember which file is read, for the parent to tell if that is this process's end."""
    for memory, start in NOTES:
        data = os.fsencode(path)[: NOTE_BYTES - LENGTH_BYTES]
        memory[start : start + LENGTH_BYTES + len(data)] = len(data).to_bytes(LENGTH_BYTES) + data


class Channel:
    """A worker's end: tasks come in, messages go out, and answers come back."""

    def __init__(self, count: int, tasks: int, inbox: int, outbox: int) -> None:
        self._count = count
        self._tasks, self._inbox, self._outbox = tasks, inbox, outbox

    def tasks(self) -> Iterator[int]:
        """Yield numbers of tasks that no other worker has taken, until there are none."""
        while task := os.read(self._tasks, TASK_BYTES):
            yield from range(int.from_bytes(task), self._count, MAX_TASKS)

    def send(self, message: object) -> None:
        """Send a message to the parent."""
        _write_message(self._outbox, message)

    def wait(self) -> Any:
        """Block until the parent sends a message to all workers, and return it."""
        return _read_message(self._inbox)


class WorkerPool:
    """Forked workers that inherit everything the parent knew. They end with the block, or with the parent.

    Each worker runs `body(channel)` on its own copy of memory; messages are pickled.
    """

    def __init__(self, size: int, *, tasks: int, body: Callable[[Channel], None]) -> None:
        self._children: dict[int, int] = {}
        """Process id by the descriptor of its messages."""
        self._inboxes: list[int] = []
        self._notes = mmap.mmap(-1, size * NOTE_BYTES)
        task_end, task_start = os.pipe()
        os.write(task_start, b"".join(number.to_bytes(TASK_BYTES) for number in range(min(tasks, MAX_TASKS))))
        os.close(task_start)
        for number in range(size):
            self._fork_worker(tasks, task_end, number * NOTE_BYTES, body)
        os.close(task_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for inbox in self._inboxes:
            os.close(inbox)
        for outbox, child in self._children.items():
            if child:
                os.waitpid(child, 0)
            os.close(outbox)

    def kill(self) -> None:
        """Kill the workers; whoever is reading their messages sees the end of the stream."""
        for child in filter(None, self._children.values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def tell(self, message: object) -> None:
        """Send a message to every worker, as the result of its next `wait`; one that has ended does not get it, and `messages`
        says why it ended.
        """
        for inbox in self._inboxes:
            with contextlib.suppress(BrokenPipeError):
                _write_message(inbox, message)

    def messages(self, last: object) -> Iterator[Any]:
        """Yield the workers' messages as they come, until each worker has sent `last`.

        Raises:
            IndexingError: a worker was killed; the message names the file that it was reading.
            Exception: whatever a worker's body raised.
        """
        talking = set(self._children)
        while talking:
            for outbox in select.select(sorted(talking), (), ())[0]:
                try:
                    message = _read_message(outbox)
                except EOFError as exc:
                    raise self._worker_error(outbox) from exc
                if isinstance(message, _Raised):
                    raise message.error
                if message == last:
                    talking.discard(outbox)
                else:
                    yield message

    def _worker_error(self, outbox: int) -> IndexingError:
        """The error for the worker of these messages, which has ended without its last one."""
        place = list(self._children).index(outbox)
        _, status = os.waitpid(self._children[outbox], 0)
        self._children[outbox] = 0
        self._notes.seek(place * NOTE_BYTES)
        path = os.fsdecode(self._notes.read(int.from_bytes(self._notes.read(LENGTH_BYTES))))
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        if code == -signal.SIGKILL:
            hint = "it may have run out of memory: leave large files out with [index] max_file_bytes"
        else:
            hint = "this is a bug in cra; until it is fixed, leave the file out: list it in .git/info/exclude if git does not track it, or set [index] max_file_bytes below its size"
        return IndexingError(
            f"a process that read files {how}" + (f" while it read {path}" if path else ""), hint=hint
        )

    def _fork_worker(self, tasks: int, task_end: int, note: int, body: Callable[[Channel], None]) -> None:
        inbox_end, inbox = os.pipe()
        outbox, outbox_start = os.pipe()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            NOTES[:] = [(self._notes, note)]
            _run_child(parent, tasks, (task_end, inbox_end, outbox_start), body)
        os.close(inbox_end)
        os.close(outbox_start)
        self._inboxes.append(inbox)
        self._children[outbox] = child


class _Raised:
    """What a worker's body raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _run_child(parent: int, tasks: int, ends: tuple[int, int, int], body: Callable[[Channel], None]) -> None:
    """Run the worker's body and exit, without running any of the parent's cleanup."""
    code = 1
    channel = Channel(tasks, *ends)
    try:
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # Ctrl-C reaches the whole group; the parent ends the others
        _die_with(parent)
        _keep_memory()
        _close_all_but(ends)
        gc.disable()
        body(channel)
        code = 0
    except (EOFError, BrokenPipeError):
        code = 2  # the parent is gone
    except Exception as error:  # noqa: BLE001 - it is the parent's to raise
        error.add_note(traceback.format_exc())
        with contextlib.suppress(OSError):
            channel.send(_Raised(_picklable_error(error)))
    finally:
        os._exit(code)


def _picklable_error(error: Exception) -> Exception:
    """The error, or one that says the same where it cannot be sent to the parent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does there
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.__notes__ = error.__notes__
        return told
    return error


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends, however it ends (Linux).

    A broken pipe would be noticed only between two files.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise EOFError


def _keep_memory() -> None:
    """Memory that is freed stays with this process (glibc; mallopt(3)).

    A syntax tree takes megabytes and is gone with its file. Handed back to the system, its pages would have to be made and
    cleared again for the next one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(option, KEPT_BYTES)


def _close_all_but(kept: Sequence[int]) -> None:
    """Close everything else that was inherited from the parent.

    A lock would outlive the parent, and a pipe that the parent reads from would never reach its end while this process
    holds the writing end open.
    """
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _write_message(descriptor: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    view = memoryview(len(data).to_bytes(LENGTH_BYTES) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_message(descriptor: int) -> Any:
    length = int.from_bytes(_read_exactly(descriptor, LENGTH_BYTES))
    return pickle.loads(_read_exactly(descriptor, length))  # noqa: S301 - from our own fork


def _read_exactly(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
