"""Gets the plan of `cra plan`: from a run that stops when it has one, or from a file."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.given_evidence import places_of
from clean_room_agent.app.model_server import first_model, loading
from clean_room_agent.app.run_index import IndexProcess, Refresh
from clean_room_agent.app.run_wiring import begin_timing, prepare_questions, run_parts, task_of
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import new_task_id, short_id
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.plan_file import is_written, load_plan
from clean_room_agent.file_contents import read_given
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.only_plan import PlanMade, make_plan
from clean_room_agent.orchestrator.setup import RunParts, opened_run
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.summary import Ending
from clean_room_agent.workspace import Workspace


class PlanSource(Struct, frozen=True, kw_only=True):
    """A plan, or the text of one, before it is edited."""

    plan: PlanArtifact | None
    """None if the text is edited first, since it may not be a plan yet."""
    text: str
    """As a person wrote it; "" if the plan is not in that form."""


def read_plan(workspace: Workspace, path: Path, *, edit: bool) -> PlanSource:
    """The plan in a file; of a handwritten one that will be edited, only the text."""
    text = read_given(path)
    if edit and is_written(text, str(path)):
        return PlanSource(plan=None, text=text)
    plan = load_plan(text, str(path), places_of(workspace))
    if not isinstance(plan, PlanArtifact):
        raise ArtifactError(
            f"{path}: a plan has steps; this has only parts", hint="cra solve --meta-plan FILE"
        )
    return PlanSource(plan=plan, text="")


def run_plan(
    workspace: Workspace,
    settings: Settings,
    description: str,
    observer: Observer,
    transport: Callable[[Settings], Transport] = wiring.live_transport,
    task_id: str | None = None,
    entered_at: str = "",
    evidence: GivenEvidence = NOTHING_GIVEN,
) -> tuple[int, PlanArtifact | None, str]:
    """Run the planning; returns the exit code, the plan, which has the `evidence`, and why there is none."""
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
        IndexProcess(Refresh(workspace, settings.index, task_id), times.timed) as indexing,
        loading(settings.models, first if live else None, times),
        wiring.open_services(workspace, settings, task_id, transport, watch=observer.notice) as services,
        run_parts(
            services,
            repo,
            task,
            observer,
            indexing=indexing,
            command="plan",
            times=times,
            given=given.events,
        ) as parts,
    ):
        made = _make(parts, services.router.resolve("reasoning", "reasoning").tag)
        ending = Ending() if made.plan else services.record.write(ending_of, task_id, reason=made.reason)
        services.end_task()
    reason = made.reason or f"see cra show {short_id(task_id)}"
    return (0 if made.plan else 1), made.plan, "; ".join((reason, *ending.sentences()))


def _make(parts: RunParts, model: str) -> PlanMade:
    """Make the plan, and leave nothing of the run in git."""
    repo = parts.origin.repo
    try:
        prepare_questions()
        with opened_run(parts) as run:
            return make_plan(run, model)
    finally:
        for ref in list_refs(repo, f"refs/cra/{parts.task.task_id}/"):
            delete_ref(repo, ref)
