"""`cra enrich`: have a model describe each file that changed since it was last described."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.enrichment import enrich
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.enrich import EnrichmentView, show
from clean_room_agent.json_values import to_shown
from clean_room_agent.workspace import hold

PARTIAL = 4


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--promote", "promoting", is_flag=True, help="Copy the descriptions into the index.")
@click.option(
    "--limit", type=options.number(0), help="Ask about at most this many files, this time; 0: none."
)
@click.option(
    "--all", "every", is_flag=True, help="All text files, not only Python, JavaScript and TypeScript."
)
@options.json_option
@options.notify_option
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each file.")
def command(
    path: Path | None,
    repo: Path,
    promoting: bool,
    limit: int | None,
    every: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Have the reasoning model describe the files of REPO (here by default).

    Only files whose current content has no description are asked about, most-imported files first; stopped and started
    again, it continues. Exit codes: 0 done, 4 an answer could not be read; after too many of these in a row ([enrichment]
    max_unreadable) it stops.
    """
    workspace = output.opened(wiring.workspace_of(path or repo))
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    workspace.create()
    with (
        hold(workspace.folder / "enrich.lock", timeout=0, what="the enrichment"),
        wiring.open_model_access(workspace, settings, wiring.live_transport) as access,
    ):
        summary = enrich(
            workspace,
            settings,
            access,
            open_bar=output.ProgressBar,
            open_view=lambda total, model: EnrichmentView(total=total, model=model, verbose=verbose),
            limit=limit,
            every=every,
            promoting=promoting,
        )
    if as_json:
        output.answer_json(to_shown(summary))
    else:
        show(summary)
    return PARTIAL if summary.skipped else 0
