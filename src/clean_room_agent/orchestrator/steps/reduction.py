"""A step cut to its smallest deliverable: the first of its files, or of its symbols; the rest is left for later."""

from clean_room_agent.artifacts.ids import ID_LENGTH
from clean_room_agent.artifacts.plans import PlanStep


def is_divisible(step: PlanStep) -> bool:
    """Whether the step names several files that all have to change, or several symbols."""
    return not step.any_of_files and (len(step.target_files) > 1 or len(step.target_symbols) > 1)


def divided(step: PlanStep) -> tuple[PlanStep, PlanStep]:
    """The smallest deliverable of a divisible step, and what it leaves out; the goal in their descriptions is the same."""
    names = [target.path for target in step.target_files]
    kept: PlanStep = step.model_copy(update={"target_files": step.target_files[:1], "target_symbols": ()})
    left = step.model_copy(update={"target_files": step.target_files[1:], "target_symbols": ()})
    if len(names) == 1:
        names = list(step.target_symbols)
        kept = step.model_copy(update={"target_symbols": step.target_symbols[:1]})
        left = step.model_copy(update={"target_symbols": step.target_symbols[1:]})
    first, *rest = names
    return (
        _named(kept, "-a", f"Of this, only {first} now; the rest follows later."),
        _named(left, "-b", f"Of this, {', '.join(rest)}."),
    )


def _named(step: PlanStep, suffix: str, words: str) -> PlanStep:
    name = step.id[: ID_LENGTH - len(suffix)] + suffix
    return step.model_copy(update={"id": name, "description": f"{step.description.rstrip()} {words}"})
