"""How `cra retrieve` prints a context: as a table, JSON, Markdown or a prompt."""

from clean_room_agent.cli import output
from clean_room_agent.db.raw import decisions
from clean_room_agent.report.package import as_markdown, as_object
from clean_room_agent.retrieval.retriever import Retrieved


def show(found: Retrieved, rows: tuple[decisions.DecisionRow, ...], form: str) -> None:
    """Write the package to standard output in one of `FORMATS`."""
    package = found.package
    if form == "json":
        output.answer_json(as_object(package, found.candidates, rows))
    elif form == "markdown":
        output.answer(as_markdown(package))
    elif form == "prompt":
        output.hand_on(package.to_prompt_text())
    else:
        from clean_room_agent.report.package_table import as_table

        console = output.console()
        console.print(as_table(package, rows, width=console.width), highlight=False, soft_wrap=True)
