"""Where failed tasks are lost: exactly what the record was seeded with."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from testing.seeded_record import CLASSIFIER, Seeded
from tests.training.conftest import COUNTS

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.connection import read_record
from clean_room_agent.training.credit import Waterfall, waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI


@pytest.fixture
def logs(seeded: Seeded) -> Iterator[LogAnalysisAPI]:
    with read_record(seeded.top) as conn:
        yield LogAnalysisAPI(conn)


@pytest.fixture
def waterfall(logs: LogAnalysisAPI) -> Waterfall:
    return waterfall_of(logs.tasks())


def test_the_record_is_large(seeded: Seeded) -> None:
    assert seeded.calls >= 2000


def test_each_failed_task_is_charged_to_the_stage_it_was_lost_at(
    waterfall: Waterfall, seeded: Seeded
) -> None:
    assert waterfall.by_stage == {
        "retrieval": COUNTS["retrieval"] + COUNTS["rank"],
        "scope": COUNTS["scope"],
        "precision": COUNTS["precision"],
        "budget": COUNTS["budget"],
        "planning": COUNTS["meta_plan"] + COUNTS["part_plan"],
        "format": COUNTS["format"],
        "implement": COUNTS["implement"],
    }
    assert waterfall.unattributed == {
        "infrastructure": COUNTS["infrastructure"],
        "no accepted change is known": COUNTS["unknown"],
    }
    assert (waterfall.tasks, waterfall.solved) == (seeded.tasks, sum(COUNTS.values()) - COUNTS["unknown"])


def test_an_unproven_task_is_neither_solved_nor_charged(logs: LogAnalysisAPI) -> None:
    solved = next(task for task in logs.tasks() if task.solved)
    task = replace(solved, run=replace(solved.run, status=RunStatus.UNPROVEN))
    found = waterfall_of([task])
    assert (found.tasks, found.solved, found.unproven, found.charges) == (1, 0, 1, ())
    assert found.unattributed == {"no test shows whether it is done": 1}


def test_each_charge_names_the_prompt_that_erred(waterfall: Waterfall) -> None:
    assert waterfall.by_prompt == {
        "scope_judgment": COUNTS["scope"],
        "implement": COUNTS["format"] + COUNTS["implement"],
        "piece_judgment": COUNTS["precision"],
        "meta_plan": COUNTS["meta_plan"],
        "part_plan": COUNTS["part_plan"],
    }


def test_a_charge_names_the_very_calls(waterfall: Waterfall, logs: LogAnalysisAPI) -> None:
    for charge in waterfall.charges:
        if charge.prompt in {"scope_judgment", "piece_judgment", "implement"}:
            calls = {call.call.id: call.call for call in logs.calls(charge.task_id, charge.prompt)}
            assert len(charge.call_ids) == 1
            assert charge.call_ids[0] in calls
            if charge.prompt == "scope_judgment":
                assert calls[charge.call_ids[0]].answer.response == "no"


def test_headroom_counts_what_no_later_stage_is_known_to_break(waterfall: Waterfall) -> None:
    headroom = waterfall.headroom
    failed = len(waterfall.charges)
    assert headroom["implement"].at_most == failed
    assert headroom["implement"].expected == pytest.approx(failed)
    # With the right files in scope, all is open that was lost at scope or before; what was lost later is known to fail.
    early = COUNTS["retrieval"] + COUNTS["rank"] + COUNTS["scope"]
    assert headroom["scope"].at_most == early
    assert 0 < headroom["scope"].expected < early
    assert headroom["retrieval"].at_most == COUNTS["retrieval"] + COUNTS["rank"]


def test_verdicts_are_compared_with_what_was_changed(logs: LogAnalysisAPI, seeded: Seeded) -> None:
    stats = {each.sums.prompt: each for each in logs.prompt_stats()}
    scope = stats["scope_judgment"]
    assert scope.sums.model == CLASSIFIER
    assert scope.agreement is not None
    assert scope.agreement.missed == COUNTS["scope"]
    assert scope.agreement.extra == seeded.doubtful > 0
    known = sum(COUNTS.values()) - COUNTS["unknown"]
    asked = 2 * known - COUNTS["retrieval"] - COUNTS["rank"]
    assert scope.agreement.recall == pytest.approx((asked - COUNTS["scope"]) / asked)
    assert stats["implement"].sums.repaired == known
    assert stats["implement"].sums.unreadable == known


def test_required_recall_is_the_share_of_files_that_came_into_scope(waterfall: Waterfall) -> None:
    known = sum(COUNTS.values()) - COUNTS["unknown"]
    out = COUNTS["retrieval"] + COUNTS["rank"] + COUNTS["scope"]
    assert waterfall.required_recall == pytest.approx((2 * known - out) / (2 * known))
