"""`cra demo`: a tour on a small project with a real bug."""

import contextlib
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from clean_room_agent.app.demo import (
    config_values,
    load_sample,
    make_repository,
    remove_earlier,
)
from clean_room_agent.app.discovery import DEFAULT_URL, PROVIDERS
from clean_room_agent.app.model_server import RECORDED_MODELS
from clean_room_agent.app.new_config import write_config
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.cli import output
from clean_room_agent.cli.views.demo import tour
from clean_room_agent.errors import UsageError
from clean_room_agent.folders import working_in
from clean_room_agent.llm.config import Provider
from clean_room_agent.workspace import Workspace

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
        return _show(home, {"provider": provider, "base_url": base_url, **models}, live=live)


def _show(home: Path, models: dict[str, Any], *, live: bool) -> int:
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
