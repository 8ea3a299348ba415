"""Which recorded answers are examples to learn from."""

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.repositories import make_repository
from testing.seeded_record import CODER, Seeded, Task, Writer
from tests.training.conftest import COUNTS

from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.connection import get_connection, read_record, transaction
from clean_room_agent.training.examples import Example, read_examples
from clean_room_agent.training.logs import LogAnalysisAPI

SOLVED = sum(COUNTS.values()) - COUNTS["unknown"]


@pytest.fixture
def logs(seeded: Seeded) -> Iterator[LogAnalysisAPI]:
    with read_record(seeded.top) as conn:
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
        row, (pair,) = example.row(label=True), example.pairs()
        assert len(example.tries) == 2
        assert row.completion == pair.completion != pair.rejected
        assert row.prompt == pair.prompt
        assert row.prompt[1].content == example.tries[0].call.request.prompt


def test_everything_else_stays_out_with_a_reason(logs: LogAnalysisAPI) -> None:
    out = [each for each in examples(logs, "scope_judgment") if each.worth == "out"]
    assert out
    assert all(each.reason for each in out)
    assert "no accepted change is known" in {each.reason for each in out}


class DirectRun(Writer):
    """Writes a run of the direct route."""

    def answered(self, asked: str, *answers: tuple[str, str, AttemptOutcome]) -> None:
        """A solved run with these prompts, asked under one name, answers, and what came of them."""
        self.begin("direct")
        name = "impl:direct:change"
        row_id = self.open_pass(PassType.IMPLEMENT, name)
        for number, (prompt, text, outcome) in enumerate(answers):
            call_id = self.call(
                asked,
                f"{self.task_id}:{name}",
                CODER,
                text,
                prompt=prompt,
                item=f"{asked} {number}",
                role="coding",
            )
            self.attempt(row_id, call_id, outcome, applied=outcome is not AttemptOutcome.REFUSED)
            if outcome is AttemptOutcome.APPLIED_AND_PASSED:  # a part of its change, which does not do
                self.attempt(row_id, call_id, AttemptOutcome.TESTS_FAILED, applied=True)
        self.close_pass(row_id, success=True, diff=self.task.diff)
        self.end(RunStatus.COMPLETE)


@pytest.mark.parametrize(
    ("asked", "answer"), [("function", "```python\nreturn {}\n```"), ("fill", " return {}")]
)
def test_a_candidate_that_passed_and_those_that_failed_on_its_prompt_are_pairs(
    asked: str, answer: str, tmp_path: Path
) -> None:
    top = make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"})
    failed, refused = AttemptOutcome.TESTS_FAILED, AttemptOutcome.REFUSED
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn, transaction(conn):
        DirectRun(conn, top, Task(number=1, words="repair it"), random.Random(1)).answered(
            asked,
            ("place a", answer.format(1), failed),
            ("place b", answer.format(2), failed),
            ("place b", answer.format(3), refused),
            ("place b", answer.format(4), AttemptOutcome.APPLIED_AND_PASSED),
            ("place b", answer.format(2), failed),
        )
    with read_record(top) as conn:
        found = examples(LogAnalysisAPI(conn), asked)
    (good,) = (each for each in found if each.worth == "good")
    (pair,) = good.pairs()
    assert [message.content for message in (*pair.prompt[1:], *pair.completion, *pair.rejected)] == [
        "place b",
        answer.format(4),
        answer.format(2),
    ]
