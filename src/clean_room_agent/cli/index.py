"""`cra index`: build or refresh the index of a repository."""

from collections.abc import Sequence
from pathlib import Path

import click

from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output
from clean_room_agent.git.command import InBackground
from clean_room_agent.git.generated import generated_words
from clean_room_agent.git.repository import list_work_tree

NAMED = 20
"""At most this many files of a kind are named one by one."""


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--full", is_flag=True, help="Rebuild everything.")
@click.option(
    "--continue-on-error", is_flag=True, help="Skip unreadable files and name them, instead of failing."
)
@options.json_option
def command(path: Path | None, repo: Path, full: bool, continue_on_error: bool, as_json: bool) -> int:
    """Build or refresh the index of REPO (the current folder by default)."""
    pending = InBackground(lambda: list_work_tree(path or repo))
    from clean_room_agent.app.indexing import index_work_tree  # while git lists the files

    with output.ProgressBar("indexing") as bar:
        summary = index_work_tree(
            pending.take(), full=full, continue_on_error=continue_on_error, progress=bar.show
        )
    if as_json:
        output.answer_json(summary)
        return 0
    _print_files("skipped", summary.failures)
    if summary.generated:
        output.aside(output.one_line(generated_words(summary.generated)))
    if summary.files_changed or summary.files_deleted:
        _print_files("left out", summary.left_out)
        _print_files("no symbols in", summary.unparsed)
    output.answer(
        f"{counted(summary.files_scanned, 'file')}, {summary.files_changed} changed, {summary.files_deleted} gone; "
        f"{counted(summary.symbols, 'symbol')}, {counted(summary.commits, 'commit')}; {summary.duration_ms / 1000:.2f} s"
    )
    return 0


def _print_files(what: str, files: Sequence[tuple[str, str]]) -> None:
    """Print a line for each file, and one for the rest if there are very many."""
    for name, why in files[:NAMED]:
        output.aside(output.one_line(f"{what} {name}: {why}"))
    if len(files) > NAMED:
        output.aside(f"{what} {len(files) - NAMED} more; `cra index --json` names all")
