"""`cra bootstrap`: training pairs from the commit histories of repositories."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.artifacts.ids import new_task_id
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.extras import ENGINES, require_extras
from clean_room_agent.cli.indexing import processors
from clean_room_agent.cli.prompts import PROMPTS
from clean_room_agent.cli.settings import Overrides, Settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import DatasetRow, TrainingPlanRow, append_dataset, append_training_plan
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.bootstrap import Assembled, Engine, Mined
    from clean_room_agent.training.dataset import Written
    from clean_room_agent.training.plan import TrainingPlan
    from clean_room_agent.training.shards import Making

SHARD = re.compile(r"(\d+)/(\d+)")
FORMATS = ("trl", "axolotl", "llama-factory", "unsloth", "openai")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which of the units this machine makes: number `at` (from 1) of `of`."""

    at: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be mined, and by whom."""

    repositories: tuple[str, ...]
    manifest: Path | None
    exclude: Path | None
    place: Path
    """Clones and finished units are kept here."""
    newest: int | None
    unit_commits: int
    part: Part
    engine: str
    jobs: int

    @property
    def shards(self) -> Path:
        """The folder of the finished units."""
        return self.place / "shards"


def _part(_context: click.Context, _parameter: click.Parameter, value: str) -> Part:
    match = SHARD.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter("write I/N with I from 1 to N, such as 1/4")
    return Part(at=int(match[1]), of=int(match[2]))


@click.command()
@click.argument("repositories", type=options.FOLDER, nargs=-1, metavar="[REPO]...")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A list of repositories with revisions.",
)
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, file_okay=False), required=True,
    help="The folder of the dataset.",
)  # fmt: skip
@options.repo_option
@options.budget_options
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="trl", help="The trainer that will read it."
)
@click.option(
    "--exclude",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Repositories and commits to leave out.",
)
@click.option(
    "--licence",
    "licences",
    multiple=True,
    help="An SPDX name that is allowed; several times. Permissive ones by default.",
)
@click.option(
    "--max-commits", type=click.IntRange(min=1), help="Of each repository, the newest that are fit."
)
@click.option("--unit-commits", type=click.IntRange(1, 400), default=400, help="Commits of one unit of work.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; as many as processors by default.")
@click.option(
    "--shard", "part", default="1/1", callback=_part, help="I/N: make every N-th unit only, from the I-th."
)
@click.option(
    "--engine", type=click.Choice(ENGINES), default="local", help="local: processes here; ray: a cluster."
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where clones and finished units are kept.",
)
@options.json_option
@options.notify_option
def command(
    repositories: tuple[str, ...],
    manifest: Path | None,
    target: Path,
    repo: Path,
    stages: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    budget_config: Path | None,
    form: str,
    exclude: Path | None,
    licences: tuple[str, ...],
    max_commits: int | None,
    unit_commits: int,
    jobs: int | None,
    part: Part,
    engine: str,
    work: Path | None,
    as_json: bool,
) -> int:
    """Make training pairs from the commits of REPO (paths or https URLs), or of a manifest.

    Begun again, it goes on where it was stopped. The prompts are those of runs with this repository's configuration.
    """
    require_extras("data", *(["cluster"] if engine == "ray" else []))
    workspace = wiring.workspace_of(repo)
    overrides = Overrides(
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        budget_config=budget_config,
        stages=stages,
    )
    settings = wiring.offline_settings(workspace, overrides)
    wanted = Wanted(
        repositories=repositories,
        manifest=manifest,
        exclude=exclude,
        place=work or workspace.folder / "bootstrap",
        newest=max_commits,
        unit_commits=unit_commits,
        part=part,
        engine=engine,
        jobs=jobs or processors(),
    )
    making = _making(settings, licences)
    _require_free(target)
    workspace.create()
    mined, excluded, left = _make(wanted, making)
    if left:
        _tell_waiting(len(mined.units), left, as_json=as_json)
        return 0
    from clean_room_agent.training.bootstrap import assemble

    assembled = assemble(wanted.shards, mined, making)
    written, numbers = None, dict[str, int]()
    if assembled.entries:
        written, numbers = _write(target, assembled, mined, making, settings, form, workspace)
    _answer(mined, assembled, written, numbers, excluded, as_json=as_json)
    return 0 if written else 1


def _make(wanted: Wanted, making: "Making") -> "tuple[Mined, tuple[str, ...], int]":
    """What was mined, the repositories that are excluded, and how many units nobody has made yet."""
    from clean_room_agent.training import bootstrap, sources

    listed = [sources.Listed(source=name) for name in wanted.repositories]
    listed += sources.read_manifest(wanted.manifest) if wanted.manifest else ()
    if not listed:
        raise UsageError("no repository is named", hint="give paths or https URLs, or --manifest FILE")
    exclusions = sources.read_exclusions(wanted.exclude) if wanted.exclude else sources.Exclusions()
    bar = output.ProgressBar("bootstrap")
    try:
        found, excluded = sources.open_sources(
            listed,
            wanted.place / "clones",
            exclusions,
            lambda doing, done, total: bar.show(done, total, f" {doing}"),
        )
        mined = bootstrap.mine_sources(
            found,
            exclusions,
            unit_commits=wanted.unit_commits,
            newest=wanted.newest,
            progress=lambda done, total: bar.show(done, total, " histories"),
        )
        own = mined.units[wanted.part.at - 1 :: wanted.part.of]
        waiting = bootstrap.missing_units(wanted.shards, own, making)
        make = _engine(wanted.engine, wanted.jobs)
        make(wanted.shards, waiting, making, lambda done, total: bar.show(done, total, " units"))
    finally:
        bar.close()
    return mined, excluded, len(bootstrap.missing_units(wanted.shards, mined.units, making))


def _require_free(target: Path) -> None:
    from clean_room_agent.training.dataset import require_free

    require_free(target)


def _making(settings: Settings, licences: tuple[str, ...]) -> "Making":
    from clean_room_agent.training.licences import ALLOWED
    from clean_room_agent.training.pairs import PairConfig
    from clean_room_agent.training.shards import Making

    wiring.retrieval_config(settings)  # a stage that there is not is refused before anything is done
    texts = [
        [prompt.name, prompt.title, prompt.system, prompt.template, prompt.schema, prompt.example]
        for prompt in PROMPTS
    ]
    return Making(
        pairs=PairConfig(
            models=settings.models,
            budget=settings.budget,
            stages=settings.stages.names(),
            judgments=settings.judgments,
            conventions=settings.conventions,
            orchestrator=settings.orchestrator,
            edit=settings.edit,
        ),
        index=settings.index,
        licences=licences or ALLOWED,
        prompts=hashlib.sha256(json.dumps([*texts, VERSION], sort_keys=True).encode()).hexdigest(),
    )


def _engine(name: str, jobs: int) -> "Engine":
    if name == "ray":
        from clean_room_agent.training.cluster import run_on_ray

        return run_on_ray
    from clean_room_agent.training.bootstrap import engine_here

    return engine_here(jobs)


def _write(
    target: Path,
    assembled: "Assembled",
    mined: "Mined",
    making: "Making",
    settings: Settings,
    form: str,
    workspace: Workspace,
) -> "tuple[Written, dict[str, int]]":
    """The dataset stands, and the record has a plan and a dataset for each prompt, by these numbers."""
    from clean_room_agent.training.dataset import Card, write_dataset
    from clean_room_agent.training.dataset_filters import SPLIT_RULE
    from clean_room_agent.training.dataset_formats import FORMATS as TRAINERS
    from clean_room_agent.training.planning import default_plan

    router = ModelRouter(settings.models, settings.budget)
    stages = sorted({entry.row.origin.stage for entry in assembled.entries})
    plans = {stage: default_plan(_prompt(stage), router) for stage in stages}
    criteria: dict[str, Any] = {
        "repositories": sorted({unit.repo for unit in mined.units}),
        "commits": assembled.commits,
        "licences": list(making.licences),
        "making": making.digest,
    }
    card = Card(
        title="Training pairs from commits",
        base_model=", ".join(sorted({plan.base_model for plan in plans.values()})),
        plan={},
        criteria=criteria,
        split_rule=SPLIT_RULE,
        exclusions=assembled.left_out,
    )
    written = write_dataset(target, assembled.entries, card, TRAINERS[form])
    return written, _record(workspace, written, assembled, plans, criteria, form)


def _record(
    workspace: Workspace,
    written: "Written",
    assembled: "Assembled",
    plans: "Mapping[str, TrainingPlan]",
    criteria: Mapping[str, Any],
    form: str,
) -> dict[str, int]:
    """The record has a plan and a dataset for each prompt; the dataset's number, by prompt."""
    task_id = new_task_id()
    numbers = {}
    with Record.open(workspace.repo, clock=utc_now) as record:
        for stage, plan in plans.items():
            kept = TrainingPlanRow(
                task_id=task_id,
                target_stage=stage,
                base_model=plan.base_model,
                source="synthetic",
                data_criteria=json.dumps(criteria),
                hyperparameters=plan.hyperparameters.model_dump_json(),
                improvement_targets="{}",
                raw_plan="",
                timestamp=record.now(),
            )
            count = written.count("sft", stage)
            row = DatasetRow(
                training_plan_id=record.write(append_training_plan, kept),
                stage_name=stage,
                base_model=plan.base_model,
                source="synthetic",
                dataset_path=str(written.folder),
                example_count=count,
                positive_count=assembled.positive.get(stage, 0),
                negative_count=count - assembled.positive.get(stage, 0),
                format=form,
                timestamp=record.now(),
            )
            numbers[stage] = record.write(append_dataset, row)
    return numbers


