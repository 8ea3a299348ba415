"""`cra check`: check that everything works, with a remedy for every problem."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.leftovers import reap
from clean_room_agent.app.record_check import CheckFinding
from clean_room_agent.app.self_check import as_object, record_checks, run_checks, suite_checks, try_sandbox
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.model_calls import CallEvent, CallStarted, ServerAwaited
from clean_room_agent.cli import options, output
from clean_room_agent.cli.main import with_repo
from clean_room_agent.cli.output import fitted
from clean_room_agent.errors import UsageError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace


@click.command()
@options.repo_option
@options.json_option
@click.option("--sandbox", is_flag=True, help="Try to escape from the sandbox, in ten ways.")
@click.option("--tests", is_flag=True, help="Run the tests once, as a run would before it changes anything.")
@click.option("--record", is_flag=True, help="Check the record for damage and inconsistencies.")
@click.option("--thorough", is_flag=True, help="With --record: also compare its indexes with its tables.")
@click.option("--repair", is_flag=True, help="Clean up after runs whose process died.")
def command(
    repo: Path, as_json: bool, sandbox: bool, tests: bool, record: bool, thorough: bool, repair: bool
) -> int:
    """Check git, the model server and its models, the window, the test command and the index."""
    if sandbox + tests + record + repair > 1:
        raise UsageError("--sandbox, --tests, --record and --repair exclude each other")
    if repair:
        return _clean_up_leftovers(wiring.workspace_of(repo), as_json=as_json)
    lines = []
    for found in _asked_for(repo, sandbox=sandbox, tests=tests, record=record, thorough=thorough):
        line = replace(found, remedy=with_repo(found.remedy, repo))
        lines.append(line)
        if not as_json:
            mark = click.style("ok  ", fg="green") if line.ok else click.style("FAIL", fg="red", bold=True)
            click.echo(fitted(f"{mark} {line.name}: {output.safe(line.text)}", sys.stdout))
            if line.remedy and not line.ok:
                click.echo(fitted(f"       -> {output.safe(line.remedy)}", sys.stdout))
    code = next((line.exit_code for line in lines if not line.ok), 0)
    if as_json:
        output.answer_json(
            {"ok": code == 0, "exit_code": code, "checks": [as_object(line) for line in lines]}
        )
    return code


def _asked_for(
    repo: Path, *, sandbox: bool, tests: bool, record: bool, thorough: bool
) -> Iterator[CheckFinding]:
    if sandbox:
        return try_sandbox()
    if tests:
        return suite_checks(repo)
    return record_checks(repo, thorough=thorough) if record else run_checks(repo, Waiting())


class Waiting:
    """Says on standard error what is waited for."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self, event: CallEvent) -> None:
        """Print a line before the model is asked first, and one where the server is busy."""
        if isinstance(event, CallStarted) and not self._asked:
            self._asked = True
            output.aside(f"note: asking {event.model}, which takes minutes where it is slow or busy")
        elif isinstance(event, ServerAwaited):
            output.aside(f"note: {event.said}; waiting for it")


def _clean_up_leftovers(workspace: Workspace, *, as_json: bool) -> int:
    settings = load_settings(workspace.config, Overrides(), optional=True)
    done = reap(workspace, open_repository(workspace.repo), wiring.worktrees_folder(workspace, settings))
    if as_json:
        output.answer_json({"repaired": done})
    else:
        output.answer("\n".join(done) or "nothing to clean up")
    return 0
