"""`cra train-plan`: plan the adapter that would help most, from the record."""

import contextlib
from pathlib import Path

import click
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.training_parts import TARGETS, stage_names, training_parts
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.stats import waterfall_object
from clean_room_agent.file_contents import atomic_write


@click.command()
@click.option("--target", type=click.Choice(TARGETS), help="Plan for this prompt, or explain why not.")
@options.repo_option
@options.budget_options
@click.option("-o", "--output", "place", type=options.OUTPUT_FILE, help="Write the plan to a file.")
@options.json_option
@options.exact_option
def command(
    target: str | None,
    repo: Path,
    overrides: Overrides,
    place: Path | None,
    as_json: bool,
) -> int:
    """Plan the training of an adapter from the record of all runs.

    Exit codes: 0 a plan, 1 something is missing for one, 2 usage or configuration, 3 model server.
    """
    from clean_room_agent.training.planning import make_training_plan

    workspace = wiring.workspace_of(repo)
    names = stage_names(overrides.stages, "log_analysis")
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, replace(overrides, stages=None))
    with (
        contextlib.closing(output.ProgressBar("reading runs")) as bar,
        training_parts(workspace, settings, bar.show) as parts,
    ):
        made = make_training_plan(
            parts.pipeline,
            parts.source,
            parts.router,
            targets=TARGETS if target is None else (target,),
            stages=names,
        )
    if made.plan is not None and place is not None:
        atomic_write(place, made.plan.model_dump_json(indent=2) + "\n")
        output.aside(f"wrote {place}; next: cra curate-data --plan {place}")
    if as_json:
        output.answer_json(
            {
                "plan_id": made.plan_id,
                "plan": made.plan and made.plan.model_dump(mode="json"),
                "reason": made.reason,
                "refused": dict(made.refused),
                "waterfall": waterfall_object(made.waterfall),
            }
        )
    elif made.plan is None:
        output.answer(f"no plan: {made.reason}")
        for name, reason in made.refused[1:]:
            if made.waterfall.by_prompt.get(name):
                output.answer(f"  {name}: {reason}")
    else:
        output.answer(
            f"training plan {made.plan_id}: an adapter of {made.plan.base_model} for {made.plan.target}"
        )
        output.answer(made.plan.model_dump_json(indent=2))
        output.answer(f"next: cra curate-data --plan {made.plan_id}")
    return 0 if made.plan is not None else 1
