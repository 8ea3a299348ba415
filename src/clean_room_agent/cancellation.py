"""Ctrl-C, `kill` and a closed terminal: work that can be repeated is interrupted at once, a change in progress is
completed first, and threads are notified, since only the main one receives signals.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.errors import Interrupted

_STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """In the block, processes that this thread runs are killed as soon as `stop` is set, and KeyboardInterrupt is
    raised.
    """
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


def raise_if_stopped() -> None:
    """Raise if this thread should stop.

    Raises:
        KeyboardInterrupt: it should stop.
    """
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def end_with_parent() -> None:
    """From now on, this process of multiprocessing is sent SIGTERM when the one that began it ends, however it ends."""
    from multiprocessing import parent_process  # takes ten milliseconds, and few commands have such processes

    parent = parent_process()
    assert parent is not None, "nothing of multiprocessing"

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


class Interrupts:
    """Holds back Ctrl-C while the main thread makes a change that must not be left half done."""

    def __init__(self) -> None:
        self._shields = 0
        self._asked = 0

    def ask(self) -> None:
        """End the run: now, or when the change in progress is complete. A second call ends it now in any case.

        Raises:
            KeyboardInterrupt: now.
        """
        self._asked += 1
        if not self._shields or self._asked > 1:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shield(self, *, is_last: bool = False) -> Iterator[None]:
        """The body completes before the first Ctrl-C takes effect; shields may be nested. One that arrives in what a run does
        last has nothing left to interrupt, and is ignored.
        """
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._asked and not self._shields and not is_last:
            raise KeyboardInterrupt


@contextlib.contextmanager
def on_interrupt(handle: Callable[[], None]) -> Iterator[None]:
    """Call `handle` for signals that ask the program to stop; ignored signals (nohup) stay ignored."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) not in {signal.SIG_IGN, None}:
                before[number] = signal.signal(number, lambda _number, _frame: handle())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interruptible(task_id: str) -> Iterator[Interrupts]:
    """Pass signals that ask the program to end to the yielded `Interrupts`.

    Raises:
        Interrupted: the block was ended by one.
    """
    interrupts = Interrupts()
    try:
        with on_interrupt(interrupts.ask):
            yield interrupts
    except KeyboardInterrupt as exc:
        hint = f"continue with: cra solve --resume {short_id(task_id)}"
        raise Interrupted("interrupted", hint=hint) from exc
