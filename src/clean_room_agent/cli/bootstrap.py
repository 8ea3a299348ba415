"""`cra bootstrap`: make training pairs from commit histories, or from planted faults.

The work is divided into units, an engine makes them, and whoever makes the last one writes the datasets.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.indexing import processors
from clean_room_agent.app.package_extras import ENGINES, require_extras
from clean_room_agent.app.settings import Overrides
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import to_shown

if TYPE_CHECKING:
    from clean_room_agent.training.bootstrap import Assembled, Mined
    from clean_room_agent.training.commit_sources import Exclusions, Source
    from clean_room_agent.training.dataset import Written

SAID = {"commit": "seen, {:,} used", "fault": "planted, {:,} functions used"}
SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def _parse_shard(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, int]:
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
@click.option("--format", "form", type=options.TRAINERS, default="trl", help="The trainer that will read it.")
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
@click.option(
    "--faults",
    type=options.number(1),
    help="Plant at most this many faults in each repository, in what its passing tests run, instead of reading its commits.",
)
@click.option(
    "--per-function",
    type=options.number(1),
    default=2,
    show_default=True,
    help="At most this many faults in a function.",
)
@click.option("--seed", type=options.number(0), default=0, help="Another seed plants other faults.")
@click.option("--unit-commits", type=click.IntRange(1, 400), default=400, help="Commits in one unit of work.")
@click.option("--jobs", type=options.number(1), help="Processes; one per processor by default.")
@click.option(
    "--shard",
    "part",
    default="1/1",
    callback=_parse_shard,
    help="I/N: make only every N-th unit, from the I-th on.",
)
@click.option(
    "--engine", type=click.Choice(ENGINES), default="local", help="local: processes here; ray: a cluster."
)
@click.option("--work", type=options.OUTPUT_FOLDER, help="Where to keep clones and finished units.")
@options.json_option
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
    faults: int | None,
    per_function: int,
    seed: int,
    unit_commits: int,
    jobs: int | None,
    part: tuple[int, int],
    engine: str,
    work: Path | None,
    as_json: bool,
) -> int:
    """Make training pairs from the commits of REPO (paths or https URLs), or of a manifest; or from faults that are planted there,
    for which its tests are run.

    Started again, it continues where it stopped. The prompts are those of a run with this repository's configuration.
    """
    require_extras("data", *(["cluster"] if engine == "ray" else []))
    from clean_room_agent.app.synthetic_data import making_of, record_dataset
    from clean_room_agent.training import bootstrap
    from clean_room_agent.training.dataset import require_free
    from clean_room_agent.training.shards import make_shard

    workspace = wiring.workspace_of(repo)
    settings = wiring.offline_settings(workspace, overrides, output.aside)
    place, (first, step) = work or workspace.folder / "bootstrap", part
    making = making_of(settings, licences, of_faults=faults is not None)
    require_free(target)
    workspace.create()
    with output.ProgressBar("bootstrap") as bar:
        sources, exclusions, excluded = _open_sources(repositories, manifest, exclude, place / "clones")
        shards = place / "shards"
        make: Callable[[Any], object]
        if faults is None:
            mined = bootstrap.mine_sources(
                sources,
                exclusions,
                unit_commits=unit_commits,
                newest=max_commits,
                progress=lambda done, total: bar.show(done, total, " histories"),
            )
            make = partial(make_shard, shards, making=making)
        else:
            from clean_room_agent.app.planting import make_fault_shard, plant

            mined = plant(
                sources,
                place,
                making,
                settings,
                lambda done, total: bar.show(done, total, " repositories' tests"),
                most=faults,
                per_function=per_function,
                seed=seed,
            )
            make = partial(make_fault_shard, shards, making=making, settings=settings)
        own = bootstrap.missing_units(shards, mined.units[first - 1 :: step], making)
        bootstrap.make_shards(
            make,
            own,
            lambda done, total: bar.show(done, total, " units"),
            jobs=jobs or processors(),
            engine=engine,
        )
        if left := len(bootstrap.missing_units(shards, mined.units, making)):
            _answer_unfinished(len(mined.units), left, as_json=as_json)
            return 0
        assembled = bootstrap.assemble(shards, mined, making)
        made = (target, form, assembled, mined, making, settings, workspace)
        written, numbers = record_dataset(*made) if assembled.entries else (None, {})
    _print_result(mined, excluded, assembled, written, numbers, as_json=as_json)
    return 0 if written is not None else 1


def _open_sources(
    repositories: Sequence[str], manifest: Path | None, exclude: Path | None, clones: Path
) -> "tuple[tuple[Source, ...], Exclusions, tuple[str, ...]]":
    """The repositories, what is excluded, and the names of the repositories that are."""
    from clean_room_agent.training import commit_sources

    listed = [commit_sources.Listed(source=name) for name in repositories]
    listed += commit_sources.read_manifest(manifest) if manifest else ()
    if not listed:
        raise UsageError("no repository is given", hint="give paths or https URLs, or --manifest FILE")
    exclusions = commit_sources.read_exclusions(exclude) if exclude else commit_sources.Exclusions()
    sources, excluded = commit_sources.open_sources(listed, clones, exclusions, output.aside)
    return sources, exclusions, excluded


def _answer_unfinished(units: int, left: int, *, as_json: bool) -> None:
    if as_json:
        output.answer_json({"dataset": None, "units": units, "units_left": left})
    else:
        output.answer(
            f"{units - left} of {units} units are made; the run that makes the last one writes the dataset"
        )


def _print_result(
    mined: "Mined",
    excluded: Sequence[str],
    assembled: "Assembled",
    written: "Written | None",
    numbers: Mapping[str, int],
    *,
    as_json: bool,
) -> None:
    """Print the commits and pairs, the datasets, and what was left out, by reason."""
    from clean_room_agent.app.synthetic_data import GROUPS

    if as_json:
        answer = {
            "dataset": None if written is None else str(written.folder),
            "dataset_ids": dict(numbers),
            f"{mined.what}s_seen": mined.seen,
            f"{GROUPS[mined.what]}_used": assembled.groups,
            "pairs": len(assembled.entries),
            "files": to_shown(written.files) if written else [],
            "left_out": dict(assembled.left_out),
            "repositories_excluded": list(excluded),
            "repositories_not_read": dict(mined.unread),
            "units": len(mined.units),
            "units_left": 0,
        }
        output.answer_json(answer)
        return
    lines = [
        f"{counted(mined.seen, mined.what)} {SAID[mined.what].format(assembled.groups)}, {counted(len(assembled.entries), 'pair')}"
    ]
    lines += ["left out:", *(f"  {count:>7,}  {reason}" for reason, count in assembled.left_out.items())]
    lines += [f"  repository excluded by list: {name}" for name in excluded]
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
