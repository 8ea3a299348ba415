import pytest

from clean_room_agent.query import signals
from clean_room_agent.query.history import Vote
from clean_room_agent.query.signals import Signal

PATHS = {1: "a.py", 2: "b.py", 3: "c.py"}


def vote(weight: float, source: int) -> Vote:
    made = Vote()
    made.add(weight, source)
    return made


def test_of_a_relative_signal_the_greatest_value_counts_in_full() -> None:
    signal = signals.relative("x", {1: 4.0, 2: 1.0}, str)
    assert [signal.share(file_id) for file_id in PATHS] == [1.0, 0.25, 0.0]


def test_a_signal_without_evidence_gives_no_shares() -> None:
    assert signals.relative("x", {}, str).share(1) == 0.0


def test_a_name_counts_what_it_says_and_is_quoted_in_the_reason() -> None:
    signal = signals.named("name", {1: (0.5, "cart")}, "the task says {!r}")
    assert (signal.share(1), signal.explain(1)) == (0.5, "the task says 'cart'")


def test_co_change_names_the_file_that_it_changed_together_with() -> None:
    signal = signals.by_co_change(PATHS, {2: vote(0.2, 1), 3: vote(0.1, 1)})
    assert (signal.share(2), signal.share(3)) == (1.0, 0.5)
    assert signal.explain(3) == "often changed together with a.py"


def test_the_name_that_a_file_defines_is_named() -> None:
    signal = signals.by_symbols({1: (1.5, "Cart")})
    assert (signal.values, signal.explain(1)) == ({1: 1.5}, "defines Cart, which the task names")


def test_votes_add_up_and_the_strongest_is_the_source() -> None:
    votes = vote(0.5, 7)
    votes.add(0.75, 8)
    votes.add(0.25, 9)
    assert (votes.weight, votes.source, votes.count) == (1.5, 8, 3)


@pytest.mark.parametrize("top", [1.0, 2.0])
def test_a_share_is_a_part_of_the_value_that_counts_in_full(top: float) -> None:
    assert Signal(name="x", values={1: 1.0}, top=top, explain=str).share(1) == 1 / top
