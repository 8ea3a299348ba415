import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import SHOUT, Note, model_client
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.errors import Interrupted
from clean_room_agent.llm.transports.forwarding import StoppableTransport


def test_nothing_is_sent_once_it_was_stopped() -> None:
    stops = iter((False, True))
    inner = ScriptedTransport(["x", "y"])
    way = StoppableTransport(inner, lambda: next(stops))
    client = model_client(way, MemorySink())
    assert client.ask(SHOUT, Note(text="sky"), pass_id="t:p").value == "X"
    with pytest.raises(Interrupted):
        client.ask(SHOUT, Note(text="sea"), pass_id="t:p")
    assert len(inner.requests) == 1


def test_what_else_is_asked_is_answered_inside() -> None:
    inner = ScriptedTransport([])
    way = StoppableTransport(inner, lambda: True)
    assert (way.provider, way.live) == (inner.provider, inner.live)
    assert (way.window("m"), way.count("m", "s", "p"), way.digest("m")) == (
        inner.window("m"),
        inner.count("m", "s", "p"),
        inner.digest("m"),
    )
