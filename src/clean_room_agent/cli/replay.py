"""`cra replay`: run again with the recorded answers; the same bytes, or where it first differs."""

import contextlib
import json
from pathlib import Path

import click

from clean_room_agent.artifacts.ids import new_task_id, short_id
from clean_room_agent.artifacts.plans import MetaPlan, PartPlan
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.call_rows import recorded_calls
from clean_room_agent.cli.settings import Settings
from clean_room_agent.cli.solve import SolveRequest, run_solve, watching
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.events import list_events
from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow, get_orchestrator_run
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import GitError, ReplayMismatch, UsageError
from clean_room_agent.git.history import diff
from clean_room_agent.git.landing import delete_ref, list_refs
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.llm.transports.replay import RecordedCall, ReplayTransport
from clean_room_agent.orchestrator.run import PlanGiven
from clean_room_agent.orchestrator.solve import META_PLAN_GIVEN, PLAN_GIVEN
from clean_room_agent.workspace import Workspace


@click.command()
@click.argument("run")
@options.repo_option
@options.json_option
@options.verbose_option
def command(run: str, repo: Path, as_json: bool, verbose: int) -> int:
    """Run RUN again with its recorded answers and no model server. Leaves no branch."""
    workspace = wiring.workspace_of(repo)
    row, calls, given = _recorded(workspace, run)
    settings = Settings(
        source=f"the configuration of run {short_id(row.task_id)}", data=json.loads(row.config)
    )
    request = SolveRequest(
        task=row.task_description,
        given=given,
        command="replay",
        replay_of=wiring.RecordedState(head=row.base_commit, snapshot=row.snapshot_commit),
    )
    repository = open_repository(workspace.repo)
    before = _recorded_diff(repository, row)
    task_id = new_task_id()
    try:
        with watching(None, verbose=verbose, workspace=workspace) as observer:
            _, summary = run_solve(
                workspace, settings, request, observer, lambda _settings: ReplayTransport(calls), task_id
            )
    finally:
        _leave_nothing(repository, task_id)
    replayed = summary.result
    if (replayed.cumulative_diff, replayed.status) != (before, row.status):
        raise ReplayMismatch(
            f"the replay ended {replayed.status.value} with another result than the recorded run ({row.status.value})",
            hint="the tests gave other results than at the time; compare with "
            f"`cra show {short_id(row.task_id)} --tests` and `cra show {short_id(replayed.task_id)} --tests`",
        )
    if as_json:
        output.answer_json(
            {"task_id": replayed.task_id, "replay_of": row.task_id, "same": True, "calls": summary.calls}
        )
    else:
        output.answer(
            f"the same: {summary.calls} calls answered from the record, {replayed.status.value}, "
            f"{len(before.encode())} bytes of diff"
        )
    return 0


def _recorded_diff(repository: Repository, row: OrchestratorRunRow) -> str:
    """What the run changed.

    Raises:
        UsageError: git has thrown its commits away, as it does some weeks after `cra discard`.
    """
    try:
        commit = row.result_commit or row.snapshot_commit
        return diff(repository, row.snapshot_commit, commit)
    except GitError as exc:
        raise UsageError(
            f"git no longer has the commits of run {short_id(row.task_id)}",
            hint="a discarded run can be replayed only until git collects its garbage",
        ) from exc


def _leave_nothing(repository: Repository, task_id: str) -> None:
    branch = f"refs/heads/cra/{short_id(task_id)}"
    for ref in (*list_refs(repository, f"refs/cra/{task_id}/"), *list_refs(repository, branch)):
        delete_ref(repository, ref)


def _recorded(
    workspace: Workspace, prefix: str
) -> tuple[OrchestratorRunRow, tuple[RecordedCall, ...], PlanGiven]:
    options.require_record(workspace)
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        row = get_orchestrator_run(conn, task_id)
        if row is None or row.command not in {"solve", "replay"} or not row.snapshot_commit:
            raise UsageError(
                f"{prefix} is not a solve that began", hint="`cra runs` lists what can be replayed"
            )
        kept = {event.kind: event.detail for event in list_events(conn, task_id)}
        single, meta = kept.get(PLAN_GIVEN), kept.get(META_PLAN_GIVEN)
        given = PlanGiven(
            single=PartPlan.model_validate_json(single) if single else None,
            meta_plan=MetaPlan.model_validate_json(meta) if meta else None,
        )
        return row, recorded_calls(conn, task_id), given
