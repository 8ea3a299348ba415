"""`cra train-plan`: plan the adapter that would help most, from the record."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.app.training_task import open_logs, recorded_task
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw.training import TRAINING_PLANS
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.report.stats import waterfall_object
from clean_room_agent.training.train_plan import make_training_plan, row_of


@click.command()
@click.option("--target", type=click.Choice(tuple(BY_NAME)), help="Plan for this prompt, or explain why not.")
@options.repo_option
@click.option("-o", "--output", "place", type=options.OUTPUT_FILE, help="Write the plan to a file.")
@options.json_option
@options.exact_option
def command(target: str | None, repo: Path, place: Path | None, as_json: bool) -> int:
    """Plan the training of an adapter from the record of all runs.

    Exit codes: 0 a plan, 1 something is missing for one, 2 usage or configuration.
    """
    workspace, plan_id = wiring.workspace_of(repo), 0
    with (
        output.ProgressBar("reading runs") as bar,
        open_logs(workspace) as (access, logs),
        recorded_task(access, "train_plan", workspace) as task,
    ):
        targets = tuple(BY_NAME) if target is None else (target,)
        made = make_training_plan(logs, BY_NAME, targets, access.router, bar.show, task_id=task.task_id)
        task.detail = made.reason
        if made.plan is not None:
            row = row_of(made.plan, task_id=task.task_id, raw="", now=access.record.now())
            plan_id = access.record.write(TRAINING_PLANS.insert, row)
            task.success, task.plan = True, made.plan.model_dump_json()
            task.detail = f"train {made.plan.target}"
    if made.plan is not None and place is not None:
        atomic_write(place, made.plan.model_dump_json(indent=2) + "\n")
        output.aside(f"wrote {place}; next: cra curate-data --plan {place}")
    if as_json:
        output.answer_json(
            {
                "plan_id": plan_id,
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
        output.answer(f"training plan {plan_id}: an adapter of {made.plan.base_model} for {made.plan.target}")
        output.answer(made.plan.model_dump_json(indent=2))
        output.answer(f"next: cra curate-data --plan {plan_id}")
    return 0 if made.plan is not None else 1
