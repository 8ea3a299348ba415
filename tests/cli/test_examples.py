"""Each command's help shows how it is used, with lines that the command takes."""

import shlex
from pathlib import Path

import click
import pytest

from clean_room_agent.cli.examples import EXAMPLES
from clean_room_agent.cli.main import COMMANDS, cra, run

FILES = ("issue.md", "plan.json", "plan.toml", "tasks.jsonl")
"""Files that examples name, and that must be there to be read."""
LINES = [(name, line) for name, examples in EXAMPLES.items() for line, _ in examples]


def every_command() -> dict[str, click.Command]:
    """Each command by the words after `cra`, those of groups included."""
    context = click.Context(cra)
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = cra.get_command(context, name)
        assert command is not None
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": each for inner, each in command.commands.items()}
    return found


def test_every_command_has_an_example_and_every_example_a_command() -> None:
    assert set(EXAMPLES) == set(every_command())
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_shows_the_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", *name.split()]) == 0
    shown = capsys.readouterr().out
    for line, what in EXAMPLES[name]:
        assert f"    {line}\n        {what}\n" in shown


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_is_a_line_that_the_command_takes(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        (tmp_path / file).write_text("")
    program, *words = shlex.split(line)
    assert program == "cra"
    assert words[: name.count(" ") + 1] == name.split() or name == "adapters"
    command: click.Command = cra
    context = cra.make_context("cra", words)
    while words and isinstance(command, click.Group):
        inner = command.get_command(context, words[0])
        assert inner is not None
        with inner.make_context(words[0], words[1:], parent=context):  # closes the files that it opened
            command, words = inner, words[1:]


def test_a_line_that_no_command_takes_would_be_found() -> None:
    command = every_command()["runs"]
    # Below the group, as a user's line: a command keeps the first names of the help option that it is asked for.
    with pytest.raises(click.UsageError), cra.make_context("cra", ["runs"]) as context:
        command.make_context("runs", ["--limit", "many"], parent=context)
