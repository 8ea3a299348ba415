"""Training pairs from commit histories: divides the work into units, has an engine make them, and writes the datasets."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS, DatasetRow, TrainingPlanRow
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.bootstrap import Assembled, Engine, Mined
    from clean_room_agent.training.dataset import Written
    from clean_room_agent.training.plan import TrainingPlan
    from clean_room_agent.training.shards import Making


class Part(Struct, frozen=True, kw_only=True):
    """The share of the units that this machine makes: number `at` (from 1) of `of`."""

    at: int = 1
    of: int = 1


class Sources(Struct, frozen=True, kw_only=True):
    """What to mine."""

    repositories: tuple[str, ...]
    """Paths or URLs."""
    manifest: Path | None
    """A file that lists more of them."""
    exclude: Path | None
    """A file that lists repositories and commits to leave out."""
    newest: int | None
    """At most this many commits of each repository."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What to mine, and how the work is divided."""

    sources: Sources
    place: Path
    """The folder of clones and finished units."""
    unit_commits: int
    part: Part
    engine: str
    jobs: int

    @property
    def shards(self) -> Path:
        """The folder of the finished units."""
        return self.place / "shards"


class Target(Struct, frozen=True, kw_only=True):
    """Where the dataset goes, and for which trainer."""

    folder: Path
    form: str


class Unfinished(Struct, frozen=True, kw_only=True):
    """Some units are still missing, to be made by this machine or another."""

    units: int
    left: int


class Bootstrapped(Struct, frozen=True, kw_only=True):
    """All units are made."""

    mined: "Mined"
    excluded: tuple[str, ...]
    """Repositories that a list excluded."""
    assembled: "Assembled"
    written: "Written | None"
    """None if no pair is left."""
    numbers: Mapping[str, int]
    """The numbers of the datasets in the record, by prompt."""


def bootstrap(
    workspace: Workspace,
    settings: Settings,
    wanted: Wanted,
    target: Target,
    licences: tuple[str, ...],
    bar: Bar,
) -> Unfinished | Bootstrapped:
    """Make this machine's units; if they were the last ones, write the dataset.

    Raises:
        UsageError: no repository is named, or the target folder is not free.
        ConfigError: the configuration names an unknown stage.
    """
    from clean_room_agent.training.bootstrap import assemble
    from clean_room_agent.training.dataset import require_free

    making = making_of(settings, licences)
    require_free(target.folder)
    workspace.create()
    mined, excluded, left = make_units(wanted, making, bar)
    if left:
        return Unfinished(units=len(mined.units), left=left)
    assembled = assemble(wanted.shards, mined, making)
    written, numbers = write_pairs(target, assembled, mined, making, settings, workspace)
    return Bootstrapped(mined=mined, excluded=excluded, assembled=assembled, written=written, numbers=numbers)


def make_units(wanted: Wanted, making: "Making", bar: Bar) -> "tuple[Mined, tuple[str, ...], int]":
    """Mine the repositories and make the missing units: what was mined, the excluded repositories, and how many units
    are still missing.
    """
    from clean_room_agent.training import bootstrap, commit_sources

    sources = wanted.sources
    listed = [commit_sources.entry_for(name) for name in sources.repositories]
    listed += commit_sources.read_manifest(sources.manifest) if sources.manifest else ()
    if not listed:
        raise UsageError("no repository is given", hint="give paths or https URLs, or --manifest FILE")
    exclusions = (
        commit_sources.read_exclusions(sources.exclude) if sources.exclude else commit_sources.Exclusions()
    )
    found, excluded = commit_sources.open_sources(
        listed,
        wanted.place / "clones",
        exclusions,
        lambda doing, done, total: bar.show(done, total, f" {doing}"),
    )
    mined = bootstrap.mine_sources(
        found,
        exclusions,
        unit_commits=wanted.unit_commits,
        newest=sources.newest,
        progress=lambda done, total: bar.show(done, total, " histories"),
    )
    own = mined.units[wanted.part.at - 1 :: wanted.part.of]
    waiting = bootstrap.missing_units(wanted.shards, own, making)
    make = _engine(wanted.engine, wanted.jobs)
    make(wanted.shards, waiting, making, lambda done, total: bar.show(done, total, " units"))
    return mined, excluded, len(bootstrap.missing_units(wanted.shards, mined.units, making))


def making_of(settings: Settings, licences: tuple[str, ...]) -> "Making":
    """How pairs are made, as configured; with all permissive licences if none is named.

    Raises:
        ConfigError: the configuration names an unknown stage.
    """
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


def write_pairs(
    target: Target,
    assembled: "Assembled",
    mined: "Mined",
    making: "Making",
    settings: Settings,
    workspace: Workspace,
) -> "tuple[Written | None, dict[str, int]]":
    """Write the dataset, and record a plan and a dataset for each prompt; returns the dataset, and the numbers by
    prompt. Nothing is written if no pair is left.
    """
    if not assembled.entries:
        return None, {}
    from clean_room_agent.training.dataset import Card, write_dataset
    from clean_room_agent.training.dataset_filters import SPLIT_RULE
    from clean_room_agent.training.dataset_formats import FORMATS as TRAINERS
    from clean_room_agent.training.planning import default_plan

    router = ModelRouter(settings.models, settings.budget)
    stages = sorted({entry.row.origin.stage for entry in assembled.entries})
    plans = {stage: default_plan(_prompt(stage), router) for stage in stages}
    criteria: dict[str, Any] = {
        "repositories": sorted({unit.repo for unit in mined.units}),
        "repositories_not_read": dict(sorted(mined.unread)),
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
    written = write_dataset(target.folder, assembled.entries, card, TRAINERS[target.form])
    return written, _record(workspace, written, assembled, plans, criteria, target.form)


def _record(
    workspace: Workspace,
    written: "Written",
    assembled: "Assembled",
    plans: "Mapping[str, TrainingPlan]",
    criteria: Mapping[str, Any],
    form: str,
) -> dict[str, int]:
    """Record a plan and a dataset for each prompt; returns the datasets' numbers, by prompt."""
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
                training_plan_id=record.write(TRAINING_PLANS.insert, kept),
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
            numbers[stage] = record.write(TRAINING_DATASETS.insert, row)
    return numbers


def _prompt(stage: str) -> Any:
    return next(prompt for prompt in PROMPTS if prompt.name == stage)
