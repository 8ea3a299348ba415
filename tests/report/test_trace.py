from typing import Any

import pytest
from msgspec.structs import replace
from tests.report.conftest import Solved

from clean_room_agent.artifacts.model_calls import AnswerReading, CallReading, CallSummary
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.trace import (
    cached_share,
    choose,
    context_passes,
    ended_words,
    seconds_between,
    tokens_of,
)


def test_passes_are_in_the_order_in_which_they_began_with_what_belongs_to_each(solved: Solved) -> None:
    orders = [entry.order.sequence_order for entry in solved.trace.passes if entry.order is not None]
    assert orders == sorted(orders)
    for entry in solved.trace.passes:
        assert all(call.site.pass_id == entry.pass_id for call in entry.calls)
        assert all(row.task_id == entry.pass_id for row in entry.decisions)
    assert [entry.place for entry, _ in solved.trace.accepted()] == ["split/s1/2", "split/s2/1"]


def test_a_place_names_a_pass_a_part_a_step_or_a_call(solved: Solved) -> None:
    def places(place: str) -> list[str]:
        return [entry.place for entry in choose(solved.trace, place).passes]

    assert choose(solved.trace, "") == solved.trace
    assert places("meta_plan") == ["meta_plan"]
    assert places("split/s1") == ["split/s1/1", "split/s1/2", "adjust:split:after_s1"]
    assert set(places("split/s1")) < set(places("split"))
    judged = next(
        row.judgment.call_id
        for entry in solved.trace.passes
        for row in entry.decisions
        if row.judgment.call_id is not None
    )
    (entry,) = choose(solved.trace, f"call:{judged}").passes
    assert [call.id for call in entry.calls] == [judged]
    assert {row.judgment.call_id for row in entry.decisions} == {judged}


def test_test_runs_of_the_run_itself_are_only_in_all_of_it(solved: Solved) -> None:
    assert {row.kind for row in choose(solved.trace, "split").tests} == {"attempt"}
    assert {row.kind for row in solved.trace.tests} >= {"baseline", "attempt", "final"}


@pytest.mark.parametrize("place", ["p9", "split/s1/9", "call:99999", "call:x"])
def test_what_the_run_does_not_have_is_an_error(solved: Solved, place: str) -> None:
    with pytest.raises(UsageError):
        choose(solved.trace, place)


def test_a_retry_is_shown_the_context_of_the_first_attempt(solved: Solved) -> None:
    (first, second) = choose(solved.trace, "split/s1").passes[:2]
    assert context_passes(solved.trace, second) == (first, second)
    (meta,) = choose(solved.trace, "meta_plan").passes
    assert context_passes(solved.trace, meta) == (meta,)


def test_a_task_without_a_run_is_its_pass(solved: Solved) -> None:
    alone = replace(solved.trace, run=None)
    assert (alone.command, alone.status) == ("retrieve", "complete")
    assert replace(alone, passes=()).status == "no pass is recorded"


def test_tokens_are_those_that_the_server_counted(solved: Solved) -> None:
    calls = solved.trace.calls
    counted = sum((call.cost.prompt_tokens or 0) + (call.cost.completion_tokens or 0) for call in calls)
    assert tokens_of(calls) == counted > 0
    assert cached_share(calls) is None


def test_the_fullest_prompt_leaves_least_of_its_window_and_probes_do_not_count(solved: Solved) -> None:
    (entry, *_) = choose(solved.trace, "meta_plan").passes
    call = entry.calls[0]
    calls = tuple(
        replace(
            call,
            cost=replace(call.cost, prompt_tokens=used),
            limits=replace(call.limits, window=window),
            site=replace(call.site, call_type=name),
        )
        for used, window, name in ((50, 100, "x"), (90, 1000, "x"), (999, 10, PROBE_NAME))
    )
    assert replace(entry, calls=calls).fullest == (50, 100)
    assert replace(entry, calls=()).fullest == (0, 0)


def test_how_a_call_ended_is_said_in_a_few_words(solved: Solved) -> None:
    call = solved.trace.calls[0]

    def ended(read: CallReading | None = None, **ending: Any) -> CallSummary:
        return replace(call, ending=replace(call.ending, **ending), read=read)

    unreadable = CallReading(reading=AnswerReading.UNREADABLE, fault="no JSON")
    assert ended_words(ended(unreadable)) == "stop, unreadable: no JSON"
    assert ended_words(ended(finish="error:ServerFailed", error="gone")) == "ServerFailed, gone"


def test_seconds_are_between_two_times() -> None:
    assert seconds_between("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z") == 90
    assert seconds_between("2026-01-01T00:00:00Z", None) is None
