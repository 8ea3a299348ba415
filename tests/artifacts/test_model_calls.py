from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, Note, model_client
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.artifacts.model_calls import (
    CallCost,
    CallEvent,
    CallFinished,
    CallSite,
    CallStarted,
    CallUnreadable,
)


def test_a_call_is_the_same_whatever_id_its_task_has() -> None:
    first, second = (
        CallSite(pass_id=f"{task}:p1/s1/1", call_type="implement", item="s1", attempt=2)
        for task in ("0" * 32, "f" * 32)
    )
    assert first.identity == second.identity
    assert str(first.identity) == "pass p1/s1/1, prompt implement, item s1, attempt 2"


def test_tokens_of_a_prompt_are_counted_ones_where_the_server_counts() -> None:
    told = CallCost(estimated_tokens=120, prompt_tokens=100, latency_ms=5, timestamp="")
    untold = CallCost(estimated_tokens=120, latency_ms=5, timestamp="")
    nothing = CallCost(estimated_tokens=120, prompt_tokens=0, latency_ms=5, timestamp="")
    assert [cost.read_tokens for cost in (told, untold, nothing)] == [100, 120, 0]


def test_a_call_is_told_with_its_place_in_the_record_once_it_stands_there() -> None:
    told: list[CallEvent] = []
    sink = MemorySink()
    client = model_client(ScriptedTransport(["no colour", '{"name": "blue"}']), sink, watch=told.append)
    client.ask(COLOUR, Note(text="sky"), pass_id="t:p", item="i")
    assert [type(event) for event in told] == [
        CallStarted, CallFinished, CallUnreadable, CallStarted, CallFinished,
    ]  # fmt: skip
    started = [event for event in told if isinstance(event, CallStarted)]
    finished = [event for event in told if isinstance(event, CallFinished)]
    assert [(event.number, event.prompt, event.item) for event in started] == [
        (1, "colour", "i"),
        (2, "colour", "i"),
    ]
    assert (
        [event.call_id for event in finished] == [1, 2] == [number + 1 for number in range(len(sink.calls))]
    )
