"""`cra replay`: run again with the recorded answers; the same bytes, or where it first differs."""

import contextlib
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.replay import (
    Recording,
    export_calls,
    read_recording,
    replay_from,
    replay_same,
)
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.what_if import as_object, ask_other, render
from clean_room_agent.cli import options, output
from clean_room_agent.cli.display import current_display
from clean_room_agent.cli.views.replay import mismatch_object, tell_from, tell_same
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.decisions import list_decisions
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import ReplayMismatch, UsageError
from clean_room_agent.llm.transports.replay import (
    load_calls,
)
from clean_room_agent.orchestrator.events import Observer
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
    with watching(None, verbose=verbose, workspace=workspace) as observer:
        if from_pass is None:
            return _same(workspace, found, observer, as_json=as_json)
        summary, before = replay_from(workspace, found, from_pass, observer)
    tell_from(found.row, from_pass, summary, before, as_json=as_json)
    return 0


def _same(workspace: Workspace, found: Recording, observer: Observer, *, as_json: bool) -> int:
    try:
        summary, before = replay_same(workspace, found, observer)
    except ReplayMismatch as mismatch:
        if as_json:
            output.answer_json(mismatch_object(found.row, mismatch))
        raise
    tell_same(found.row, summary, before, as_json=as_json)
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
    task_id, count, altered = export_calls(workspace, prefix, target, current_display().redacted)
    if altered:
        output.aside(
            "answers that held secrets are not the recorded ones, so it may not play; --exact keeps them"
        )
    if as_json:
        output.answer_json({"task_id": task_id, "calls": count, "file": str(target)})
    else:
        output.answer(f"wrote {count} calls to {target}; it holds prompts, and so your code")
    return 0
