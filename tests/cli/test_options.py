"""Flags that override the configuration reach a command as one value."""

import io
from collections.abc import Iterator

import click
import pytest

from clean_room_agent.cli import options
from clean_room_agent.cli.main import COMMANDS, cra
from clean_room_agent.errors import UsageError


class Issue:
    """An open file with a task."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> str:
        return self.text


def test_the_task_is_given_once() -> None:
    assert options.task_text(" mend it ", None) == "mend it"
    assert options.task_text(None, Issue("from a file\n")) == "from a file"
    for task, issue in ((None, None), ("a", Issue("b"))):
        with pytest.raises(UsageError, match="either as an argument or with --issue"):
            options.task_text(task, issue)
    with pytest.raises(UsageError, match="the task is empty"):
        options.task_text("  ", None)


@pytest.mark.parametrize(("task", "issue"), [("-", "-"), (f"@{__file__}", __file__)])
def test_a_task_that_names_a_file_is_told_how_to_be_read_from_it(task: str, issue: str) -> None:
    with pytest.raises(UsageError) as caught:
        options.task_text(task, None)
    assert caught.value.hint == f"to read it from there: --issue {issue}"
    assert options.task_text("@property of Bill is wrong", None).startswith("@property")


def test_standard_input_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read the task: it is not UTF-8"):
        options.task_text(None, io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))


def parameters(command: click.Command) -> Iterator[click.Parameter]:
    """Those of the command and its subcommands."""
    yield from command.params
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        yield from parameters(inner)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_on_the_command_line_is_larger_than_the_record_can_hold(name: str) -> None:
    command = cra.get_command(click.Context(cra), name)
    assert command is not None
    for parameter in parameters(command):
        if isinstance(parameter.type, click.types.IntParamType) and not getattr(parameter, "count", False):
            with pytest.raises(click.BadParameter):
                parameter.type.convert(1 << 63, parameter, None)


@pytest.mark.parametrize("name", COMMANDS)
def test_where_a_command_writes_is_checked_before_it_does_anything(name: str) -> None:
    command = cra.get_command(click.Context(cra), name)
    assert command is not None
    for parameter in parameters(command):
        if {"--output", "--work"} & {*parameter.opts}:
            assert isinstance(parameter.type, options.OutputPath)
