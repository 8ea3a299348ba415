"""`cra tonight`: data, training and gate for the user's own repositories, with one command."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.package_extras import require_extras
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.app.tonight import Night
    from clean_room_agent.db.raw.training import AdapterRow, EvaluationRow


@click.command()
@click.argument(
    "repositories", nargs=-1, metavar="[REPO]...", type=click.Path(path_type=Path, file_okay=False)
)
@click.option(
    "--base",
    required=True,
    type=click.Path(path_type=Path),
    help="The weights of the model that [models] coding names: a GGUF file, or a folder that transformers can load.",
)
@click.option(
    "--faults",
    type=options.number(1),
    default=200,
    show_default=True,
    help="Plant at most this many faults in each repository.",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    default=8.0,
    show_default=True,
    help="What the training may take; of more rows, the shortest of each function are trained on.",
)
@options.python_option
@click.option("--cpu", is_flag=True, help="Do not use GPUs.")
@click.option(
    "--server",
    default="llama-server",
    show_default=True,
    help="The program that is started for the gate, if the configured server is llama-server.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=options.OUTPUT_FOLDER,
    help="The folder of data and page; one in .clean_room/tonight by default.",
)
@click.option("--yes", is_flag=True, help="Do not ask before it begins.")
@options.repo_option
@options.json_option
@options.exact_option
def command(
    repositories: tuple[Path, ...],
    base: Path,
    faults: int,
    hours: float,
    python: str,
    cpu: bool,
    server: str,
    folder: Path | None,
    yes: bool,
    repo: Path,
    as_json: bool,
) -> int:
    """Train an adapter on faults planted in your own repositories (paths; the current one by default), and let the gate decide
    whether it is better than its base.

    What is committed counts, under any licence or none: unlike the data of `cra bootstrap`, this stays on your machine. It says
    first what it will take. Begun again after an interruption, it continues. It deploys nothing.

    Exit codes: 0 the adapter passed the gate, 1 it did not, or something failed on the way, 2 usage, configuration or something
    missing, 3 model server.
    """
    require_extras("data")
    from clean_room_agent.app.settings import Overrides, load_settings
    from clean_room_agent.app.tonight import open_night
    from clean_room_agent.training.train import Machine, native_bfloat16

    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget", "stages")
    workspace.create()
    machine = Machine(
        python=python, dtype="bfloat16" if native_bfloat16() else "float32", device="cpu" if cpu else "auto"
    )
    with output.ProgressBar("tonight") as bar:

        def say(text: str) -> None:
            bar.close()
            output.aside(text)

        night = open_night(
            workspace,
            settings,
            repositories,
            base,
            faults=faults,
            hours=hours,
            machine=machine,
            server=server,
            folder=folder,
            progress=bar.show,
            say=say,
        )
        if night.state.data is None:
            night.learn()
            say("\n".join(night.outlook()))
            _require_consent(yes=yes)
            night.make_data()
        say(night.training_outlook())
        night.train()
        adapter, evaluation = night.evaluate()
    return _write_page(workspace, night, adapter, evaluation, as_json=as_json)


def _require_consent(*, yes: bool) -> None:
    """Ask at a terminal; elsewhere, giving the command is consent. Raises UsageError if the answer is no."""
    if not yes and sys.stdin.isatty() and not click.confirm("begin?", default=True, err=True):
        raise UsageError("nothing was begun", hint="fewer --faults or --hours make it shorter")


def _write_page(
    workspace: Workspace, night: "Night", adapter: "AdapterRow", evaluation: "EvaluationRow", *, as_json: bool
) -> int:
    """Write the page, and print what it says in short."""
    from clean_room_agent.app.tonight import PAGE
    from clean_room_agent.file_contents import atomic_write
    from clean_room_agent.report.page.night import night_html, night_page
    from clean_room_agent.training.gate import finding_lines

    page = night_page(
        night.data,
        adapter,
        evaluation,
        output.safe,
        program=night.ready.program,
        there=output.repo_flag(workspace),
    )
    path = night.folder / PAGE
    atomic_write(path, night_html(page), private=True)
    if as_json:
        ids = {"dataset_id": night.data.dataset, "adapter_id": adapter.id, "evaluation_id": evaluation.id}
        told: dict[str, Any] = {"page": str(path), **ids, "passed": evaluation.passed}
        output.answer_json({**told, "data": night.data, "trained": page.trained, "finding": page.finding})
    else:
        lines = [page.planted, page.taught, *finding_lines(adapter.model_tag, page.finding), f"page: {path}"]
        output.answer("\n".join([*lines, *(f"next: {line}  ({what})" for line, what in page.commands)]))
    return 0 if evaluation.passed else 1
