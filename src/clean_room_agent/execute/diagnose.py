"""Asks a model why the attempts at a step fail."""

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.parse import render_edits
from clean_room_agent.execute.prompts.doctor import DOCTOR, DoctorAnswer, DoctorInputs
from clean_room_agent.llm.client import ModelClient


def diagnose(
    models: ModelClient,
    step: PlanStep,
    *,
    task: str,
    attempts: tuple[str, ...],
    edits: tuple[PatchEdit, ...],
    pass_id: str,
    tag: str,
) -> DoctorAnswer | None:
    """Ask the model `tag` ("": the reasoning model) for a diagnosis; None if it cannot be read."""
    targets = tuple(f"{target.role} {target.path}" for target in step.target_files)
    text = render_edits(edits).rstrip("\n")
    for shown in (text, ""):
        inputs = DoctorInputs(
            task=task, step=step.description, targets=targets, attempts=attempts, edits=shown
        )
        try:
            return models.ask(DOCTOR, inputs, pass_id=pass_id, tag=tag).value
        except WindowExceeded:
            if not shown:
                raise
    return None
