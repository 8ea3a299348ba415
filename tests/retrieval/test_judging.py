import json
import math

import pytest
from tests.fakes.memory_sink import MemorySink
from tests.fakes.scripted_transport import ScriptedTransport

from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.exchange import RawAnswer
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.retrieval.judging import ModelJudge, ThresholdJudge
from clean_room_agent.retrieval.prompts.precision_batch import DETAILS, PRECISION_BATCH
from clean_room_agent.retrieval.prompts.precision_primary import PRECISION_PRIMARY
from clean_room_agent.retrieval.prompts.precision_relevant import PRECISION_RELEVANT
from clean_room_agent.retrieval.prompts.precision_supporting import PRECISION_SUPPORTING
from clean_room_agent.retrieval.prompts.scope_batch import SCOPE_BATCH
from clean_room_agent.retrieval.prompts.scope_judgment import SCOPE_JUDGMENT
from clean_room_agent.retrieval.stage import Option


def options(count: int, words: int = 5) -> list[Option]:
    return [
        Option(key=f"f{n}.py", text=f"f{n}.py " + "word " * words, score=n / count)
        for n in range(1, count + 1)
    ]


def judge(
    transport: ScriptedTransport, *, window: int = 4096, batch_size: int = 30, threshold: float = 0.5
) -> ModelJudge:
    router = ModelRouter(
        ModelsConfig(base_url="http://127.0.0.1:1", coding="c", reasoning="r"),
        BudgetConfig(context_window=window, reserved_tokens=window // 4),
    )
    client = ModelClient(router, transport, MemorySink(), lambda: "2026-01-01T00:00:00Z")
    return ModelJudge(
        client, question="## Task\nFix it", pass_id="t:p", batch_size=batch_size, threshold=threshold
    )


def test_the_first_label_of_a_number_counts_and_stray_numbers_are_noted() -> None:
    transport = ScriptedTransport(['{"primary": [1, 9], "supporting": [1, 2], "type_context": []}'])
    rulings = judge(transport).sort(PRECISION_BATCH, options(3), labels=DETAILS, stage="precision")
    assert [ruling.label for ruling in rulings] == ["primary", "supporting", ""]
    assert all("[9]" in ruling.reason for ruling in rulings)


def test_many_options_are_spread_evenly_over_calls() -> None:
    transport = ScriptedTransport(lambda _: '{"relevant": [1]}')
    rulings = judge(transport, batch_size=30).sort(
        SCOPE_BATCH, options(40), labels=("relevant",), stage="scope"
    )
    assert [request.identity.item for request in transport.requests] == ["scope:0", "scope:1"]
    assert [number for number, ruling in enumerate(rulings, 1) if ruling.label] == [1, 21]
    assert all(request.prompt.count("word word") >= 20 for request in transport.requests)


def test_a_small_window_makes_more_calls_and_cuts_nothing() -> None:
    transport = ScriptedTransport(lambda _: '{"relevant": []}')
    given = options(12, words=150)
    judge(transport, window=1400).sort(SCOPE_BATCH, given, labels=("relevant",), stage="scope")
    assert len(transport.requests) > 2
    shown = "\n".join(request.prompt for request in transport.requests)
    assert all(option.text.strip() in shown for option in given)


def test_one_option_that_does_not_fit_is_an_error() -> None:
    transport = ScriptedTransport([])
    with pytest.raises(WindowExceeded, match="scope_batch"):
        judge(transport, window=1024).sort(
            SCOPE_BATCH, options(1, words=2000), labels=("relevant",), stage="scope"
        )


def test_an_unreadable_batch_leaves_only_its_own_options_out() -> None:
    answers = iter(["nonsense", "nonsense again", '{"relevant": [1, 2]}'])
    rulings = judge(ScriptedTransport(answers), batch_size=2).sort(
        SCOPE_BATCH, options(4), labels=("relevant",), stage="scope"
    )
    assert [ruling.label for ruling in rulings] == ["", "", "relevant", "relevant"]
    assert "unreadable" in rulings[0].reason


def test_all_calls_share_everything_before_the_options() -> None:
    transport = ScriptedTransport(lambda _: json.dumps({"relevant": []}))
    judge(transport, batch_size=2).sort(SCOPE_BATCH, options(4), labels=("relevant",), stage="scope")
    heads = {request.prompt.partition("## Files")[0] for request in transport.requests}
    assert len(heads) == 1


def test_yes_or_no_is_asked_once_an_option_and_keeps_their_order() -> None:
    transport = ScriptedTransport(lambda request: "yes" if request.identity.item == "f2.py" else "maybe")
    rulings = judge(transport).each(SCOPE_JUDGMENT, options(3), label="relevant", stage="scope")
    assert [ruling.label for ruling in rulings] == ["", "relevant", ""]
    assert "unreadable" in rulings[0].reason


def sure(word: str, **shares: float) -> RawAnswer:
    top = tuple((token, math.log(share)) for token, share in shares.items())
    return RawAnswer(request_body="{}", text=word, tokens=(TokenChoice(token=word, top=top),))


@pytest.mark.parametrize(("threshold", "included"), [(0.5, [1]), (0.8, []), (0.3, [1, 2])])
def test_the_threshold_counts_on_the_probability_of_yes(threshold: float, included: list[int]) -> None:
    answers = {
        "f1.py": sure("Yes", Yes=0.35, yes=0.35, No=0.3),
        "f2.py": sure("no", no=0.6, Yes=0.4),
        "f3.py": sure("no", no=0.9, yes=0.05),
    }
    transport = ScriptedTransport(lambda request: answers[request.identity.item])
    rulings = judge(transport, threshold=threshold).each(
        SCOPE_JUDGMENT, options(3), label="relevant", stage="scope"
    )
    assert [number for number, ruling in enumerate(rulings, 1) if ruling.label] == included
    assert [round(ruling.confidence or 0, 2) for ruling in rulings] == [0.7, 0.6, 0.95]
    overruled = [ruling.reason for ruling in rulings if "but yes counts from" in ruling.reason]
    assert len(overruled) == (threshold != 0.5)


def test_questions_about_one_item_each_differ_in_the_item_alone() -> None:
    transport = ScriptedTransport(lambda _: "no")
    given = [Option(key=f"{n}", text=f"f{n}.py | defines {n}", score=0.5) for n in range(4)]
    for prompt in (SCOPE_JUDGMENT, PRECISION_RELEVANT, PRECISION_PRIMARY, PRECISION_SUPPORTING):
        transport.requests.clear()
        judge(transport).each(prompt, given, label="relevant", stage="scope")
        around = {
            request.prompt.replace(option.text.strip(), "@")
            for request, option in zip(transport.requests, given, strict=True)
        }
        assert len(around) == 1
        before, _, after = around.pop().partition("@")
        assert len(before) > 4 * len(after)
        assert all(f"- f{n}.py\n" in before for n in range(4))
        assert {(request.system, request.max_tokens) for request in transport.requests} == {
            (prompt.system, 3)
        }


def test_no_options_make_no_call() -> None:
    transport = ScriptedTransport([])
    assert judge(transport).sort(SCOPE_BATCH, [], labels=("relevant",), stage="scope") == ()
    assert judge(transport).each(SCOPE_JUDGMENT, [], label="relevant", stage="scope") == ()


def test_thresholds_give_weaker_labels_to_lower_scores() -> None:
    given = [Option(key=str(score), text="", score=score) for score in (0.9, 0.4, 0.2, 0.1)]
    rulings = ThresholdJudge(threshold=0.5).sort(PRECISION_BATCH, given, labels=DETAILS, stage="precision")
    assert [ruling.label for ruling in rulings] == ["primary", "supporting", "type_context", ""]
    assert all("no model asked" in ruling.reason and ruling.call_id is None for ruling in rulings)
