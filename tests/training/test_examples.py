"""Which recorded answers are examples to learn from."""

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest
from testing.seeded_record import Seeded
from tests.training.conftest import COUNTS

from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.db.connection import get_connection
from clean_room_agent.training.examples import Example, read_examples
from clean_room_agent.training.logs import LogAnalysisAPI

SOLVED = sum(COUNTS.values()) - COUNTS["unknown"]


@pytest.fixture
def logs(seeded: Seeded) -> Iterator[LogAnalysisAPI]:
    with contextlib.closing(get_connection("raw", repo_path=seeded.top, read_only=True)) as conn:
        yield LogAnalysisAPI(conn)


def examples(logs: LogAnalysisAPI, prompt: str) -> tuple[Example, ...]:
    return read_examples(logs, BY_NAME[prompt], lambda _done, _total: None)


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
    logs: LogAnalysisAPI, prompt: str, good: int, bad: int
) -> None:
    counts = Counter(each.worth for each in examples(logs, prompt))
    assert (counts["good"], counts["bad"]) == (good, bad)


def test_a_repaired_answer_stands_under_the_question_and_makes_a_pair(logs: LogAnalysisAPI) -> None:
    good = [each for each in examples(logs, "implement") if each.worth == "good"]
    for example in good:
        row, pair = example.row(label=True), example.pair()
        assert len(example.tries) == 2
        assert pair is not None
        assert row.completion == pair.completion != pair.rejected
        assert row.prompt == pair.prompt
        assert row.prompt[1].content == example.tries[0].call.request.prompt


def test_everything_else_stays_out_with_a_reason(logs: LogAnalysisAPI) -> None:
    out = [each for each in examples(logs, "scope_judgment") if each.worth == "out"]
    assert out
    assert all(each.reason for each in out)
    assert "no accepted change is known" in {each.reason for each in out}
