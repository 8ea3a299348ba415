"""What the training stages read is computed once."""

import contextlib
from collections.abc import Iterator

import pytest
from testing.seeded_record import Seeded
from tests.training.conftest import COUNTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.db.connection import get_connection
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.stage_source import LogSource


@pytest.fixture
def source(seeded: Seeded) -> Iterator[LogSource]:
    with contextlib.closing(get_connection("raw", repo_path=seeded.top, read_only=True)) as conn:
        yield LogSource(logs=LogAnalysisAPI(conn), prompts={prompt.name: prompt for prompt in PROMPTS})


def test_every_failure_is_charged_to_one_stage(source: LogSource) -> None:
    assert len(source.charges) == len(source.waterfall.charges)
    assert source.waterfall.by_stage["scope"] == COUNTS["scope"]


def test_a_second_question_reads_nothing_again(source: LogSource) -> None:
    assert source.waterfall is source.waterfall
    assert source.examples("scope_judgment") is source.examples("scope_judgment")
    assert source.agreements is source.agreements


def test_progress_is_told_over_all_runs(seeded: Seeded) -> None:
    told: list[tuple[int, int]] = []
    with contextlib.closing(get_connection("raw", repo_path=seeded.top, read_only=True)) as conn:
        source = LogSource(
            logs=LogAnalysisAPI(conn), prompts={}, progress=lambda done, total: told.append((done, total))
        )
        assert source.waterfall.tasks
    assert [done for done, _ in told] == [*range(1, len(told) + 1)]
