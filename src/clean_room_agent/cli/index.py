"""`cra index`: build or refresh the knowledge base."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.indexing import index_recorded, processors
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw.index_runs import append_index_run
from clean_room_agent.db.raw.single_event import write_event
from clean_room_agent.git.generated import generated_words
from clean_room_agent.git.repository import list_work_tree
from clean_room_agent.indexer.bounds import Bounds, digest_of, recall
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.workspace import Workspace, trusted_workspace

NAMED = 20
"""Files of a kind that are named one by one."""


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--full", is_flag=True, help="Build everything anew.")
@click.option(
    "--continue-on-error", is_flag=True, help="Skip and name what cannot be read, instead of failing."
)
@click.option(
    "--line-counts", is_flag=True, help="Count the changed lines of all commits, not of the newest alone."
)
@options.json_option
def command(
    path: Path | None, repo: Path, full: bool, continue_on_error: bool, line_counts: bool, as_json: bool
) -> int:
    """Build or refresh the knowledge base of REPO (here by default)."""
    listing = list_work_tree(path or repo)
    workspace = trusted_workspace(listing.top)
    workspace.create()
    digest = digest_of(workspace.config)
    bar = output.ProgressBar("indexing")
    try:
        summary = index_recorded(
            workspace.repo,
            partial(
                index_repository,
                workspace.repo,
                config=_bounds(workspace, digest),
                jobs=processors(),
                full=full,
                continue_on_error=continue_on_error,
                line_counts=line_counts,
                listing=listing,
                digest=digest,
                progress=bar.show,
            ),
            note=lambda row, generated: write_event(workspace.repo, append_index_run, row, generated),
            now=utc_now,
        )
    finally:
        bar.close()
    if as_json:
        output.answer_json(summary)
        return 0
    _tell("skipped", summary.failures)
    if summary.generated:
        output.aside(output.one_line(generated_words(summary.generated)))
    if summary.files_changed or summary.files_deleted:
        _tell("left out", summary.left_out)
        _tell("no symbols in", summary.unparsed)
    output.answer(
        f"{summary.files_scanned} files, {summary.files_changed} changed, {summary.files_deleted} gone; "
        f"{summary.symbols} symbols, {summary.commits} commits; {summary.duration_ms / 1000:.2f} s"
    )
    return 0


def _tell(what: str, files: Sequence[tuple[str, str]]) -> None:
    """A line for each file, and one for the rest where there are very many."""
    for name, why in files[:NAMED]:
        output.aside(output.one_line(f"{what} {name}: {why}"))
    if len(files) > NAMED:
        output.aside(f"{what} {len(files) - NAMED} more; `cra index --json` names all")


def _bounds(workspace: Workspace, digest: str) -> Bounds:
    """What the configuration says of the index; the whole file is checked where it is not as the last run found it."""
    known = recall(workspace.curated, digest)
    if known is not None:
        return known
    from clean_room_agent.app.settings import Overrides, load_settings

    return load_settings(workspace.config, Overrides(), optional=True).index
