"""Which prompts are worth an adapter, by rule."""

from msgspec.structs import replace

from clean_room_agent.training.credit import STAGES, Charge, Headroom, Waterfall
from clean_room_agent.training.planning import refusal


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
        headroom={stage: Headroom(at_most=1, expected=1.0) for stage in STAGES},
    )


def test_nothing_is_trained_where_too_few_failed_or_retrieval_loses_as_much() -> None:
    assert refusal(waterfall(200), "scope_judgment") == ""
    assert "200 are missing" in refusal(waterfall(200), "implement")
    nothing = replace(waterfall(0), headroom=dict.fromkeys(STAGES, Headroom(at_most=0, expected=0.0)))
    assert "would win none" in refusal(nothing, "scope_judgment")
    assert "retrieval loses 201 tasks and this prompt 201" in refusal(waterfall(201), "scope_judgment")
