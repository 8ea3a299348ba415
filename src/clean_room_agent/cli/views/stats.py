"""The JSON of where tasks were lost, for `cra stats` and `cra train-plan`."""

from typing import Any


def waterfall_object(waterfall: Any) -> dict[str, Any]:
    """A `Waterfall` as `--json` answers it."""
    return {
        "tasks": waterfall.tasks,
        "solved": waterfall.solved,
        "unproven": waterfall.unproven,
        "charged": dict(waterfall.by_stage),
        "charged_prompts": dict(waterfall.by_prompt),
        "unattributed": dict(waterfall.unattributed),
        "required_recall": waterfall.required_recall,
        "context_recall": waterfall.context_recall,
    }
