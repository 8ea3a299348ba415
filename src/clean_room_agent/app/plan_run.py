"""Gets the plan of `cra plan` from a run that stops when it has one."""

from collections.abc import Callable
from functools import partial

from clean_room_agent.app import wiring
from clean_room_agent.app.leftovers import delete_refs
from clean_room_agent.app.model_server import first_model, loading
from clean_room_agent.app.run_index import IndexProcess, refresh_for_run
from clean_room_agent.app.run_wiring import begin_timing, run_parts, task_of
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import new_task_id, short_id
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.setup import RunParts, opened_run
from clean_room_agent.orchestrator.solve import make_plan
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.summary import Ending
from clean_room_agent.workspace import Workspace


def run_plan(
    workspace: Workspace,
    settings: Settings,
    description: str,
    observer: Observer,
    transport: Callable[[Settings], Transport] = wiring.live_transport,
    task_id: str | None = None,
    entered_at: str = "",
    evidence: GivenEvidence = NOTHING_GIVEN,
) -> tuple[PlanArtifact | None, str]:
    """Run the planning; returns the plan, which has the `evidence`, and why there is none."""
    task_id = task_id or new_task_id()
    times = begin_timing(settings, transport, task_id, entered_at)
    with times.timed(TimeKind.GIT, "open the repository"):
        repo = open_repository(workspace.repo)
    given = PlanGiven(evidence=evidence)
    task = task_of(settings, task_id, description, given)
    live = transport is wiring.live_transport
    first = first_model(wiring.router_of(settings), planned=False)
    workspace.create()
    with (
        IndexProcess(partial(refresh_for_run, workspace, settings.index, task_id), times.timed) as indexing,
        loading(settings.models, first if live else None, times),
        wiring.open_services(workspace, settings, task_id, transport, watch=observer.notice) as services,
        run_parts(
            services, repo, task, observer, indexing=indexing, command="plan", times=times, given=given.events
        ) as parts,
    ):
        plan, why = _plan_and_clean_up(parts, services.router.resolve("reasoning", "reasoning").tag)
        ending = Ending() if plan else services.record.write(ending_of, task_id, reason=why)
        services.end_task()
    reason = why or f"see cra show {short_id(task_id)}"
    return plan, "; ".join((reason, *ending.sentences()))


def _plan_and_clean_up(parts: RunParts, model: str) -> tuple[PlanArtifact | None, str]:
    """Make the plan, and leave nothing of the run in git."""
    try:
        with opened_run(parts) as run:
            return make_plan(run, model)
    finally:
        delete_refs(parts.repo, parts.task.task_id)
