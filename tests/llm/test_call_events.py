from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, Note, model_client
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.llm.call_events import CallEvent, CallFinished, CallStarted, CallUnreadable


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
