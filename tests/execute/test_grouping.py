import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.plans import PlanVerdict
from clean_room_agent.execute.grouping import at_most, groups, needs_of
from clean_room_agent.execute.plan_validation import in_order


def said(item: str, *, yes: bool = True, call: int | None = 1, clearness: float | None = None) -> PlanVerdict:
    return PlanVerdict(
        question="part_dependency", item=item, yes=yes, reason="", call_id=call, calibrated=clearness
    )


@pytest.mark.parametrize(
    ("count", "together", "found"),
    [
        (0, [], ()),
        (3, [], ((0,), (1,), (2,))),
        (4, [(0, 2), (2, 3)], ((0, 2, 3), (1,))),
        (4, [(3, 1), (0, 2), (2, 3)], ((0, 1, 2, 3),)),
    ],
)
def test_what_is_together_by_way_of_others_is_one_group(
    count: int, together: list[tuple[int, int]], found: tuple[tuple[int, ...], ...]
) -> None:
    assert groups(count, together) == found


def test_of_too_many_groups_the_last_are_one() -> None:
    assert at_most(((0,), (1, 3), (2,)), 2) == ((0,), (1, 2, 3))
    assert at_most(((0,), (1,)), 2) == ((0,), (1,))


def test_a_need_that_would_close_a_circle_is_left_out_and_noted() -> None:
    needs, notes = needs_of(("a", "b", "c"), [said("a b"), said("b c"), said("c a")])
    assert needs == {"a": ("b",), "b": ("c",), "c": ()}
    assert notes == ("c does not wait for a: a needs c already, and they cannot both come first",)


def test_of_a_circle_what_was_decided_without_a_model_stays_then_what_was_said_most_clearly() -> None:
    needs, _ = needs_of(("a", "b"), [said("a b", clearness=2.0), said("b a", call=None)])
    assert needs == {"a": (), "b": ("a",)}
    needs, _ = needs_of(("a", "b"), [said("a b", clearness=0.2), said("b a", clearness=0.9)])
    assert needs == {"a": (), "b": ("a",)}


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.booleans()), max_size=25))
def test_whatever_is_said_there_is_an_order(pairs: list[tuple[str, str, bool]]) -> None:
    verdicts = [said(f"{one} {other}", yes=yes) for one, other, yes in pairs if one != other]
    needs, _ = needs_of(tuple("abcde"), verdicts)
    assert sorted(in_order(needs)) == list("abcde")
