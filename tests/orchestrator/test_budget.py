from concurrent.futures import ThreadPoolExecutor

from clean_room_agent.orchestrator.budget import Meter


def test_calls_from_many_threads_are_all_counted() -> None:
    meter = Meter()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(100):
            pool.submit(meter.add, prompt_tokens=3, completion_tokens=1, latency_ms=2, window=10)
    spent = meter.read()
    assert (spent.calls, spent.tokens, spent.latency_ms) == (100, 400, 200)


def test_the_fullest_prompt_is_by_share_of_its_window_and_taken_once() -> None:
    meter = Meter()
    meter.add(prompt_tokens=50, completion_tokens=0, latency_ms=0, window=100)
    meter.add(prompt_tokens=90, completion_tokens=0, latency_ms=0, window=1000)
    meter.add(prompt_tokens=0, completion_tokens=0, latency_ms=0, window=0)
    assert meter.take_fullest() == (50, 100)
    assert meter.take_fullest() == (0, 0)


def test_a_reading_less_an_earlier_one_is_what_came_between() -> None:
    meter = Meter()
    meter.add(prompt_tokens=5, completion_tokens=1, latency_ms=9, window=10)
    before = meter.read()
    meter.add(prompt_tokens=7, completion_tokens=2, latency_ms=4, window=10)
    since = meter.read().since(before)
    assert (since.calls, since.prompt_tokens, since.completion_tokens, since.latency_ms) == (1, 7, 2, 4)
