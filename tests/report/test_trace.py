import pytest
from tests.report.conftest import LargeRun

from clean_room_agent.errors import UsageError
from clean_room_agent.report.trace import cached_share, choose, context_passes, seconds_between, tokens_of


def test_passes_stand_in_the_order_in_which_they_began_with_what_belongs_to_each(large: LargeRun) -> None:
    orders = [entry.order.sequence_order for entry in large.trace.passes if entry.order is not None]
    assert orders == sorted(orders)
    for entry in large.trace.passes:
        assert all(call.site.pass_id == entry.pass_id for call in entry.calls)
        assert all(row.task_id == entry.pass_id for row in entry.decisions)
    assert large.trace.accepted()
    assert all(entry.is_accepted(attempt) for entry, attempt in large.trace.accepted())


def test_a_place_names_a_pass_a_part_a_step_or_a_call(large: LargeRun) -> None:
    assert choose(large.trace, "") == large.all
    (meta,) = choose(large.trace, "meta_plan").passes
    assert meta.place == "meta_plan"
    step = choose(large.trace, "p1/s1").passes
    assert {entry.order.step_id for entry in step if entry.order} == {"s1"}
    assert set(step) < set(choose(large.trace, "p1").passes)
    call = meta.calls[-1]
    chosen = choose(large.trace, f"call:{call.id}")
    assert (chosen.passes, chosen.calls) == ((meta,), (call,))


@pytest.mark.parametrize("place", ["p9", "p1/s1/9", "call:99999", "call:x"])
def test_what_the_run_does_not_have_is_an_error(large: LargeRun, place: str) -> None:
    with pytest.raises(UsageError):
        choose(large.trace, place)


def test_a_retry_is_shown_the_context_of_the_first_attempt(large: LargeRun) -> None:
    retries = [entry for entry in large.trace.passes if ":retry_1" in entry.pass_id]
    for entry in retries:
        first, second = context_passes(large.trace, entry)
        assert f"{first.pass_id}:retry_1" == second.pass_id == entry.pass_id
    (meta,) = choose(large.trace, "meta_plan").passes
    assert context_passes(large.trace, meta) == (meta,)


def test_tokens_are_those_that_the_server_counted(large: LargeRun) -> None:
    calls = large.all.calls
    counted = sum((call.cost.prompt_tokens or 0) + (call.cost.completion_tokens or 0) for call in calls)
    assert tokens_of(calls) == counted > 0
    assert cached_share(calls) is None


def test_seconds_lie_between_two_times() -> None:
    assert seconds_between("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z") == 90
    assert seconds_between("2026-01-01T00:00:00Z", None) is None
