"""`cra demo`: a tour on a small project with a real bug."""

import contextlib
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.config_values import write_config
from clean_room_agent.app.demo import (
    PLAN_RECORDING,
    RECORDING,
    config_values,
    load_sample,
    make_repository,
    remove_earlier,
    transport_of,
)
from clean_room_agent.app.discovery import DEFAULT_URL, PROVIDERS
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.model_server import RECORDED_MODELS
from clean_room_agent.app.plan_run import run_plan
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.solving import SolveRequest, run_solve
from clean_room_agent.artifacts.names import counted, short_id
from clean_room_agent.cli import output
from clean_room_agent.cli.safe_console import answers_console
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.raw.record import Record
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.folders import working_in
from clean_room_agent.llm.model_config import Provider
from clean_room_agent.report.summary import render
from clean_room_agent.workspace import Workspace


def tour(workspace: Workspace, settings: Settings, task: str, *, live: bool) -> int:
    """Index, plan and solve, with a line before each; returns the exit code of the solve."""
    output.answer("3. cra index: what is known of the project")
    with Record.open(workspace.repo, clock=utc_now) as record:
        summary = refresh_index(workspace, settings.index, record)
    output.answer(
        f"   {counted(summary.files_scanned, 'file')}, {counted(summary.symbols, 'symbol')}, {counted(summary.commits, 'commit')}\n"
    )
    output.answer("4. cra plan: a plan that could be reviewed and edited")
    with watching(None, verbose=0) as observer:
        plan, reason = run_plan(workspace, settings, task, observer, transport_of(PLAN_RECORDING, live=live))
    if plan is None:
        output.answer(f"   no plan: {reason}")
    else:
        path = workspace.folder / "plan.json"
        atomic_write(path, plan.model_dump_json(indent=2) + "\n")
        for file in plan.affected_files:
            output.answer(
                f"   {file.role} {file.path}: {'; '.join(change.description for change in file.changes)}"
            )
        output.answer(f"   {path}\n")
    output.answer("5. cra solve: the whole run")
    with watching(None, verbose=0) as observer:
        code, done = run_solve(
            workspace, settings, SolveRequest(task=task), observer, transport_of(RECORDING, live=live)
        )
    answers_console().print(render(done, output.elsewhere(workspace)), highlight=False, soft_wrap=True)
    run = short_id(done.result.task_id)
    there = output.repo_flag(workspace)
    output.answer(f"\nAsk it why:      cra show {run}{there} --why tally/money.py")
    output.answer(f"See all of it:   cra report {run}{there} --open")
    output.answer(f"Run it again:    cra replay {run}{there}      (from its record: the same bytes)")
    return code


SAID = (
    "The model's answers are played from a recording of a stand-in that knows the fix; "
    "everything else is real."
)

LATER = "The recording has no answers for other tasks: run `cra init --force` there to use a model of yours. The next demo removes this folder."


@click.command()
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to create the project; a new temporary folder by default.",
)
@click.option("--keep", is_flag=True, help="Keep the folders of earlier demos.")
@click.option("--live", is_flag=True, help="Ask a real model server instead of playing the recording.")
@click.option("--base-url", default=DEFAULT_URL, show_default=True, help="The model server, with --live.")
@click.option(
    "--provider", type=click.Choice(PROVIDERS), default=PROVIDERS[0], help="The server's API, with --live."
)
@click.option("--coding", help="The coding model, with --live.")
@click.option("--reasoning", help="The reasoning model, with --live.")
def command(
    folder: Path | None,
    keep: bool,
    live: bool,
    base_url: str,
    provider: Provider,
    coding: str | None,
    reasoning: str | None,
) -> int:
    """Create a small project with a real bug, and solve it: init, index, plan, solve.

    Without --dir, the temporary folders of earlier demos are removed first, unless a process uses them.
    """
    if live and not (coding and reasoning):
        raise UsageError("--live needs models", hint="name them: --coding TAG --reasoning TAG")
    models = {"coding": coding, "reasoning": reasoning} if live else RECORDED_MODELS
    if folder is None and not keep:
        for gone in remove_earlier():
            output.aside(f"removed {gone}, from an earlier demo (--keep keeps them)")
    home = Path(tempfile.mkdtemp(prefix="cra-demo-")) if folder is None else folder
    with working_in(home) if folder is None else contextlib.nullcontext():
        return _run_demo(home, {"provider": provider, "base_url": base_url, **models}, live=live)


def _run_demo(home: Path, models: dict[str, Any], *, live: bool) -> int:
    sample = load_sample()
    if (home / sample.name).exists():
        raise UsageError(f"{home / sample.name} already exists", hint="name another folder with --dir")
    intro = (
        SAID if not live else f"Models: {models['coding']} and {models['reasoning']} at {models['base_url']}."
    )
    output.answer(f"cra demo. {intro}\n")
    output.answer(f"1. A small project with a history and a bug, in {home / sample.name}")
    workspace = Workspace(repo=make_repository(sample, home).resolve())
    quoted = "\n".join(f"   | {line}" for line in sample.task.splitlines())
    output.answer(f"   The task:\n{quoted}\n")
    output.answer("2. cra init: the configuration")
    write_config(workspace, config_values(models))
    settings = load_settings(workspace.config, Overrides(), user_wide=False)
    output.answer(f"   {workspace.config}\n")
    code = tour(workspace, settings, sample.task, live=live)
    output.answer(f"\nThe project is yours to look around in: cd {shlex.quote(str(workspace.repo))}")
    output.answer(
        f"{SAID.replace('are played', 'were played')}\n{LATER}" if not live else "That was a live run."
    )
    return code
