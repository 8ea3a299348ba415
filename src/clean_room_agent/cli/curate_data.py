"""`cra curate-data`: a dataset for a training plan, from the record."""

import contextlib
import os
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.training_parts import (
    TARGETS,
    plan_for,
    stage_names,
    store_plan,
    training_parts,
)
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.curate_data import show
from clean_room_agent.errors import UsageError

FORMATS = ("trl", "axolotl", "llama-factory", "unsloth", "openai")


@click.command()
@click.option(
    "--plan", "given", metavar="ID|FILE", help="The plan: its number, or the file of `cra train-plan -o`."
)
@click.option(
    "--target", type=click.Choice(TARGETS), help="In place of a plan: this prompt, by the default criteria."
)
@click.option(
    "-o",
    "--output",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder; by default dataset-PROMPT here.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="trl",
    show_default=True,
    help="Who is to load it.",
)
@options.repo_option
@options.budget_options
@options.json_option
@options.exact_option
def command(
    given: str | None,
    target: str | None,
    place: Path | None,
    form: str,
    repo: Path,
    stages: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    budget_config: Path | None,
    as_json: bool,
) -> int:
    """Make a dataset from the record of all runs: good answers to learn, pairs, and answers with their outcome.

    Ends with 0 and the folder, or with 1 where no good example is left, saying why; 2: the command, the plan, the folder,
    the configuration, or the extra `data` is missing; 3: the model server.
    """
    from clean_room_agent.training.dataset_filters import require_extra

    if (given is None) == (target is None):
        raise UsageError("say once what for: --plan ID|FILE, or --target PROMPT")
    require_extra()
    from clean_room_agent.redaction import Redactor, secret_values
    from clean_room_agent.training.curate import curate
    from clean_room_agent.training.dataset import require_free
    from clean_room_agent.training.dataset_formats import FORMATS as KNOWN

    workspace = wiring.workspace_of(repo)
    overrides = Overrides(
        context_window=context_window, reserved_tokens=reserved_tokens, budget_config=budget_config
    )
    names = stage_names(stages, "data_selection")
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, overrides)
    with (
        contextlib.closing(output.ProgressBar("reading runs")) as bar,
        training_parts(workspace, settings, bar.show) as parts,
    ):
        plan, plan_id = plan_for(parts, given, target)
        folder = place or Path(f"dataset-{plan.target}")
        require_free(folder)
        plan_id = plan_id or store_plan(parts, plan)
        role = parts.source.prompts[plan.target].role
        made = curate(
            parts.pipeline,
            parts.source,
            plan,
            plan_id,
            folder,
            KNOWN[form],
            redactor=Redactor(workspace.secret_key, secret_values(os.environ)),
            count=lambda text: parts.pipeline.models.count(text, role),
            stages=names,
        )
    show(made, plan.target, plan_id, as_json=as_json)
    return 0 if made.written else 1
