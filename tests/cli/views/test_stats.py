"""Where tasks were lost, as JSON has it."""

from collections import Counter
from types import SimpleNamespace

from clean_room_agent.cli.views.stats import waterfall_object


def test_counters_become_objects() -> None:
    waterfall = SimpleNamespace(
        tasks=3,
        solved=1,
        unproven=0,
        by_stage=Counter(scope=2),
        by_prompt=Counter(scope_batch=2),
        unattributed=Counter(),
        required_recall=0.5,
        context_recall=None,
    )
    assert waterfall_object(waterfall) == {
        "tasks": 3,
        "solved": 1,
        "unproven": 0,
        "charged": {"scope": 2},
        "charged_prompts": {"scope_batch": 2},
        "unattributed": {},
        "required_recall": 0.5,
        "context_recall": None,
    }
