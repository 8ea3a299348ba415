"""`cra train-plan`: plan the adapter that would help most, from the record."""

import contextlib
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.training_parts import TARGETS, make_plan
from clean_room_agent.cli import options, output
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.report.stats import waterfall_object


@click.command()
@click.option("--target", type=click.Choice(TARGETS), help="Plan for this prompt, or explain why not.")
@options.repo_option
@click.option("-o", "--output", "place", type=options.OUTPUT_FILE, help="Write the plan to a file.")
@options.json_option
@options.exact_option
def command(target: str | None, repo: Path, place: Path | None, as_json: bool) -> int:
    """Plan the training of an adapter from the record of all runs.

    Exit codes: 0 a plan, 1 something is missing for one, 2 usage or configuration.
    """
    with contextlib.closing(output.ProgressBar("reading runs")) as bar:
        made = make_plan(wiring.workspace_of(repo), target, bar.show)
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
