"""Which prompts are worth an adapter, by rule and by a judge."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from testing.seeded_record import Seeded
from tests.retrieval.world import context_request
from tests.training.conftest import COUNTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.db.connection import get_connection
from clean_room_agent.retrieval.stage import Candidate, StageContext, Verdict
from clean_room_agent.training.credit import Charge, Waterfall
from clean_room_agent.training.log_analysis_stage import LogAnalysisStage, refusal
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.plan import DataCriteria
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig


class Judge:
    """Gives every option the same label, and keeps what it was shown."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.shown: list[Any] = []

    def choose(self, _prompt: Any, options: Sequence[Any], **_named: Any) -> tuple[Verdict, ...]:
        self.shown += options
        return tuple(Verdict(label=self.label, reason="said so") for _ in options)


@pytest.fixture
def source(seeded: Seeded) -> Iterator[LogSource]:
    with contextlib.closing(get_connection("raw", repo_path=seeded.top, read_only=True)) as conn:
        yield LogSource(logs=LogAnalysisAPI(conn), prompts={prompt.name: prompt for prompt in PROMPTS})


def analysed(source: LogSource, judge: Judge, *names: str) -> StageContext:
    candidates = tuple(Candidate(path=name, file_id=0, tier=4, score=0.0, reasons=()) for name in names)
    context = StageContext(request=context_request(), available_tokens=1000, candidates=candidates)
    stage: Any = LogAnalysisStage(TrainingStageConfig(target="", criteria=DataCriteria()))
    found: StageContext = stage.run(context, source, TaskQuery(), judge)
    return found


def test_only_prompts_that_lose_enough_are_judged(source: LogSource) -> None:
    judge = Judge("yes")
    found = analysed(source, judge, "implement", "scope_judgment")
    assert [option.name for option in judge.shown] == ["scope_judgment"]
    assert f"charged to it: {COUNTS['scope']} of" in judge.shown[0].text
    assert [entry.path for entry in found.files] == ["scope_judgment"]
    assert [selection.path for selection in found.selections] == ["scope_judgment"]
    reasons = {decision.subject.path: decision.reason for decision in found.decisions}
    assert "are needed" in reasons["implement"]


def test_a_judge_can_refuse_what_the_rules_let_through(source: LogSource) -> None:
    found = analysed(source, Judge(""), "scope_judgment")
    assert found.files == ()
    assert [decision.included for decision in found.decisions] == [False]


def test_a_refusal_says_how_many_are_missing(source: LogSource) -> None:
    assert refusal(source.waterfall, "scope_judgment") == ""
    assert "200 are missing" in refusal(source.waterfall, "no_such_prompt")


def test_nothing_is_trained_where_retrieval_loses_as_much() -> None:
    def waterfall(lost: int) -> Waterfall:
        one = Charge(task_id="t", stage="retrieval", prompt="", call_ids=())
        other = replace(one, stage="scope", prompt="scope_judgment")
        return Waterfall(
            tasks=lost + 201,
            solved=0,
            unproven=0,
            charges=(one,) * lost + (other,) * 201,
            unattributed={},
            required_recall=None,
            context_recall=None,
            headroom={},
        )

    assert "retrieval loses 201 tasks and this prompt 201" in refusal(waterfall(201), "scope_judgment")
    assert refusal(waterfall(200), "scope_judgment") == ""
