"""Training pairs from commit histories: divides the work into units, has an engine make them, and writes the datasets."""

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.prompts import BY_NAME, PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS, DatasetRow
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.bootstrap import Assembled, Mined
    from clean_room_agent.training.dataset import Written
    from clean_room_agent.training.pairs import Making


class Wanted(Struct, frozen=True, kw_only=True):
    """What to mine, how the work is divided, and where the dataset goes."""

    repositories: tuple[str, ...]
    """Paths or URLs."""
    manifest: Path | None
    """A file that lists more of them."""
    exclude: Path | None
    """A file that lists repositories and commits to leave out."""
    newest: int | None
    """At most this many commits of each repository."""
    licences: tuple[str, ...]
    """Those allowed; all permissive ones if none is named."""
    place: Path
    """The folder of clones and finished units."""
    unit_commits: int
    part: tuple[int, int]
    """(n, of): this machine makes each `of`-th unit, from the n-th (1-based) on."""
    engine: str
    jobs: int
    folder: Path
    """The dataset's."""
    form: str
    """The trainer whose format is written."""


class Bootstrapped(Struct, frozen=True, kw_only=True):
    """What was made."""

    mined: "Mined"
    excluded: tuple[str, ...]
    """Repositories that a list excluded."""
    left: int
    """Units still to be made, by this machine or another; the rest is only there if it is 0."""
    assembled: "Assembled | None" = None
    written: "Written | None" = None
    """None if no pair is left."""
    numbers: Mapping[str, int] = {}
    """The numbers of the datasets in the record, by prompt."""


def bootstrap(workspace: Workspace, settings: Settings, wanted: Wanted, bar: Bar) -> Bootstrapped:
    """Make this machine's units; if they were the last ones, write the dataset.

    Raises:
        UsageError: no repository is named, or the target folder is not free.
        ConfigError: the configuration names an unknown stage.
    """
    from clean_room_agent.training import commit_sources
    from clean_room_agent.training.bootstrap import assemble, make_shards, mine_sources, missing_units
    from clean_room_agent.training.dataset import require_free

    making = making_of(settings, wanted.licences)
    require_free(wanted.folder)
    workspace.create()
    listed = [commit_sources.Listed(source=name) for name in wanted.repositories]
    listed += commit_sources.read_manifest(wanted.manifest) if wanted.manifest else ()
    if not listed:
        raise UsageError("no repository is given", hint="give paths or https URLs, or --manifest FILE")
    none = commit_sources.Exclusions()
    exclusions = commit_sources.read_exclusions(wanted.exclude) if wanted.exclude else none
    sources, excluded = commit_sources.open_sources(
        listed,
        wanted.place / "clones",
        exclusions,
        lambda doing, done, total: bar.show(done, total, f" {doing}"),
    )
    mined = mine_sources(
        sources,
        exclusions,
        unit_commits=wanted.unit_commits,
        newest=wanted.newest,
        progress=lambda done, total: bar.show(done, total, " histories"),
    )
    shards, (at, of) = wanted.place / "shards", wanted.part
    make = partial(make_shards, jobs=wanted.jobs)
    if wanted.engine == "ray":
        from clean_room_agent.training.cluster import run_on_ray as make  # type: ignore[assignment]
    waiting = missing_units(shards, mined.units[at - 1 :: of], making)
    make(shards, waiting, making, lambda done, total: bar.show(done, total, " units"))
    left = len(missing_units(shards, mined.units, making))
    if left:
        return Bootstrapped(mined=mined, excluded=excluded, left=left)
    assembled = assemble(shards, mined, making)
    written: Written | None = None
    numbers: Mapping[str, int] = {}
    if assembled.entries:
        written, numbers = _write(wanted, assembled, mined, making, settings, workspace)
    return Bootstrapped(
        mined=mined, excluded=excluded, left=0, assembled=assembled, written=written, numbers=numbers
    )


def making_of(settings: Settings, licences: tuple[str, ...]) -> "Making":
    """How pairs are made, as configured; with all permissive licences if none is named.

    Raises:
        ConfigError: the configuration names an unknown stage.
    """
    from clean_room_agent.training.licences import ALLOWED
    from clean_room_agent.training.pairs import Making

    wiring.retrieval_config(settings)  # a stage that there is not is refused before anything is done
    texts = [
        [prompt.name, prompt.title, prompt.system, prompt.template, prompt.schema, prompt.example]
        for prompt in PROMPTS
    ]
    return Making(
        models=settings.models,
        budget=settings.budget,
        stages=settings.stages.names(),
        judgments=settings.judgments,
        conventions=settings.conventions,
        orchestrator=settings.orchestrator,
        edit=settings.edit,
        index=settings.index,
        licences=licences or ALLOWED,
        prompts=hashlib.sha256(json.dumps([*texts, VERSION], sort_keys=True).encode()).hexdigest(),
    )


def _write(
    wanted: Wanted,
    assembled: "Assembled",
    mined: "Mined",
    making: "Making",
    settings: Settings,
    workspace: Workspace,
) -> "tuple[Written, dict[str, int]]":
    """Write the dataset, and record a plan and a dataset for each prompt; with the datasets' numbers by prompt."""
    from clean_room_agent.training.dataset import Card, write_dataset
    from clean_room_agent.training.dataset_filters import SPLIT_RULE
    from clean_room_agent.training.dataset_formats import FORMATS
    from clean_room_agent.training.plan import default_plan, row_of
    from clean_room_agent.training.shards import digest_of

    router = ModelRouter(settings.models, settings.budget)
    stages = sorted({entry.row.origin.stage for entry in assembled.entries})
    plans = {stage: default_plan(BY_NAME[stage], router) for stage in stages}
    criteria: dict[str, Any] = {
        "repositories": sorted({unit.repo for unit in mined.units}),
        "repositories_not_read": dict(sorted(mined.unread)),
        "commits": assembled.commits,
        "licences": list(making.licences),
        "making": digest_of(making),
    }
    card = Card(
        title="Training pairs from commits",
        base_model=", ".join(sorted({plan.base_model for plan in plans.values()})),
        plan={},
        criteria=criteria,
        split_rule=SPLIT_RULE,
        exclusions=assembled.left_out,
    )
    written = write_dataset(wanted.folder, assembled.entries, card, FORMATS[wanted.form])
    task_id = new_task_id()
    numbers = {}
    with Record.open(workspace.repo, clock=utc_now) as record:
        for stage, plan in plans.items():
            mined_plan = plan.model_copy(
                update={"source": "synthetic", "criteria": plan.criteria.model_copy(update=criteria)}
            )
            kept = row_of(mined_plan, task_id=task_id, raw="", now=record.now())
            count, positive = written.count("sft", stage), assembled.positive.get(stage, 0)
            row = DatasetRow(
                training_plan_id=record.write(TRAINING_PLANS.insert, kept),
                stage_name=stage,
                base_model=plan.base_model,
                source="synthetic",
                dataset_path=str(written.folder),
                example_count=count,
                positive_count=positive,
                negative_count=count - positive,
                format=wanted.form,
                timestamp=record.now(),
            )
            numbers[stage] = record.write(TRAINING_DATASETS.insert, row)
    return written, numbers
