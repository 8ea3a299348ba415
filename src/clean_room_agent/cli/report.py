"""`cra report`: write a run, or all runs, as one self-contained HTML page."""

import os
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.report_pages import default_place, make_page, require_replaceable
from clean_room_agent.artifacts.names import NEWEST_RUN
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.proc import absolute_entries


@click.command()
@click.argument("run", type=options.RUN, metavar="[RUN]", default="")
@click.option(
    "--all",
    "of_all",
    is_flag=True,
    help="Report on all runs: over time, by model, where tasks were lost, costs.",
)
@options.repo_option
@click.option("--open", "opened", is_flag=True, help="Open the page in your browser.")
@click.option(
    "-o",
    "--output",
    "place",
    type=options.OUTPUT_FILE,
    help="Where to write it; in .clean_room/reports by default.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is not a report.")
@options.json_option
@options.exact_option
def command(
    run: str, of_all: bool, repo: Path, opened: bool, place: Path | None, force: bool, as_json: bool
) -> int:
    """Write RUN as one HTML page: plan, passes, windows, decisions, prompts, diffs, tests.

    The page is self-contained: it needs no server, no network and no script. RUN is a prefix of a run's id; the newest run
    by default. Exit codes: 0 written, 2 there is no such run, or the file cannot be written.
    """
    if of_all and run:
        raise UsageError("--all reports on all runs", hint="leave out either RUN or --all")
    workspace = output.opened(wiring.workspace_of(repo))
    wiring.require_record(workspace)
    if place is not None:
        require_replaceable(place, force=force)
    page = make_page(workspace, run or NEWEST_RUN, of_all=of_all, safe=output.safe)
    path = place or default_place(workspace, page.name)
    atomic_write(path, page.html, private=True)
    told: dict[str, object] = {
        "task_id": page.task_id,
        "path": str(path.absolute()),
        "bytes": len(page.html.encode()),
    }
    return tell(path, told, opened=opened, as_json=as_json)


def tell(path: Path, told: dict[str, object], *, opened: bool, as_json: bool) -> int:
    """Print the page's path; open the page if requested."""
    shown = opened and _open(path)
    if as_json:
        output.answer_json({**told, "opened": shown})
        return 0
    output.answer(str(path))
    if opened and not shown:
        output.aside("no browser could be opened; open the file above in one")
    return 0


def _open(path: Path) -> bool:
    import webbrowser

    # It looks for programs in PATH itself: a relative entry would mean the repository.
    os.environ["PATH"] = absolute_entries(os.environ.get("PATH", os.defpath))
    return webbrowser.open(path.absolute().as_uri())
