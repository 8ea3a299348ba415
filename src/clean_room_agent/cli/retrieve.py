"""`cra retrieve`: print the context for a task, for a person or another tool."""

from pathlib import Path
from typing import IO

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.retrieve import retrieval_settings, retrieve
from clean_room_agent.app.settings import Overrides
from clean_room_agent.cli import options, output
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.raw import passes
from clean_room_agent.report.package import as_markdown, as_object
from clean_room_agent.retrieval.retriever import Retrieved

FORMATS = ("text", "json", "markdown", "prompt")


@click.command()
@options.task_argument
@options.repo_option
@options.issue_option
@options.budget_options
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="The output format.")
@click.option("--no-model", is_flag=True, help="Decide by score alone; needs no model server.")
@options.json_option
@options.exact_option
def command(
    task: str | None,
    repo: Path,
    issue: IO[str] | None,
    overrides: Overrides,
    form: str,
    no_model: bool,
    as_json: bool,
) -> int:
    """Show the context for TASK: what is included, in what detail, why, and how many tokens it takes."""
    workspace = output.opened(wiring.workspace_of(repo))
    words = options.task_text(task, issue)
    settings = retrieval_settings(workspace, overrides, use_model=not no_model, warn=output.aside)
    with watching(None) as observer:
        found = retrieve(workspace, settings, words, observer, use_model=not no_model)
    for note in found.notes:
        output.aside(note)
    show(found.retrieved, found.decisions, "json" if as_json else form)
    return 0


def show(found: Retrieved, rows: tuple[passes.DecisionRow, ...], form: str) -> None:
    """Write the package to standard output in one of `FORMATS`."""
    package = found.package
    if form == "json":
        output.answer_json(as_object(package, found.candidates, rows))
    elif form == "markdown":
        output.answer(as_markdown(package))
    elif form == "prompt":
        output.hand_on(package.to_prompt_text())
    else:
        from clean_room_agent.cli.safe_console import answers_console
        from clean_room_agent.report.package import as_table

        console = answers_console()
        console.print(as_table(package, rows, width=console.width), highlight=False, soft_wrap=True)
