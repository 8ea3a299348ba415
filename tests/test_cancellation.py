"""Signals that ask the program to stop."""

import os
import signal
import threading

import pytest

from clean_room_agent.cancellation import (
    Interrupts,
    interruptible,
    on_interrupt,
    raise_if_stopped,
    stopped_by,
)
from clean_room_agent.errors import Interrupted


def test_a_thread_goes_on_until_it_is_told_to_stop() -> None:
    stop = threading.Event()
    with stopped_by(stop):
        raise_if_stopped()
        stop.set()
        with pytest.raises(KeyboardInterrupt):
            raise_if_stopped()
    raise_if_stopped()


def test_an_inner_block_has_an_end_of_its_own() -> None:
    outer, inner = threading.Event(), threading.Event()
    outer.set()
    with stopped_by(outer):
        with stopped_by(inner):
            raise_if_stopped()
        with pytest.raises(KeyboardInterrupt):
            raise_if_stopped()


def test_other_threads_are_not_stopped() -> None:
    stop = threading.Event()
    stop.set()
    ended: list[str] = []

    def work() -> None:
        raise_if_stopped()
        ended.append("by itself")

    with stopped_by(stop):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert ended == ["by itself"]


def test_what_can_be_done_again_is_broken_off_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        Interrupts().ask()


def test_a_change_is_finished_first_and_then_the_run_ends() -> None:
    interrupts, done = Interrupts(), []

    def change() -> None:
        with interrupts.shield():
            with interrupts.shield():
                interrupts.ask()
            done.append("inner")

    with pytest.raises(KeyboardInterrupt):
        change()
    assert done == ["inner"]


def test_asked_twice_a_change_is_broken_off_too() -> None:
    interrupts = Interrupts()
    with interrupts.shield(is_last=True):
        interrupts.ask()
        with pytest.raises(KeyboardInterrupt):
            interrupts.ask()


def test_what_ends_a_run_is_not_followed_by_an_end() -> None:
    interrupts = Interrupts()
    with interrupts.shield(is_last=True):
        interrupts.ask()
    with pytest.raises(ZeroDivisionError), interrupts.shield(is_last=True):
        raise ZeroDivisionError


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
