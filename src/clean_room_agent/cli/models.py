"""`cra models`: show the models on the server, and which one does what."""

from pathlib import Path

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from clean_room_agent.app import wiring
from clean_room_agent.app.model_jobs import ModelsView, look_at_models
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.report.byte_sizes import size_text

HELP = """Show the models on the configured server, and which one does what.

No model is asked anything; `cra check` does that, to test windows and answer formats. To change a model, use
`cra config set models.coding TAG`.

Exit codes: 0 every job has its model, 2 configuration, 3 the server cannot be reached, lacks a model, or its window is too
small.
"""


@click.command(help=HELP)
@options.repo_option
@options.json_option
def command(repo: Path, as_json: bool) -> int:
    """The command."""
    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    view = look_at_models(settings)
    if as_json:
        output.answer_json(view)
    else:
        answers_console().print(*_render(sanitized(view)), sep="\n", highlight=False)
    return view.exit_code


def _render(view: ModelsView) -> list[RenderableType]:

    where = f"{view.base_url} ({view.provider})" + (f", {view.version}" if view.version else "")
    parts: list[RenderableType] = [Text(where)]
    if view.fault is not None:
        parts += [Text(view.fault.text, style="red"), Text(f"  -> {view.fault.remedy}", style="cyan")]
    parts += [Text(view.shape, style="dim"), Text(view.probabilities, style="dim"), Text("")]
    jobs = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("job", "model", "window", ""):
        jobs.add_column(column, overflow="fold", justify="right" if column == "window" else "left")
    for job in view.jobs:
        told = Text(job.purpose, style="dim")
        if job.fault is not None:
            told = Text("cannot be used", style="red")
        window = f"{job.window:,}" if job.window else ""
        jobs.add_row(Text(job.name), Text(job.tag, style="bold"), window, told)
    parts.append(jobs)
    for fault in dict.fromkeys(job.fault for job in view.jobs if job.fault is not None):
        parts += [Text(f"\n{fault.text}", style="red"), Text(f"  -> {fault.remedy}", style="cyan")]
    if view.offered:
        offered = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for column in ("on the server", "size", "used for"):
            offered.add_column(column, overflow="fold", justify="right" if column == "size" else "left")
        for each in view.offered:
            note = ", ".join(each.jobs)
            if each.forwards_to:
                note = "; ".join(filter(None, (note, f"forwards prompts to {each.forwards_to}")))
            offered.add_row(
                Text(each.tag), size_text(each.size_bytes) if each.size_bytes else "", Text(note or "-")
            )
        parts += [Text(""), offered]
    return parts
