"""`cra bootstrap`: make training pairs from commit histories."""

import contextlib
import re
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.bootstrap import Wanted, bootstrap
from clean_room_agent.app.indexing import processors
from clean_room_agent.app.package_extras import ENGINES, require_extras
from clean_room_agent.app.settings import Overrides
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.bootstrap import answer

SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
FORMATS = ("trl", "axolotl", "llama-factory", "unsloth", "openai")


def _part(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, int]:
    match = SHARD.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter("write I/N with I from 1 to N, such as 1/4")
    return int(match[1]), int(match[2])


@click.command()
@click.argument("repositories", nargs=-1, metavar="[REPO]...")
@click.option("--manifest", type=options.FILE, help="A file that lists repositories with revisions.")
@click.option(
    "-o", "--output", "target", type=options.OUTPUT_FOLDER, required=True,
    help="The folder of the dataset.",
)  # fmt: skip
@options.repo_option
@options.budget_options
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="trl", help="The trainer that will read it."
)
@click.option("--exclude", type=options.FILE, help="Repositories and commits to leave out.")
@click.option(
    "--licence",
    "licences",
    multiple=True,
    help="An allowed licence (SPDX name). Repeatable. Permissive ones by default.",
)
@click.option(
    "--max-commits",
    type=options.number(1),
    help="At most this many of each repository, the newest suitable ones.",
)
@click.option("--unit-commits", type=click.IntRange(1, 400), default=400, help="Commits in one unit of work.")
@click.option("--jobs", type=options.number(1), help="Processes; one per processor by default.")
@click.option(
    "--shard", "part", default="1/1", callback=_part, help="I/N: make only every N-th unit, from the I-th on."
)
@click.option(
    "--engine", type=click.Choice(ENGINES), default="local", help="local: processes here; ray: a cluster."
)
@click.option(
    "--work",
    type=options.OUTPUT_FOLDER,
    help="Where to keep clones and finished units.",
)
@options.json_option
@options.notify_option
def command(
    repositories: tuple[str, ...],
    manifest: Path | None,
    target: Path,
    repo: Path,
    overrides: Overrides,
    form: str,
    exclude: Path | None,
    licences: tuple[str, ...],
    max_commits: int | None,
    unit_commits: int,
    jobs: int | None,
    part: tuple[int, int],
    engine: str,
    work: Path | None,
    as_json: bool,
) -> int:
    """Make training pairs from the commits of REPO (paths or https URLs), or of a manifest.

    Started again, it continues where it stopped. The prompts are those of a run with this repository's configuration.
    """
    require_extras("data", *(["cluster"] if engine == "ray" else []))
    workspace = output.opened(wiring.workspace_of(repo))
    settings = wiring.offline_settings(workspace, overrides, output.aside)
    wanted = Wanted(
        repositories=repositories,
        manifest=manifest,
        exclude=exclude,
        newest=max_commits,
        licences=licences,
        place=work or workspace.folder / "bootstrap",
        unit_commits=unit_commits,
        part=part,
        engine=engine,
        jobs=jobs or processors(),
        folder=target,
        form=form,
    )
    with contextlib.closing(output.ProgressBar("bootstrap")) as bar:
        made = bootstrap(workspace, settings, wanted, bar)
    answer(made, as_json=as_json)
    return 0 if made.written or made.left else 1
