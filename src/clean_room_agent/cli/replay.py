"""`cra replay`: run again with the recorded answers; the same bytes, or where it first differs."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.call_rows import recorded_calls
from clean_room_agent.app.replaying import (
    Recording,
    read_recording,
    recorded_diff,
    recorded_settings,
    require_same,
    run_again,
)
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.what_if import as_object, ask_other, render
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.display import current_display
from clean_room_agent.cli.views.replay import mismatch_object
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.decisions import list_decisions
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import ReplayMismatch, UsageError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.llm.transports.replay import (
    ReplayThenLive,
    ReplayTransport,
    dump_calls,
    load_calls,
)
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
    wiring.require_record(workspace)
    if export is not None:
        return _export(workspace, run, export, as_json=as_json)
    if stage is not None and model is not None:
        return _what_if(workspace, run, stage, model, as_json=as_json)
    found = read_recording(workspace, run)
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
    before = recorded_diff(open_repository(workspace.repo), row)
    try:
        summary = _run_again(
            workspace, found, recorded_settings(row), lambda _: ReplayTransport(found.calls), verbose
        )
        require_same(row, before, summary)
    except ReplayMismatch as mismatch:
        if as_json:
            output.answer_json(mismatch_object(row, mismatch))
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


def _from_pass(workspace: Workspace, found: Recording, name: str, *, as_json: bool, verbose: int) -> int:
    if name not in found.passes:
        raise UsageError(f"the run has no pass {name!r}", hint=f"its passes: {', '.join(found.passes)}")
    row = found.row
    before = recorded_diff(open_repository(workspace.repo), row)
    now = load_settings(workspace.config, Overrides())
    then = recorded_settings(row)
    settings = Settings(source=now.source, data={**then.data, "models": now.data["models"]})
    # The task itself is no pass of an order: what is asked under it comes first.
    kept = {"", *found.passes[: found.passes.index(name)]}

    def transport(given: Settings) -> Transport:
        return ReplayThenLive(ReplayTransport(found.calls), kept, wiring.live_transport(given))

    summary = _run_again(workspace, found, settings, transport, verbose)
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
    with contextlib.closing(output.ProgressBar(f"asking {model}")) as bar:
        found = ask_other(
            workspace,
            settings,
            stage=stage,
            model=model,
            calls=calls,
            decisions=decisions,
            progress=bar.show,
        )
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


def _run_again(
    workspace: Workspace,
    found: Recording,
    settings: Settings,
    transport: Callable[[Settings], Transport],
    verbose: int,
) -> RunSummary:
    with watching(None, verbose=verbose, workspace=workspace) as observer:
        return run_again(workspace, found, settings, transport, observer)