def _prompt(stage: str) -> Any:
    return next(prompt for prompt in PROMPTS if prompt.name == stage)


def _tell_waiting(units: int, left: int, *, as_json: bool) -> None:
    if as_json:
        output.answer_json({"dataset": None, "units": units, "units_left": left})
    else:
        output.answer(
            f"{units - left} of {units} units are made; the run that makes the last one writes the dataset"
        )


def _answer(
    mined: "Mined",
    assembled: "Assembled",
    written: "Written | None",
    numbers: Mapping[str, int],
    excluded: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    files = [] if written is None else [
        {"stage": file.stage, "split": file.split, "rows": file.rows, "path": file.path, "sha256": file.sha256}
        for file in written.files
    ]  # fmt: skip
    if as_json:
        answer = {
            "dataset": None if written is None else str(written.folder),
            "dataset_ids": dict(numbers),
            "commits_seen": mined.seen,
            "commits_used": assembled.commits,
            "pairs": len(assembled.entries),
            "files": files,
            "left_out": dict(assembled.left_out),
            "repositories_excluded": list(excluded),
            "units": len(mined.units),
            "units_left": 0,
        }
        output.answer_json(answer)
        return
    lines = [f"{mined.seen:,} commits seen, {assembled.commits:,} used, {len(assembled.entries):,} pairs"]
    lines += ["left out:", *(f"  {count:>7,}  {reason}" for reason, count in assembled.left_out.items())]
    lines += [f"  repository excluded by list: {name}" for name in excluded]
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
