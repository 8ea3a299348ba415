"""Ctrl-C, `kill` and a closed terminal during a run: it stops at a safe point, and says how to continue."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.errors import Interrupted
from clean_room_agent.orchestrator.interrupts import Interrupts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    """Signals that ask the program to end are heard by what is given.

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
