"""`cra replay`: repeat a run with its recorded answers; the same bytes, or the first difference."""

import contextlib
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.replay import Recording, export_calls, read_recording, replay_from, replay_same
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.what_if import ask_other
from clean_room_agent.cli import options, output
from clean_room_agent.cli.output import current_display
from clean_room_agent.cli.views.replay import (
    mismatch_object,
    tell_comparison,
    tell_export,
    tell_from,
    tell_same,
)
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import ReplayMismatch, UsageError
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.workspace import Workspace

HELP = """Repeat RUN with its recorded answers, without a model server. No branch is made. RUN is the newest run by default; @~1 is
the one before.

\b
cra replay RUN                        the same bytes, or the first difference
cra replay RUN --from PASS            recorded answers up to PASS, your server's from there on
cra replay RUN --stage S --model TAG  what another model answers to the questions of a stage or prompt
cra replay RUN --export FILE          write the recorded answers; --recording FILE uses them

Exit codes: 0 the same, or done, 1 different, 2 usage, 3 model server.
"""


@click.command(help=HELP)
@options.run_argument
@click.option("--from", "from_pass", metavar="PASS", help="Ask the configured server from this pass on.")
@click.option(
    "--stage",
    type=options.STAGE_OR_PROMPT,
    metavar="NAME",
    help="Ask the recorded questions of this stage or prompt again, with --model.",
)
@click.option("--model", metavar="TAG", help="The model to ask, on the configured server.")
@click.option("--export", type=options.OUTPUT_FILE, help="Write the recorded answers to a JSON Lines file.")
@click.option(
    "--recording",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Read the recorded answers from a file that --export wrote.",
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
        raise UsageError("--stage and --model need each other: which questions, and which model to ask")
    if len([each for each in (stage, from_pass, export) if each]) > 1:
        raise UsageError("--stage, --from and --export exclude each other")
    workspace = output.opened(wiring.workspace_of(repo))
    wiring.require_record(workspace)
    if export is not None:
        return _export(workspace, run, export, as_json=as_json)
    if stage is not None and model is not None:
        return _what_if(workspace, run, stage, model, as_json=as_json)
    found = read_recording(workspace, run, recording)
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


def _what_if(workspace: Workspace, run: str, stage: str, model: str, *, as_json: bool) -> int:
    settings = load_settings(workspace.config, Overrides())
    with contextlib.closing(output.ProgressBar(f"asking {model}")) as bar:
        found = ask_other(workspace, settings, stage=stage, model=model, run=run, progress=bar.show)
    tell_comparison(found, as_json=as_json)
    return 0


def _export(workspace: Workspace, run: str, target: Path, *, as_json: bool) -> int:
    exported = export_calls(workspace, run, target, current_display().redacted)
    tell_export(exported, target, as_json=as_json)
    return 0
