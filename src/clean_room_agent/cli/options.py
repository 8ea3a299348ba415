"""Options that several commands share."""

import errno
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import structs

from clean_room_agent.artifacts.names import NEWEST_RUN
from clean_room_agent.cli.output import Display
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import read_given, require_text

MAX_INTEGER = (1 << 63) - 1
"""SQLite has 64 bits."""
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class RunName(click.ParamType[str]):
    """Any text, which the shell completes with the runs of the record."""

    name = "text"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem[str]]:
        """Those whose names begin with what is typed."""
        from clean_room_agent.cli.completing import name_runs

        found = name_runs(ctx, incomplete)
        return [CompletionItem(name, help=told) for name, told in found if name.startswith(incomplete)]


class _StorableNumber(click.IntRange):
    """A whole number from `least` on that the record can hold; the help shows the lower bound alone."""

    def __init__(self, least: int) -> None:
        super().__init__(min=least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        found = super().convert(value, param, ctx)
        if found > MAX_INTEGER:
            self.fail(f"{found} is larger than {MAX_INTEGER}", param, ctx)
        return found


def number(least: int) -> click.IntRange:
    """A whole number from `least` on that the record can hold."""
    return _StorableNumber(least)


RUN = RunName()
FILE = click.Path(path_type=Path, dir_okay=False)
"""A file that need not exist."""


class OutputPath(click.Path):
    """A file, or a folder, that the command will write: refused before anything else is done if it cannot be."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(path_type=Path, file_okay=not folder, dir_okay=folder, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, whose folder can be written; that of a new folder may be new itself."""
        place = Path(os.fsdecode(super().convert(value, param, ctx)))
        above = place.absolute().parent
        while self.dir_okay and not os.path.lexists(above):
            above = above.parent
        if not above.is_dir():
            self.fail(f"{str(place)!r}: there is no folder {above}", param, ctx)
        if not place.exists() and not os.access(above, os.W_OK | os.X_OK):
            self.fail(f"{str(place)!r}: the folder {above} cannot be written", param, ctx)
        return place


OUTPUT_FILE = OutputPath()
OUTPUT_FOLDER = OutputPath(folder=True)
TRAINERS = click.Choice(("trl", "axolotl", "llama-factory", "unsloth", "openai"))
"""Those whose formats datasets can have; `training.dataset.FORMATS`, without its imports."""


def _remember_repo(context: click.Context, _parameter: click.Parameter, value: Path) -> Path:
    display = context.find_object(Display)
    if display is not None:
        display.repo = value
    return value


def _remember_exact(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    display = context.find_object(Display)
    if display is not None:
        display.exact, display.offers_exact = value, True


repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    callback=_remember_repo,
    help="The repository; the current folder by default.",
)


def _from_here(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """The program, whichever folder it will be run in; this Python by default."""
    return sys.executable if value is None else os.path.abspath(value) if "/" in value else value  # noqa: PTH100 - a link stays


python_option = click.option(
    "--python", callback=_from_here, help="A Python with the extra `train`; this one by default."
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
exact_option = click.option(
    "--exact",
    is_flag=True,
    expose_value=False,
    callback=_remember_exact,
    help="Show secrets, instead of [secret:...].",
)
verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    help="-v: a line for each model call, and the change that each answer makes; -vv: also one for what enters each prompt.",
)
task_argument = click.argument("task", required=False)
run_argument = click.argument("run", type=RUN, metavar="[RUN]", default=NEWEST_RUN)
"""A run; the newest one by default."""


class EventsFile(click.File):
    """A file that events are written to: a path, `-` for standard output, or `/dev/fd/N` for a file that is already open, which
    no command that runs later inherits.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> IO[str]:
        """Open it; a FIFO that nobody reads is refused rather than waited for. Completion opens nothing."""
        if ctx is not None and ctx.resilient_parsing:
            return sys.stdout
        if value in {"-", "/dev/stdout", "/dev/fd/1"}:
            return sys.stdout
        if value in {"/dev/stderr", "/dev/fd/2"}:
            return sys.stderr
        try:
            if opened := re.fullmatch(r"/dev/fd/(\d+)", value):
                number = int(opened[1])
                os.set_inheritable(number, False)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
                number = os.open(value, flags, 0o666)
                os.set_blocking(number, True)
            file = os.fdopen(number, "w", encoding="utf-8")
        except (OSError, ValueError, OverflowError) as exc:
            fifo = isinstance(exc, OSError) and exc.errno == errno.ENXIO
            why = "nobody reads it" if fifo else getattr(exc, "strerror", None) or str(exc)
            self.fail(f"{os.fsdecode(value)!r}: {why}", param, ctx)
        if ctx is not None:
            ctx.call_on_close(file.close)
        return file


events_option = click.option(
    "--events",
    type=EventsFile("w"),
    help="Write events as JSON Lines to a file, or to standard output with `-`; what people read then goes to standard error.",
)


class TextFileParameter(click.File):
    """A text file: a path, or `-` for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> IO[str]:
        """Its text, read; a FIFO that may never answer is refused. Standard input is read later."""
        if value == "-" or (ctx is not None and ctx.resilient_parsing):
            return super().convert(value, param, ctx)
        return io.StringIO(read_given(Path(value)), newline=None)


issue_option = click.option(
    "--issue",
    type=TextFileParameter(encoding="utf-8"),
    help="Read a long task text from a file, or from standard input with `-`.",
)


def all_of(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """A decorator that adds these options to a command, in this order."""

    def decorate(command: CommandT) -> CommandT:
        decorated: Any = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def _keep_override(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Put the value into the command's argument `overrides`."""
    from clean_room_agent.app.settings import Overrides  # slow to import, and not every command needs it

    before = context.params.get("overrides") or Overrides()
    context.params["overrides"] = structs.replace(before, **{str(parameter.name): value})


def _override_option(flag: str, **attributes: Any) -> Callable[[CommandT], CommandT]:
    """An option that overrides the configuration's value of the same name."""
    return click.option(flag, expose_value=False, callback=_keep_override, **attributes)


budget_options = all_of(
    _override_option("--stages", help="Retrieval stages in order, e.g. scope,precision."),
    _override_option("--context-window", type=number(1), help="Tokens of the models' window."),
    _override_option(
        "--reserved-tokens", type=number(0), help="Tokens reserved for task, instructions and answer."
    ),
    _override_option(
        "--budget-config",
        type=FILE,
        help="A TOML file with context_window and reserved_tokens, instead of the two flags.",
    ),
)
"""Adds the flags for the size of contexts and the stages that fill them; the command gets them in `overrides`."""
attempt_options = all_of(
    _override_option("--max-attempts", type=number(1), help="Attempts per step."),
    _override_option(
        "--max-refinement-loops", type=number(0), help="Times a step may ask for what its context lacked."
    ),
    _override_option(
        "--samples",
        type=number(1),
        help="Candidates that an attempt may draw from one prompt; the tests choose among them.",
    ),
)
"""Adds the flags for how often a step is tried; the command gets them in `overrides`."""


def _keep_given(context: click.Context, parameter: click.Parameter, values: Any) -> None:
    """Put the values into the command's argument `evidence`."""
    from clean_room_agent.artifacts.goals import NOTHING_GIVEN

    before = context.params.get("evidence") or NOTHING_GIVEN
    given = tuple(map(str, values))
    context.params["evidence"] = structs.replace(before, **{str(parameter.name): given})


def _evidence_option(flag: str, name: str, **attributes: Any) -> Callable[[CommandT], CommandT]:
    """An option that may be repeated, about how the task is judged or where it is."""
    return click.option(flag, name, multiple=True, expose_value=False, callback=_keep_given, **attributes)


evidence_options = all_of(
    _evidence_option(
        "--check",
        "checks",
        metavar="CODE",
        help="A statement that fails now and must hold at the end, or `sh:` and a command; repeatable.",
    ),
    _evidence_option(
        "--test",
        "tests",
        metavar="NODE-ID",
        help="A test that fails now and must pass at the end; repeatable.",
    ),
    _evidence_option("--file", "files", type=FILE, help="Change only this file, and tests; repeatable."),
)
"""Adds the flags for how the task is judged and where it is; the command gets them in `evidence`."""
LONGEST_NAME = 250
"""Bytes of a file's name; what is longer is a text."""


def task_text(task: str | None, issue: Any) -> str:
    """The task's words from the argument or from the file.

    Raises:
        UsageError: none or both were given, or the text is empty or no text.
    """
    if (task is None) == (issue is None):
        raise UsageError("give the task either as an argument or with --issue FILE")
    file = task[1:] if task is not None and task.startswith("@") and len(task.encode()) < LONGEST_NAME else ""
    if task == "-" or (file and Path(file).is_file()):
        raise UsageError(f"the task is {task!r}", hint=f"to read it from there: --issue {file or '-'}")
    try:
        text = str(issue.read()) if task is None else task
    except (OSError, ValueError) as exc:
        why = "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)
        raise UsageError(f"cannot read the task: {why}", hint="give a text in UTF-8") from exc
    require_text(text, "the task")
    if not text.strip():
        raise UsageError("the task is empty", hint="say in words what to change")
    return text.strip()
