import threading

import pytest

from clean_room_agent.cancellation import raise_if_stopped, stopped_by


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
