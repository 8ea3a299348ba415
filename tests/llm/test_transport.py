import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.client.memory_sink import MemorySink
from testing.client.model_client import SHOUT, Note, model_client
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.errors import Interrupted
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.transport import (
    Refusal,
    StoppableTransport,
    dump_logprobs,
    load_logprobs,
    prompt_hash,
)

CHOICES = st.builds(
    TokenChoice,
    token=st.text(max_size=4),
    top=st.lists(
        st.tuples(st.text(max_size=4), st.floats(max_value=0, allow_infinity=False)), max_size=3
    ).map(tuple),
)


@given(st.lists(CHOICES, max_size=4).map(tuple))
def test_probabilities_are_read_as_they_were_kept(choices: tuple[TokenChoice, ...]) -> None:
    assert load_logprobs(dump_logprobs(choices)) == choices


@pytest.mark.parametrize(
    ("prompt", "window", "left"), [(90, 100, 10), (110, 100, 0), (None, 100, 0), (90, None, 0)]
)
def test_a_refusal_leaves_what_the_prompt_does_not_fill(
    prompt: int | None, window: int | None, left: int
) -> None:
    assert Refusal(prompt_tokens=prompt, window=window).left == left


def test_the_hash_tells_system_text_and_prompt_apart() -> None:
    assert prompt_hash("a", "bc") != prompt_hash("ab", "c")
    assert prompt_hash("a", "half \ud83d") == prompt_hash("a", "half \ud83d")


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
