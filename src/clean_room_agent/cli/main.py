"""The `cra` command: commands by name, imported when they are used, and the only handler of uncaught errors."""

import errno
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from clean_room_agent.cli.display import Display
from clean_room_agent.cli.folding import fitted
from clean_room_agent.errors import CraError
from clean_room_agent.version import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """Where a command lives, and the line that `cra --help` shows for it."""

    module: str
    help: str


COMMANDS: dict[str, CommandEntry] = {
    "init": CommandEntry(module="init", help="Find the model server and the tests; write the configuration."),
    "check": CommandEntry(module="check", help="Is everything here to work? Each line with its remedy."),
    "config": CommandEntry(
        module="config", help="Show, get and set configured values, and where each is from."
    ),
    "models": CommandEntry(
        module="models", help="What the model server has, and which model does which job."
    ),
    "index": CommandEntry(module="index", help="Build or refresh the knowledge base."),
    "enrich": CommandEntry(module="enrich", help="Have a model describe each file that changed since."),
    "retrieve": CommandEntry(module="retrieve", help="Show the curated context for a task."),
    "plan": CommandEntry(module="plan", help="Write a plan for a task, to review and edit."),
    "solve": CommandEntry(module="solve", help="Solve a task: a branch whose tests pass, with its record."),
    "batch": CommandEntry(
        module="batch", help="Solve many tasks, several at a time; goes on where it ended."
    ),
    "apply": CommandEntry(module="apply", help="Bring a run's result into the working tree."),
    "discard": CommandEntry(module="discard", help="Delete a run's branch and what it kept."),
    "runs": CommandEntry(module="runs", help="List the runs of this repository."),
    "show": CommandEntry(module="show", help="Look into a run: prompts, decisions, diffs, tests."),
    "report": CommandEntry(module="report", help="Write a run as one HTML page that needs nothing else."),
    "replay": CommandEntry(module="replay", help="Run again with the recorded answers, no server."),
    "prune": CommandEntry(module="prune", help="Say what takes room, and take away what may go."),
    "stats": CommandEntry(
        module="stats", help="What calls cost and how right they were; where tasks were lost."
    ),
    "train-plan": CommandEntry(module="train_plan", help="Plan the adapter that would win the most tasks."),
    "curate-data": CommandEntry(
        module="curate_data", help="Make a dataset for a training plan from the record."
    ),
    "bootstrap": CommandEntry(module="bootstrap", help="Make training pairs from commit histories."),
    "train": CommandEntry(
        module="train", help="Train an adapter on a dataset, by TRL in a process of its own."
    ),
    "adapters": CommandEntry(module="adapters", help="Evaluate, deploy, list and retire trained adapters."),
    "mcp": CommandEntry(module="mcp", help="Serve an editor or another agent: the Model Context Protocol."),
    "demo": CommandEntry(module="demo", help="The tour: a sample project with a real bug, solved."),
    "bug-report": CommandEntry(
        module="bug_report", help="Collect what a maintainer needs into a file; sends nothing."
    ),
    "completion": CommandEntry(module="completion", help="Print the shell's completion script."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is run, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table, which is the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The named command, imported now; None where there is no such command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = _import_quickly(f"clean_room_agent.cli.{entry.module}")
        command = module.command
        assert isinstance(command, click.Command)
        _add_examples(command, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table's own help lines, so that no command is imported for them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; `help COMMAND` asks for the command's help."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest command named where there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"no command {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)


def _add_examples(command: click.Command, name: str) -> None:
    """The command's help ends with its examples, as does that of each command in it."""
    from clean_room_agent.cli.examples import epilog_of

    command.epilog = epilog_of(name)
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            _add_examples(each, f"{name} {inner}")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", prog_name="cra")
def cra() -> None:
    """A coding agent for small local models.

    A task in words and a git repository go in; a branch whose tests pass comes out,
    with a complete record of how. Begin with `cra demo`, or with `cra init` in a repository.
    """


def _import_quickly(name: str) -> ModuleType:
    """The module, imported without the garbage collector, which would look through all that stays: a sixth of the time."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with a documented exit code."""
    # Whoever started us may have left it ignored or blocked: how a child ended would then be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """The exit code of one command line: errors are told on standard error and mapped to codes here alone.

    With `--json`, standard output has the error as well, as an object, where it has no answer: whoever reads that alone
    learns why.
    """
    display = Display(os.environ)
    words = list(sys.argv[1:] if args is None else args)
    try:
        result: Any = cra.main(
            args=words,
            prog_name="cra",
            standalone_mode=False,
            obj=display,
        )
    except (click.Abort, KeyboardInterrupt):
        result = Reported(message="interrupted", exit_code=130)
    except Exception as error:  # noqa: BLE001 - the last door: a bug is reported, never shown raw
        result = _reported(error, display)
    if isinstance(result, Reported):
        _tell(result, display, as_json="--json" in words and not display.answered)
        result = result.exit_code
    if note := display.note():
        click.echo(fitted(note, sys.stderr), err=True)
    return result if isinstance(result, int) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """An error as it is told."""

    message: str
    hint: str = ""
    exit_code: int


def _reported(error: Exception, display: Display) -> "Reported | int":
    """What is said of what a command raised; the exit code alone where nothing is."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case BrokenPipeError():
            # The reader of our output went away; nothing is left to tell it, and the interpreter must not try.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    code = 1
    match error:
        case CraError():
            message, hint, code = error.message, error.hint, error.exit_code
        case click.ClickException():
            message, hint, code = error.format_message(), _where_to_read(error), 2
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            message, hint = f"the disk is full: {error}", "make room, then give the command again"
        case _:
            message = f"this is a bug in cra: {type(error).__name__}: {error}"
            hint = f"the details are in {_write_traceback(error, display)}; `cra bug-report` adds what else helps"
    return Reported(message=message, hint=hint, exit_code=code)


def _where_to_read(error: click.ClickException) -> str:
    """The command whose help would have said it."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path} --help" if context else ""


def _tell(told: Reported, display: Display, *, as_json: bool) -> None:
    message, hint = display.safe(told.message), display.safe(told.hint)
    click.echo(fitted(click.style("error: ", fg="red", bold=True) + message, sys.stderr), err=True)
    if hint:
        click.echo(fitted(click.style("  -> ", fg="cyan") + hint, sys.stderr), err=True)
    if as_json:
        import json

        click.echo(json.dumps({"error": message, "hint": hint, "exit_code": told.exit_code}))


def _write_traceback(error: Exception, display: Display) -> Path:
    import tempfile
    import traceback

    handle, name = tempfile.mkstemp(prefix="cra-bug-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(display.redact("".join(traceback.format_exception(error))))
    return Path(name)
