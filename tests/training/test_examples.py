"""Which recorded answers are examples to learn from."""

import contextlib
from collections.abc import Iterator

import pytest
from testing.seeded_record import Seeded
from tests.training.conftest import COUNTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.db.connection import get_connection
from clean_room_agent.training.examples import counted
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.stage_source import LogSource

SOLVED = sum(COUNTS.values()) - COUNTS["unknown"]


@pytest.fixture
def source(seeded: Seeded) -> Iterator[LogSource]:
    with contextlib.closing(get_connection("raw", repo_path=seeded.top, read_only=True)) as conn:
        yield LogSource(logs=LogAnalysisAPI(conn), prompts={prompt.name: prompt for prompt in PROMPTS})


@pytest.mark.parametrize(
    ("prompt", "good", "bad"),
    [
        ("meta_plan", SOLVED, COUNTS["meta_plan"]),
        ("part_plan", SOLVED, COUNTS["part_plan"]),
        ("implement", SOLVED, COUNTS["format"] + COUNTS["implement"]),
        ("piece_judgment", SOLVED, COUNTS["precision"]),
        ("scope_judgment", 2 * SOLVED, COUNTS["scope"]),
    ],
)
def test_good_is_what_agrees_and_bad_what_a_failure_is_charged_to(
    source: LogSource, seeded: Seeded, prompt: str, good: int, bad: int
) -> None:
    counts = counted(source.examples(prompt))
    doubtful = seeded.doubtful if prompt == "scope_judgment" else 0
    assert (counts["good"], counts["bad"], counts["doubtful"]) == (good, bad, doubtful)


def test_a_repaired_answer_stands_under_the_question_and_makes_a_pair(source: LogSource) -> None:
    good = [each for each in source.examples("implement").values() if each.worth == "good"]
    for example in good:
        row, pair = example.row(label=True), example.preference()
        assert len(example.tries) == 2
        assert pair is not None
        assert row.completion == pair.chosen != pair.rejected
        assert row.prompt == pair.prompt
        assert row.prompt[1].content == example.tries[0].call.request.prompt


def test_everything_else_stays_out_with_a_reason(source: LogSource) -> None:
    out = [each for each in source.examples("scope_judgment").values() if each.worth == "out"]
    assert out
    assert all(each.reason for each in out)
    assert "no accepted change is known" in {each.reason for each in out}
