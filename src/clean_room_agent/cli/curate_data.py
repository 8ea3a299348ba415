"""`cra curate-data`: a dataset for a training plan, from the record."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.settings import Overrides, load_settings
from clean_room_agent.cli.training_parts import TARGETS, TrainingParts, stage_names, training_parts
from clean_room_agent.db.raw.training import append_training_plan, get_training_plan
from clean_room_agent.errors import UsageError

if TYPE_CHECKING:
    from clean_room_agent.training.curate import Curated
    from clean_room_agent.training.plan import TrainingPlan

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
    options.require_record(workspace)
    settings = load_settings(workspace.config, overrides)
    with training_parts(workspace, settings) as parts:
        plan, plan_id = _plan(parts, given, target)
        folder = place or Path(f"dataset-{plan.target}")
        require_free(folder)
        plan_id = plan_id or _store(parts, plan)
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
    _show(made, plan.target, plan_id, as_json=as_json)
    return 0 if made.written else 1


def _show(made: "Curated", target: str, plan_id: int, *, as_json: bool) -> None:
    if as_json:
        output.answer_json(
            {
                "dataset_id": made.dataset_id,
                "plan_id": plan_id,
                "folder": made.written and str(made.written.folder),
                "files": output.plain(made.written.files) if made.written else [],
                "left_out": made.exclusions,
            }
        )
        return
    if made.written is None:
        output.answer(f"no good example of {target} is left; nothing was written")
    else:
        output.answer(f"{made.written.folder}: dataset {made.dataset_id} for {target}")
        for file in made.written.files:
            output.answer(f"  {file.rows:>7,}  {file.path}")
    for reason, number in made.exclusions.items():
        output.answer(f"  {number:>7,}  left out: {reason}")


def _plan(parts: TrainingParts, given: str | None, target: str | None) -> tuple["TrainingPlan", int]:
    """The plan, and its number in the record; 0 where it is not there yet.

    Raises:
        UsageError: there is no such plan, or it is for a prompt that there is not.
    """
    from clean_room_agent.training.plan import plan_of, read_plan
    from clean_room_agent.training.planning import default_plan

    if given is None:
        assert target is not None
        return default_plan(parts.source.prompts[target], parts.router), 0
    if given.isdecimal():
        known = parts.pipeline.record.write(get_training_plan, int(given))
        if known is None:
            raise UsageError(
                f"there is no training plan {given}", hint="`cra train-plan` makes one and tells its number"
            )
        return plan_of(known), known.id
    plan = read_plan(Path(given))
    if plan.target not in TARGETS:
        raise UsageError(
            f"{given}: target: no prompt is called {plan.target!r}", hint=f"prompts: {', '.join(TARGETS)}"
        )
    return plan, 0


def _store(parts: TrainingParts, plan: "TrainingPlan") -> int:
    from clean_room_agent.training.plan import row_of

    pipeline = parts.pipeline
    row = row_of(
        plan, task_id=pipeline.session.task_id, raw=plan.model_dump_json(), now=pipeline.record.now()
    )
    return pipeline.record.write(append_training_plan, row)
