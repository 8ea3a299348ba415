"""Repeats a recorded run with its own answers, or with a live server from a given pass on."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.resumption import given_to, recorded_config
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.solve import SolveRequest, run_solve
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import BRANCHES, new_task_id, short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.runs import (
    OrchestratorRunRow,
    find_task,
    get_orchestrator_run,
    list_events,
    recorded_evidence,
)
from clean_room_agent.errors import GitError, ReplayMismatch, RepositoryError, UsageError
from clean_room_agent.file_contents import atomic_write, read_given
from clean_room_agent.git.history import diff
from clean_room_agent.git.refs import branch_tip, delete_branch, delete_ref, list_refs
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.llm.transport import Transport
from clean_room_agent.llm.transports.replay import (
    ReplayThenLive,
    ReplayTransport,
    dump_calls,
    load_calls,
)
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.summary import RunSummary
from clean_room_agent.workspace import Workspace


class Recording(Struct, frozen=True, kw_only=True):
    """A run as the record keeps it."""

    row: OrchestratorRunRow
    calls: tuple[ModelCall, ...]
    given: PlanGiven
    by_evidence: bool
    """Whether its goal tests are on record; before they were, green tests made a run complete."""

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes with calls, relative to the task, in the order in which they began."""
        return tuple(
            dict.fromkeys(call.site.identity.pass_id for call in self.calls if call.site.identity.pass_id)
        )


class Exported(Struct, frozen=True, kw_only=True):
    """Calls that were written to a file."""

    task_id: str
    calls: int
    altered: bool
    """Whether redaction changed an answer, so that the file may not replay."""


def require_same(
    row: OrchestratorRunRow, before: str, summary: RunSummary, *, by_evidence: bool = True
) -> None:
    """Check that the replay ended as the run did, with the diff `before`. A run that was not judged `by_evidence` may be
    unproven now.

    Raises:
        ReplayMismatch: it did not.
    """
    replayed = summary.result
    statuses = {row.status}
    if not by_evidence and row.status is RunStatus.COMPLETE:
        statuses.add(RunStatus.UNPROVEN)
    if replayed.cumulative_diff == before and replayed.status in statuses:
        return
    raise ReplayMismatch(
        f"the replay ended {replayed.status.value} with a different result from the recorded run ({row.status.value})",
        hint="the tests gave different results this time; compare "
        f"`cra show {short_id(row.task_id)} --tests` and `cra show {short_id(replayed.task_id)} --tests`",
        part="result",
        recorded=before,
        now=replayed.cumulative_diff,
    )


def run_again(
    workspace: Workspace,
    found: Recording,
    settings: Settings,
    transport: Callable[[Settings], Transport],
    observer: Observer,
) -> RunSummary:
    """Repeat the run from its recorded snapshot, with another transport; no refs of it are left."""
    row = found.row
    request = SolveRequest(
        task=row.task_description,
        given=found.given,
        command="replay",
        replay_of=wiring.recorded_state(row),
    )
    repository = open_repository(workspace.repo)
    task_id = new_task_id()
    try:
        _, summary = run_solve(workspace, settings, request, observer, transport, task_id)
    finally:
        _leave_nothing(repository, task_id)
    return summary


def recorded_settings(row: OrchestratorRunRow) -> Settings:
    """The configuration that the run had."""
    return Settings(source=f"the configuration of run {short_id(row.task_id)}", data=json.loads(row.config))


def recorded_diff(repository: Repository, row: OrchestratorRunRow) -> str:
    """The run's diff.

    Raises:
        UsageError: git has deleted its commits, as it does some weeks after `cra discard`.
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
    for ref in list_refs(repository, f"refs/cra/{task_id}/"):
        delete_ref(repository, ref)
    name = f"{BRANCHES}/{short_id(task_id)}"
    with contextlib.suppress(RepositoryError):  # somebody has checked it out
        delete_branch(repository, name, branch_tip(repository, name))


def read_recording(workspace: Workspace, prefix: str, file: Path | None = None) -> Recording:
    """The run whose id begins with `prefix`, with its answers from the record or from an exported `file`.

    Raises:
        UsageError: there is none, or it is not a solve that started.
    """
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        row = get_orchestrator_run(conn, task_id)
        if row is None or row.command not in {"solve", "replay"} or not row.snapshot_commit:
            raise UsageError(
                f"{short_id(task_id)} is not a solve that started", hint="`cra runs` lists the runs"
            )
        row = replace(
            row, config=json.dumps(recorded_config(conn, row))
        )  # a resumed run ended with the newest
        if file is None:
            calls = list_calls(conn, task_id)
        else:
            calls = load_calls(read_given(file, bounded=False), source=str(file))
        by_evidence = recorded_evidence(list_events(conn, task_id)) is not None
        return Recording(row=row, calls=calls, given=given_to(conn, task_id), by_evidence=by_evidence)


def replay_same(workspace: Workspace, found: Recording, observer: Observer) -> tuple[RunSummary, str]:
    """Repeat the run with its recorded answers; returns its summary, and the diff that both have.

    Raises:
        ReplayMismatch: a question or the result was different.
    """
    before = recorded_diff(open_repository(workspace.repo), found.row)
    summary = run_again(
        workspace, found, recorded_settings(found.row), lambda _: ReplayTransport(found.calls), observer
    )
    require_same(found.row, before, summary, by_evidence=found.by_evidence)
    return summary, before


def replay_from(
    workspace: Workspace, found: Recording, name: str, observer: Observer
) -> tuple[RunSummary, str]:
    """Repeat the run with recorded answers up to the pass `name`, and the configured server's from there on; returns
    its summary, and the diff of the recorded run.

    Raises:
        UsageError: the run has no such pass.
        ModelError: the server's failure.
    """
    if name not in found.passes:
        raise UsageError(f"the run has no pass {name!r}", hint=f"its passes: {', '.join(found.passes)}")
    before = recorded_diff(open_repository(workspace.repo), found.row)
    now, then = load_settings(workspace.config, Overrides()), recorded_settings(found.row)
    settings = Settings(source=now.source, data={**then.data, "models": now.data["models"]})
    # The task itself is no pass of an order: what is asked under it comes first.
    kept = {"", *found.passes[: found.passes.index(name)]}

    def transport(given: Settings) -> Transport:
        return ReplayThenLive(ReplayTransport(found.calls), kept, wiring.live_transport(given))

    return run_again(workspace, found, settings, transport, observer), before


def export_calls(
    workspace: Workspace,
    prefix: str,
    target: Path,
    redacted: Callable[[tuple[ModelCall, ...]], tuple[ModelCall, ...]],
) -> Exported:
    """Write the run's calls to `target`, each as `redacted` returns it."""
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        calls = list_calls(conn, task_id)
    shown = redacted(calls)
    atomic_write(target, dump_calls(shown), private=True)
    altered = any(
        (one.answer.response, one.answer.thinking) != (two.answer.response, two.answer.thinking)
        for one, two in zip(shown, calls, strict=True)
    )
    return Exported(task_id=task_id, calls=len(calls), altered=altered)
