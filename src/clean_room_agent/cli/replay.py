"""`cra replay`: run again with the recorded answers; the same bytes, or where it first differs."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from clean_room_agent.artifacts.ids import new_task_id, short_id
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.call_rows import recorded_calls
from clean_room_agent.cli.display import current_display
from clean_room_agent.cli.resuming import given_to, recorded_config
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.cli.solve import SolveRequest, run_solve
from clean_room_agent.cli.watching import watching
from clean_room_agent.cli.what_if import as_object, ask_other, render
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.decisions import list_decisions
from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow, get_orchestrator_run
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import GitError, ReplayMismatch, UsageError
from clean_room_agent.git.history import diff
from clean_room_agent.git.landing import delete_ref, list_refs
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.llm.transports.replay import (
    RecordedCall,
    ReplayThenLive,
    ReplayTransport,
    dump_calls,
    load_calls,
)
from clean_room_agent.orchestrator.run import PlanGiven
from clean_room_agent.report.summary import RunSummary
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace

HELP = """Run RUN again with its recorded answers and no model server. Leaves no branch. By default the newest run; @~1 is the
one before.

\b
cra replay RUN                        the same bytes, or the first line that differs
cra replay RUN --from PASS            recorded answers before PASS, your server's from there on
cra replay RUN --stage S --model TAG  what another model says to each question of a stage or prompt
cra replay RUN --export FILE          write the recorded answers; --recording FILE plays them

Exit codes: 0 the same (or what was asked for is shown), 1 it differs, 2 usage, 3 model server.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A run as the record keeps it."""

    row: OrchestratorRunRow
    calls: tuple[RecordedCall, ...]
    given: PlanGiven

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that asked something, relative to the task, in the order in which they began."""
        return tuple(dict.fromkeys(call.identity.pass_id for call in self.calls if call.identity.pass_id))


@click.command(help=HELP)
@options.run_argument
@click.option("--from", "from_pass", metavar="PASS", help="Ask the configured server from this pass on.")
@click.option(
    "--stage",
    type=options.STAGE_OR_PROMPT,
    metavar="NAME",
    help="Ask the recorded questions of this stage or prompt again.",
)
@click.option("--model", metavar="TAG", help="The model that is asked them, at the configured server.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the recorded answers to a file, as JSON lines.",
)
@click.option(
    "--recording",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take the answers from such a file.",
)
@options.repo_option
@options.json_option
@options.exact_option
@options.verbose_option
def command(
    run: str,
    from_pass: str | None,
    stage: str | None,
    model: str | None,
    export: Path | None,
    recording: Path | None,
    repo: Path,
    as_json: bool,
    verbose: int,
) -> int:
    """The command."""
    if (stage is None) != (model is None):
        raise UsageError("--stage and --model go together: which questions, and who is asked them")
    if len([each for each in (stage, from_pass, export) if each]) > 1:
        raise UsageError("--stage, --from and --export exclude one another")
    workspace = wiring.workspace_of(repo)
    options.require_record(workspace)
    if export is not None:
        return _export(workspace, run, export, as_json=as_json)
    if stage is not None and model is not None:
        return _what_if(workspace, run, stage, model, as_json=as_json)
    found = _recorded(workspace, run)
    if recording is not None:
        text = recording.read_text(encoding="utf-8")
        found = Recording(
            row=found.row,
            calls=load_calls(text, source=str(recording)),
            given=found.given,
        )
    if from_pass is not None:
        return _from_pass(workspace, found, from_pass, as_json=as_json, verbose=verbose)
    return _same(workspace, found, as_json=as_json, verbose=verbose)


def _same(workspace: Workspace, found: Recording, *, as_json: bool, verbose: int) -> int:
    row = found.row
    before = _recorded_diff(open_repository(workspace.repo), row)
    try:
        summary = _again(
            workspace, found, _recorded_settings(row), lambda _: ReplayTransport(found.calls), verbose
        )
        _require_same(row, before, summary)
    except ReplayMismatch as mismatch:
        if as_json:
            output.answer_json(_mismatch_object(row, mismatch))
        raise
    if as_json:
        output.answer_json(
            {
                "task_id": summary.result.task_id,
                "replay_of": row.task_id,
                "same": True,
                "calls": summary.calls,
            }
        )
    else:
        output.answer(
            f"the same: {summary.calls} calls answered from the record, {summary.result.status.value}, "
            f"{len(before.encode())} bytes of diff"
        )
    return 0


