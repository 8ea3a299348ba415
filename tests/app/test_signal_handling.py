"""Signals that ask the program to stop."""

import os
import signal

import pytest

from clean_room_agent.app.signal_handling import interruptible, on_interrupt
from clean_room_agent.errors import Interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_handed_on_and_the_handler_of_before_comes_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    told: list[str] = []
    with on_interrupt(lambda: told.append("asked")):
        os.kill(os.getpid(), number)
    assert told == ["asked"]
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    told: list[str] = []
    try:
        with on_interrupt(lambda: told.append("asked")):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert told == []


def test_an_interrupted_run_says_how_to_continue() -> None:
    with pytest.raises(Interrupted) as caught, interruptible("3f2c7a90-0000-4000-8000-000000000000"):
        raise KeyboardInterrupt
    assert caught.value.hint == "continue with: cra solve --resume 3f2c7a90"
