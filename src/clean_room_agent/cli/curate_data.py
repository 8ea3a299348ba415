"""`cra curate-data`: make a dataset for a training plan from the record."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.package_extras import require_extras
from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.app.training_task import open_logs, recorded_task
from clean_room_agent.artifacts.names import row_number
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_PLANS, get_training_plan
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.curate import Curated
    from clean_room_agent.training.train_plan import TrainingPlan


@click.command()
@click.option(
    "--plan",
    "given",
    metavar="ID|FILE",
    help="The plan: its number, or the file that `cra train-plan -o` wrote.",
)
@click.option(
    "--target",
    type=click.Choice(tuple(BY_NAME)),
    help="Instead of a plan: this prompt, with the default criteria.",
)
@click.option(
    "-o", "--output", "place", type=options.OUTPUT_FOLDER, help="The folder; ./dataset-PROMPT by default."
)
@click.option(
    "--format",
    "form",
    type=options.TRAINERS,
    default="trl",
    show_default=True,
    help="The trainer that will load it.",
)
@options.repo_option
@options.json_option
@options.exact_option
def command(
    given: str | None, target: str | None, place: Path | None, form: str, repo: Path, as_json: bool
) -> int:
    """Make a dataset from the record of all runs: good answers to learn from, pairs, and answers with their outcome.

    Exit codes: 0 written, 1 no good example is left, 2 usage, plan, folder or configuration, or the extra `data` is
    missing.
    """
    if (given is None) == (target is None):
        raise UsageError("give either --plan ID|FILE or --target PROMPT")
    with output.ProgressBar("reading runs") as bar:
        made, plan, plan_id = _curate_dataset(wiring.workspace_of(repo), given, target, place, form, bar)
    if as_json:
        output.answer_json(
            {
                "dataset_id": made.dataset_id,
                "plan_id": plan_id,
                "folder": made.written and str(made.written.folder),
                "files": to_shown(made.written.files) if made.written else [],
                "left_out": made.exclusions,
            }
        )
        return 0 if made.written else 1
    if made.written is None:
        output.answer(f"no good example of {plan.target} is left; nothing was written")
    else:
        output.answer(f"{made.written.folder}: dataset {made.dataset_id} for {plan.target}")
        for file in made.written.files:
            output.answer(f"  {file.rows:>7,}  {file.path}")
    for reason, number in made.exclusions.items():
        output.answer(f"  {number:>7,}  left out: {reason}")
    return 0 if made.written else 1


def _curate_dataset(
    workspace: Workspace,
    given: str | None,
    target: str | None,
    folder: Path | None,
    trainer: str,
    bar: output.ProgressBar,
) -> "tuple[Curated, TrainingPlan, int]":
    """Make a dataset from the record, and store its plan there if it is new: the outcome, the plan and its number."""
    require_extras("data")
    from clean_room_agent.redaction import Redactor, secret_values
    from clean_room_agent.training.curate import curate
    from clean_room_agent.training.dataset import FORMATS, require_free
    from clean_room_agent.training.train_plan import row_of

    with contextlib.ExitStack() as stack:
        access, logs = stack.enter_context(open_logs(workspace))
        # What is wrong with the arguments is found before there is a task: it is no failed curation.
        plan, plan_id = _plan_for(access.record, access.router, given, target)
        prompt = BY_NAME[plan.target]
        place = folder or Path(f"dataset-{plan.target}")
        require_free(place)
        task = stack.enter_context(recorded_task(access, "curate_data", workspace))
        if not plan_id:
            row = row_of(plan, task_id=task.task_id, raw=plan.model_dump_json(), now=access.record.now())
            plan_id = access.record.write(TRAINING_PLANS.insert, row)
        curated = curate(
            access.record,
            logs,
            prompt,
            plan,
            plan_id,
            place,
            FORMATS[trainer],
            Redactor(workspace.secret_key, secret_values(os.environ)),
            lambda text: access.models.count(text, prompt.role),
            bar.show,
        )
        task.detail = f"no good example of {plan.target} is left"
        if curated.written is not None:
            rows = curated.written.count("sft")
            task.success, task.detail = True, f"{rows} rows in {curated.written.folder}"
    return curated, plan, plan_id


def _plan_for(
    record: Record, router: ModelRouter, given: str | None, target: str | None
) -> "tuple[TrainingPlan, int]":
    """The plan, and its number in the record; 0 if it is not recorded yet."""
    from clean_room_agent.training.train_plan import default_plan, plan_of, read_plan

    if given is None:
        return default_plan(BY_NAME[target or ""], router), 0
    if given.isdecimal():
        number = row_number(given)
        known = None if number is None else record.write(get_training_plan, number)
        if known is None:
            raise UsageError(
                f"there is no training plan {given}", hint="`cra train-plan` makes one and prints its number"
            )
        return plan_of(known), known.id
    plan = read_plan(Path(given))
    if plan.target not in BY_NAME:
        raise UsageError(
            f"{given}: target: no prompt is called {plan.target!r}", hint=f"prompts: {', '.join(BY_NAME)}"
        )
    return plan, 0
