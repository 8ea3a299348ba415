import pytest

from clean_room_agent.orchestrator.interrupts import Interrupts


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
    with interrupts.closing():
        interrupts.ask()
        with pytest.raises(KeyboardInterrupt):
            interrupts.ask()


def test_what_ends_a_run_is_not_followed_by_an_end() -> None:
    interrupts = Interrupts()
    with interrupts.closing():
        interrupts.ask()
    with pytest.raises(ZeroDivisionError), interrupts.closing():
        raise ZeroDivisionError
