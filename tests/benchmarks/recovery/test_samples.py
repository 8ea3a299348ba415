"""Divisions of the same answers into attempts and candidates are measured with the same luck."""

import pytest
from benchmarks.recovery.samples import CODERS, DIVISIONS, Outcome, by_chance, measure, page
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT


@pytest.mark.parametrize("division", [(6, 1), (1, 6)])
def test_a_division_draws_no_more_than_its_answers(division: tuple[int, int]) -> None:
    found = measure(0, division, 1)
    assert 1 <= found.answers <= 6
    assert found.tests <= found.answers


def test_the_same_seed_is_the_same_luck() -> None:
    def drawn(seed: int) -> list[str]:
        answer = by_chance(CODERS[0], seed, lambda _: "right")
        return [answer(edit_call()) for _ in range(20)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len({*drawn(1)}) > 1


def edit_call() -> ChatCall:
    prompt = f"{IMPLEMENT.heading}\n"
    return ChatCall(number=0, model="coder:3b", system="", prompt=prompt, schema=None, options={}, body={})


def test_the_table_has_a_row_for_each_coder_and_division() -> None:
    outcome = Outcome(solved=True, answers=2, tokens=100, tests=1)
    found = {(number, division): [outcome] for number in range(len(CODERS)) for division in DIVISIONS}
    text = page(found)
    assert text.count("| 1/1 | 2 | 100 | 1 |") == len(CODERS) * len(DIVISIONS)
