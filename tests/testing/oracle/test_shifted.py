"""The biased oracle: always no, and what its probabilities tell."""

import itertools
from collections.abc import Sequence

import pytest
from testing.oracle.shifted import HIGHEST, LOWEST, NEUTRAL, Draw, ShiftedOracle, in_most_pairs, in_order
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.llm.answers import Choice, OneWord
from clean_room_agent.llm.probes import NOTHING, calibrate_choice
from clean_room_agent.retrieval.prompts import PIECE_JUDGMENT, SCOPE_JUDGMENT

COUNT = 300


def call(title: str, item: str) -> ChatCall:
    prompt = f"# Instructions: {title}\n\n===== candidate: {item}\ntext\n===== end\n"
    return ChatCall(number=0, model="m", system="", prompt=prompt, schema=None, options={}, body={})


def verdict(draw: Draw, title: str, item: str, right: str) -> Answer:
    answer = ShiftedOracle(lambda _: right, draw, seed="c-1")(call(title, item))
    assert isinstance(answer, Answer)
    return answer


def shares(draw: Draw, right: str) -> list[float]:
    return [dict(verdict(draw, SCOPE_JUDGMENT.title, f"{n}.py", right).likely)["yes"] for n in range(COUNT)]


def share_in_order(high: Sequence[float], low: Sequence[float]) -> float:
    return sum(one > other for one, other in itertools.product(high, low)) / (len(high) * len(low))


def test_shifted_verdicts_are_all_no_and_in_order() -> None:
    high, low = shares(in_order, "yes"), shares(in_order, "no")
    assert LOWEST <= min(low) <= max(low) < NEUTRAL < min(high) <= max(high) <= HIGHEST
    assert verdict(in_order, SCOPE_JUDGMENT.title, "a.py", "yes").text == "no"


def test_pairs_are_in_order_as_often_as_they_say() -> None:
    high = [
        dict(verdict(in_most_pairs, SCOPE_JUDGMENT.title, f"h{n}", "yes").likely)["yes"] for n in range(COUNT)
    ]
    assert share_in_order(high, shares(in_most_pairs, "no")) == pytest.approx(0.7, abs=0.04)


@pytest.mark.parametrize("draw", [in_order, in_most_pairs])
def test_the_same_is_answered_the_same_way_and_nothing_in_between(draw: Draw) -> None:
    assert shares(draw, "yes") == shares(draw, "yes")
    assert dict(verdict(draw, SCOPE_JUDGMENT.title, NOTHING, "no").likely)["yes"] == NEUTRAL


@pytest.mark.parametrize(("right", "counts"), [("change", True), ("read", True), ("skip", False)])
def test_of_three_words_the_right_one_is_found_beside_what_is_said_about_nothing(
    right: str, counts: bool
) -> None:
    assert isinstance(PIECE_JUDGMENT.answer, OneWord)
    words = PIECE_JUDGMENT.answer.words

    def choice(item: str, right: str) -> Choice:
        likely = dict(verdict(in_order, PIECE_JUDGMENT.title, item, right).likely)
        assert sum(likely.values()) == pytest.approx(1)
        assert max(likely, key=likely.__getitem__) == "skip"
        return Choice(word="skip", shares=tuple((word, likely[word]) for word in words))

    for number in range(COUNT):
        found = calibrate_choice(
            choice(f"a.py :: f{number}", right), choice(NOTHING, "skip"), ("change", "read")
        )
        assert found is not None
        assert (found.score > 0) is counts
        assert not counts or found.word == right


def test_other_answers_are_the_oracles() -> None:
    oracle = ShiftedOracle(lambda _: '{"keep": [1]}', in_order, seed="c-1")
    assert oracle(call("Keep", "a.py")) == '{"keep": [1]}'


def test_a_verdict_about_no_candidate_is_the_oracles_own() -> None:
    asked = ChatCall(
        number=0,
        model="m",
        system="",
        prompt="# Instructions: Less than the task?\n",
        schema=None,
        options={},
        body={},
    )
    assert ShiftedOracle(lambda _: "yes", in_order, seed="c-1")(asked) == "yes"
