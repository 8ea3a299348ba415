"""The `cra` command: commands by name, imported when they are used, and the only handler of uncaught errors."""

import contextlib
import gc
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from clean_room_agent.cli.output import Display, fitted, visible
from clean_room_agent.errors import (
    CraError,
    Interrupted,
    RecordError,
    RepositoryError,
    UsageError,
    remedy_for,
    system_fault,
)
from clean_room_agent.version import VERSION

COMMANDS: dict[str, str] = {
    "init": "Find the model server and the tests; write the configuration.",
    "check": "Check that everything works; every problem has a remedy.",
    "config": "Show, get and set configured values, and where each comes from.",
    "models": "Show the models on the server, and which one does what.",
    "index": "Build or refresh the index of the repository.",
    "enrich": "Have a model describe each file that changed.",
    "retrieve": "Show the context for a task.",
    "plan": "Write a plan for a task, to review and edit.",
    "solve": "Solve a task: a branch whose tests pass, with its record.",
    "batch": "Solve many tasks, several at a time; run again, it continues.",
    "apply": "Apply a run's result to the working tree.",
    "discard": "Delete a run's branch and what git keeps of it.",
    "runs": "List the runs of this repository.",
    "show": "Look into a run: prompts, decisions, diffs, tests.",
    "report": "Write a run as one self-contained HTML page.",
    "replay": "Repeat a run with its recorded answers, without a server.",
    "prune": "Show what can be deleted to save space, and delete it.",
    "stats": "Show what calls cost, how right they were, and where tasks were lost.",
    "tonight": "Train an adapter on your own repositories, and prove it.",
    "train-plan": "Plan the adapter that would help most.",
    "curate-data": "Make a dataset for a training plan from the record.",
    "bootstrap": "Make training pairs from commit histories.",
    "train": "Train an adapter on a dataset, with TRL.",
    "adapters": "Evaluate, deploy, list and retire trained adapters.",
    "mcp": "Serve an editor or another agent (Model Context Protocol).",
    "demo": "Take a tour: a sample project with a real bug, solved.",
    "bug-report": "Collect what a maintainer needs in a file; sends nothing.",
    "completion": "Print or install the shell's completion script.",
}
"""The line that `cra --help` shows for each command; its module has the same name."""
NO_REPO = frozenset({"demo", "completion"})
"""Commands without the option `--repo`."""


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is run, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table, which is the order in which people use them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The named command, imported now; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command = importlib.import_module(f"clean_room_agent.cli.{module}").command
        gc.enable()  # `start` has switched it off
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table's own help lines, so that no command is imported for them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Offer the table's commands, likewise."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=told) for name, told in COMMANDS.items() if name.startswith(incomplete)
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `help COMMAND` as `COMMAND --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"no command {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None and (not rest or {"-h", "--help"} & set(rest)):
            _add_examples(command, name)  # only help shows them, which a group without a command does too
        return name, command, rest


def _add_examples(command: click.Command, name: str) -> None:
    """Append the examples to the help of a command and of its subcommands."""
    from clean_room_agent.cli.examples import epilog_of

    command.epilog = epilog_of(name)
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            _add_examples(each, f"{name} {inner}")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", prog_name="cra")
def cra() -> None:
    """A coding agent for small local models.

    Give it a task in words and a git repository; it gives you a branch whose tests pass,
    with a complete record. Begin with `cra demo`, or with `cra init` in a repository.
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line as the only one of this process, and return its exit code."""
    # The parent may have left it ignored or blocked; the exit status of children would then be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    if not sys.warnoptions:  # Python would tell the user what it thinks of a model's code
        warnings.simplefilter("ignore", SyntaxWarning)
    return run(args)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. All errors are reported and mapped to exit codes here.

    With `--json`, an error also goes to standard output, as an object, unless an answer was already printed there.
    """
    display = Display(os.environ)
    words = list(sys.argv[1:] if args is None else args)
    try:
        result: Any = cra.main(args=words, prog_name="cra", standalone_mode=False, obj=display)
    except (click.Abort, KeyboardInterrupt):
        result = Interrupted("interrupted")
    except SystemExit:
        # click ends so where a pipe breaks, as if nobody read the output, which never raises that (`streams.Output`).
        result = CraError("this is a bug in cra: a process that it talked to has ended")
    except Exception as error:  # noqa: BLE001 - a bug is reported, never shown as a traceback
        result = _report_for(error, display)
    if isinstance(result, CraError):
        _print_report(result, display, as_json="--json" in words and not display.answered)
        result = result.exit_code
    if note := display.note():
        click.echo(fitted(note, sys.stderr), err=True)
    return result if isinstance(result, int) else 0


def _report_for(error: Exception, display: Display) -> CraError | int:
    """The error as the user sees it; the exit code alone if there is nothing to say."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            return UsageError(error.format_message(), hint=_where_to_read(error))
    known = error if isinstance(error, CraError) else _explain_error(error, display)
    if known is not None:
        return known
    message = f"this is a bug in cra: {type(error).__name__}: {error}"
    return CraError(message, hint=_write_traceback(error, display))


def _explain_error(error: Exception, display: Display) -> CraError | None:
    """What the environment did to cause the error; None if that is not known."""
    known = system_fault(error)  # at first, since nothing can be imported when too many files are open
    if known is not None:
        return known
    try:
        return explain_fault(error, display.repo)
    except Exception:  # noqa: BLE001 - looking for the cause met the same fault, or another; the error is reported as it is
        return None


def explain_fault(error: Exception, repo: Path | None) -> CraError | None:
    """The error as the user should see it; None if it is a bug. `repo`: the repository, or a folder in it."""
    if isinstance(error, FileNotFoundError) and (gone := _missing_place()):
        return gone
    if isinstance(error, OverflowError) and "SQLite INTEGER" in str(error):
        return UsageError("a number has more than 64 bits", hint="give a smaller one")
    return None if repo is None else _damage_error(repo)


def _missing_place() -> CraError | None:
    """An error if the current folder, or every folder for temporary files, is gone."""
    import tempfile

    try:
        Path.cwd()
    except FileNotFoundError:
        return RepositoryError("the current folder no longer exists", hint="cd to one that does")
    try:
        tempfile.gettempdir()
    except FileNotFoundError as exc:
        return UsageError(
            f"there is no folder for temporary files: {exc.strerror}",
            hint="let TMPDIR name one that can be written",
        )
    return None


def _damage_error(repo: Path) -> CraError | None:
    """An error that names the first of the repository's databases that is damaged."""
    from clean_room_agent.app import wiring
    from clean_room_agent.app.record_check import find_damage

    with contextlib.suppress(CraError, OSError):
        damage = find_damage(wiring.workspace_of(repo))
        if damage is not None:
            return RecordError(damage.text, hint=damage.remedy)
    return None


def _where_to_read(error: click.ClickException) -> str:
    """The command whose help explains the usage."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return ""
    where = f"{context.command_path} --help"
    if isinstance(error, click.NoSuchOption) and isinstance(context.command, click.Group):
        return f"{where}; an option stands behind its command: {context.command_path} COMMAND {error.option_name}"
    return where


def with_repo(hint: str, repo: Path | None) -> str:
    """The hint, with the `--repo` that the user gave after each command that it names; None, or the current folder: unchanged.

    A command reaches to its closing backtick; without one, to the end of the line or clause.
    """
    if repo is None or repo == Path():
        return hint
    import re
    import shlex

    words = "|".join(sorted(COMMANDS.keys() - NO_REPO, key=len, reverse=True))
    command = rf"cra (?:{words})(?![\w-])"
    named = re.compile(rf"`{command}[^`\n]*|\b{command}(?:(?!; |, )[^`\n])*")
    there = f" --repo {shlex.quote(str(repo))}"
    return named.sub(lambda match: match[0] if "--help" in match[0] else match[0] + there, hint)


