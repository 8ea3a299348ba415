"""`cra curate-data`: make a dataset for a training plan from the record."""

import contextlib
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.training_parts import TARGETS, curate_data
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import to_shown

FORMATS = ("trl", "axolotl", "llama-factory", "unsloth", "openai")


@click.command()
@click.option(
    "--plan",
    "given",
    metavar="ID|FILE",
    help="The plan: its number, or the file that `cra train-plan -o` wrote.",
)
@click.option(
    "--target", type=click.Choice(TARGETS), help="Instead of a plan: this prompt, with the default criteria."
)
@click.option(
    "-o",
    "--output",
    "place",
    type=options.OUTPUT_FOLDER,
    help="The folder; ./dataset-PROMPT by default.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="trl",
    show_default=True,
    help="The trainer that will load it.",
)
@options.repo_option
@options.json_option
@options.exact_option
def command(
    given: str | None,
    target: str | None,
    place: Path | None,
    form: str,
    repo: Path,
    as_json: bool,
) -> int:
    """Make a dataset from the record of all runs: good answers to learn from, pairs, and answers with their outcome.

    Exit codes: 0 written, 1 no good example is left, 2 usage, plan, folder or configuration, or the extra `data` is
    missing.
    """
    if (given is None) == (target is None):
        raise UsageError("give either --plan ID|FILE or --target PROMPT")
    with contextlib.closing(output.ProgressBar("reading runs")) as bar:
        made, plan, plan_id = curate_data(
            wiring.workspace_of(repo),
            given=given,
            target=target,
            folder=place,
            trainer=form,
            progress=bar.show,
        )
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
