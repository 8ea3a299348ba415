"""A pass that ends with a plan: begun, done and closed once, however often its run is resumed."""

from collections.abc import Callable
from dataclasses import dataclass

from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.setup import tell

NAME = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPass:
    """Which pass it is."""

    kind: PassType
    pass_id: str
    title: str
    part_id: str = ""
    step_id: str = ""


def plan_pass(
    run: Run, which: PlanPass, inputs: tuple[str, ...], do: Callable[[], PassEnd], *, must_fit: bool = True
) -> PassEnd:
    """How the pass ended: now, or before the run was resumed, then from the same `inputs`.

    Unless it `must_fit`, a prompt that does not fit ends the pass alone; a run that goes on tries it again, for its
    window may be larger then.

    Raises:
        WindowExceeded: a prompt does not fit, and must.
        ModelError: the server failed.
    """
    known = run.journal.recall(which.pass_id, NAME, PassEnd, inputs)
    run.hear_hints(which.pass_id, known=known is not None)
    opened = run.recorder.open_pass(
        which.kind,
        which.pass_id,
        which.title,
        mode="plan",
        role="reasoning",
        now=run.monotonic(),
        part_id=which.part_id,
        step_id=which.step_id,
        known=known is not None,
    )
    try:
        end = known or run.journal.keep(which.pass_id, NAME, PassEnd, do(), inputs)
    except WindowExceeded as error:
        if must_fit:
            raise
        tell(run.recorder, run.observer, run.task_id, f"{error.message} ({error.hint})")
        end = PassEnd(success=False, detail=error.message)
    run.recorder.close_pass(opened, end, now=run.monotonic())
    return end
