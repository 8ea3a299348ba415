import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.transport import WindowRefusal, dump_logprobs, load_logprobs, prompt_hash

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
    assert WindowRefusal(prompt_tokens=prompt, window=window).left == left


def test_the_hash_tells_system_text_and_prompt_apart() -> None:
    assert prompt_hash("a", "bc") != prompt_hash("ab", "c")
    assert prompt_hash("a", "half \ud83d") == prompt_hash("a", "half \ud83d")