def _print_report(told: CraError, display: Display, *, as_json: bool) -> None:
    from clean_room_agent.cli.streams import failure_of

    try:
        message, hint = display.safe(told.message), display.safe(with_repo(told.hint, display.repo))
    except OSError as exc:  # what takes secrets out cannot be loaded: then only the reason for that is told
        message, hint = visible(f"{exc.strerror}: {exc.filename}"), remedy_for(exc)
    click.echo(fitted(click.style("error: ", fg="red", bold=True) + message, sys.stderr), err=True)
    if hint:
        click.echo(fitted(click.style("  -> ", fg="cyan") + hint, sys.stderr), err=True)
    if as_json:
        import json

        click.echo(json.dumps({"error": message, "hint": hint, "exit_code": told.exit_code}))
    elif failure_of(sys.stderr) is not None:
        click.echo(f"error: {message}")


def _write_traceback(error: Exception, display: Display) -> str:
    """Write it to a file, and return a hint to that."""
    try:
        import tempfile

        from clean_room_agent.app.tracebacks import log_text

        told = display.redact(log_text(error))
        handle, name = tempfile.mkstemp(prefix="cra-bug-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(told)
    except OSError as exc:
        return f"the details cannot be written: {exc.strerror}"
    return f"the details are in {name}; `cra bug-report` collects the rest"