def _require_same(row: OrchestratorRunRow, before: str, summary: RunSummary) -> None:
    replayed = summary.result
    if (replayed.cumulative_diff, replayed.status) == (before, row.status):
        return
    raise ReplayMismatch(
        f"the replay ended {replayed.status.value} with another result than the recorded run ({row.status.value})",
        hint="the tests gave other results than at the time; compare with "
        f"`cra show {short_id(row.task_id)} --tests` and `cra show {short_id(replayed.task_id)} --tests`",
        part="result",
        recorded=before,
        now=replayed.cumulative_diff,
    )


def _mismatch_object(row: OrchestratorRunRow, mismatch: ReplayMismatch) -> dict[str, Any]:
    difference = {
        "message": mismatch.message,
        "call": mismatch.call,
        "part": mismatch.part,
        "line": mismatch.line,
        "recorded": mismatch.recorded,
        "now": mismatch.now,
    }
    return {"replay_of": row.task_id, "same": False, "difference": difference}


def _from_pass(workspace: Workspace, found: Recording, name: str, *, as_json: bool, verbose: int) -> int:
    if name not in found.passes:
        raise UsageError(f"the run has no pass {name!r}", hint=f"its passes: {', '.join(found.passes)}")
    row = found.row
    before = _recorded_diff(open_repository(workspace.repo), row)
    now = load_settings(workspace.config, Overrides())
    then = _recorded_settings(row)
    settings = Settings(source=now.source, data={**then.data, "models": now.data["models"]})
    # The task itself is no pass of an order: what is asked under it comes first.
    kept = {"", *found.passes[: found.passes.index(name)]}

    def transport(given: Settings) -> Transport:
        return ReplayThenLive(ReplayTransport(found.calls), kept, wiring.live_transport(given))

    summary = _again(workspace, found, settings, transport, verbose)
    result = summary.result
    same = result.cumulative_diff == before
    if as_json:
        output.answer_json(
            {
                "task_id": result.task_id,
                "replay_of": row.task_id,
                "from": name,
                "status": {"then": row.status.value, "now": result.status.value},
                "same_diff": same,
                "calls": summary.calls,
                "diff": {"then": before, "now": result.cumulative_diff},
            }
        )
    else:
        output.answer(
            f"from {name} on with the configured models: {result.status.value} (then: {row.status.value}), "
            f"{'the same diff' if same else 'another diff'}\nlook into it: cra show {short_id(result.task_id)} --diff"
        )
    return 0


def _what_if(workspace: Workspace, prefix: str, stage: str, model: str, *, as_json: bool) -> int:
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        calls, decisions = list_calls(conn, task_id), list_decisions(conn, task_id)
    settings = load_settings(workspace.config, Overrides())
    found = ask_other(workspace, settings, stage=stage, model=model, calls=calls, decisions=decisions)
    if as_json:
        output.answer_json(as_object(found, replay_of=task_id))
    else:
        output.answer(render(found))
    return 0


def _export(workspace: Workspace, prefix: str, target: Path, *, as_json: bool) -> int:
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        calls = recorded_calls(conn, task_id)
    shown = current_display().redacted(calls)
    write_whole(target, dump_calls(shown), private=True)
    if any(
        (one.response, one.thinking) != (two.response, two.thinking)
        for one, two in zip(shown, calls, strict=True)
    ):
        output.aside(
            "answers that held secrets are not the recorded ones, so it may not play; --exact keeps them"
        )
    if as_json:
        output.answer_json({"task_id": task_id, "calls": len(calls), "file": str(target)})
    else:
        output.answer(f"wrote {len(calls)} calls to {target}; it holds prompts, and so your code")
    return 0


def _again(
    workspace: Workspace,
    found: Recording,
    settings: Settings,
    transport: Callable[[Settings], Transport],
    verbose: int,
) -> RunSummary:
    """The run from its recorded snapshot, with another transport; no refs are left of it."""
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
        with watching(None, verbose=verbose, workspace=workspace) as observer:
            _, summary = run_solve(workspace, settings, request, observer, transport, task_id)
    finally:
        _leave_nothing(repository, task_id)
    return summary


def _recorded_settings(row: OrchestratorRunRow) -> Settings:
    return Settings(source=f"the configuration of run {short_id(row.task_id)}", data=json.loads(row.config))


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


def _recorded(workspace: Workspace, prefix: str) -> Recording:
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        task_id = find_task(conn, prefix)
        row = get_orchestrator_run(conn, task_id)
        if row is None or row.command not in {"solve", "replay"} or not row.snapshot_commit:
            raise UsageError(
                f"{prefix} is not a solve that began", hint="`cra runs` lists what can be replayed"
            )
        row = replace(
            row, config=json.dumps(recorded_config(conn, row))
        )  # a resumed run ended with the newest
        return Recording(row=row, calls=recorded_calls(conn, task_id), given=given_to(conn, task_id))
