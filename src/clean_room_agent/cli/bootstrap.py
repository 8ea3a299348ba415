"""`cra bootstrap`: make training pairs from commit histories."""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.bootstrap import Wanted, bootstrap
from clean_room_agent.app.indexing import processors
from clean_room_agent.app.package_extras import ENGINES, require_extras
from clean_room_agent.app.settings import Overrides
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output

if TYPE_CHECKING:
    from clean_room_agent.app.bootstrap import Bootstrapped
    from clean_room_agent.training.dataset import Written


def answer(made: "Bootstrapped", *, as_json: bool) -> None:
    """Print the commits and pairs, the datasets, and what was left out, by reason; or how many units are made."""
    mined, assembled, written, numbers = made.mined, made.assembled, made.written, made.numbers
    units = len(mined.units)
    if assembled is None:
        if as_json:
            output.answer_json({"dataset": None, "units": units, "units_left": made.left})
        else:
            output.answer(
                f"{units - made.left} of {units} units are made; the run that makes the last one writes the dataset"
            )
        return
    if as_json:
        answer = {
            "dataset": None if written is None else str(written.folder),
            "dataset_ids": dict(numbers),
            "commits_seen": mined.seen,
            "commits_used": assembled.commits,
            "pairs": len(assembled.entries),
            "files": [
                {
                    "stage": file.stage,
                    "split": file.split,
                    "rows": file.rows,
                    "path": file.path,
                    "sha256": file.sha256,
                }
                for file in (written.files if written else ())
            ],
            "left_out": dict(assembled.left_out),
            "repositories_excluded": list(made.excluded),
            "repositories_not_read": dict(mined.unread),
            "units": units,
            "units_left": 0,
        }
        output.answer_json(answer)
        return
    lines = [
        f"{counted(mined.seen, 'commit')} seen, {assembled.commits:,} used, {counted(len(assembled.entries), 'pair')}"
    ]
    lines += ["left out:", *(f"  {count:>7,}  {reason}" for reason, count in assembled.left_out.items())]
    lines += [f"  repository excluded by list: {name}" for name in made.excluded]
    lines += [f"  repository not read, or not to its end: {name}: {reason}" for name, reason in mined.unread]
    lines.append("no pair is left" if written is None else f"dataset: {written.folder}")
    lines += _rows_of(written, numbers) if written is not None else []
    lines += ["next: cra train NUMBER --base MODEL"] if numbers else []
    output.answer("\n".join(lines))


def _rows_of(written: "Written", numbers: Mapping[str, int]) -> list[str]:
    """A line for each prompt: its dataset's number, and the rows of each split."""
    from clean_room_agent.training.dataset import SPLITS

    rows = {(file.stage, file.split): file.rows for file in written.files}
    cells = {stage: "".join(f"{rows.get((stage, split), 0):>12,}" for split in SPLITS) for stage in numbers}
    head = f"{'number':>8}  {'prompt':<16}" + "".join(f"{split:>12}" for split in SPLITS)
    return [head, *(f"{number:>8}  {stage:<16}{cells[stage]}" for stage, number in numbers.items())]


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
