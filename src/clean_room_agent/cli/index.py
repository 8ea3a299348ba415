"""`cra index`: build or refresh the knowledge base."""

from pathlib import Path

import click

from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.settings import Overrides, load_settings
from clean_room_agent.db.raw.record import Record


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--full", is_flag=True, help="Build everything anew.")
@click.option(
    "--continue-on-error", is_flag=True, help="Skip and name what cannot be read, instead of failing."
)
@options.json_option
def command(path: Path | None, repo: Path, full: bool, continue_on_error: bool, as_json: bool) -> int:
    """Build or refresh the knowledge base of REPO (here by default)."""
    workspace = wiring.workspace_of(path or repo)
    settings = load_settings(workspace.config, Overrides(), optional=True)
    bar = output.ProgressBar("indexing")
    with Record.open(workspace.repo, clock=wiring.utc_now) as record:
        try:
            summary = wiring.refresh_index(
                workspace,
                settings,
                record,
                full=full,
                continue_on_error=continue_on_error,
                progress=bar.show,
            )
        finally:
            bar.close()
    if as_json:
        output.answer_json(summary)
        return 0
    for name, why in summary.failures:
        click.echo(output.visible(f"skipped {name}: {why}"), err=True)
    output.answer(
        f"{summary.files_scanned} files, {summary.files_changed} changed, {summary.files_deleted} gone; "
        f"{summary.symbols} symbols, {summary.commits} commits; {summary.duration_ms / 1000:.2f} s"
    )
    return 0
