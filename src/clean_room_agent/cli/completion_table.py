"""Writes `completion.json`: the options and arguments of each command, and what completes each of them.

A shell asks at every TAB. Importing the command would take longer than reading this file, which
`python -m clean_room_agent.cli.completion_table > src/clean_room_agent/cli/completion.json` renews; a test keeps it
current.
"""

import json
from typing import Any

import click

from clean_room_agent.app.config_values import known_keys
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.cli.main import COMMANDS, cra
from clean_room_agent.cli.options import Known
from clean_room_agent.retrieval.retriever import STAGES


def table() -> str:
    """The file's text: a line for each command, so that changes rarely conflict."""
    context = click.Context(cra, info_name="cra")
    commands = {name: _entry(cra.get_command(context, name), COMMANDS[name].help) for name in COMMANDS}
    prompts = sorted(prompt.name for prompt in PROMPTS)
    words = {
        "stages": [(name, "") for name in STAGES],
        "prompt": [(name, "") for name in prompts],
        "stage": [(name, "") for name in (*STAGES, *prompts)],
        "key": known_keys(),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in commands.items()]
    return f'{{"words": {json.dumps(words)}, "commands": {{\n' + ",\n".join(lines) + "\n}}\n"


def _entry(command: click.Command | None, told: str) -> dict[str, Any]:
    assert command is not None
    context = click.Context(command, **cra.context_settings)
    parameters = command.get_params(context)
    entry: dict[str, Any] = {
        "help": told,
        "options": [
            _option(each) for each in parameters if isinstance(each, click.Option) and not each.hidden
        ],
        "arguments": [_argument(each) for each in parameters if isinstance(each, click.Argument)],
    }
    if isinstance(command, click.Group):
        inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
        entry["commands"] = {
            name: _entry(each, each.get_short_help_str(80) if each else "") for name, each in inner.items()
        }
    return entry


def _option(option: click.Option) -> dict[str, Any]:
    return {
        "names": [*option.opts, *option.secondary_opts],
        "help": (option.help or "").split(";")[0].removesuffix("."),
        "kind": None if option.is_flag or option.count else _kind(option.type),
        "again": option.multiple or option.count,
    }


def _argument(argument: click.Argument) -> dict[str, Any]:
    return {"kind": _kind(argument.type), "again": argument.nargs == -1}


def _kind(kind: click.ParamType[Any]) -> str | list[str]:
    """How such a value is completed: a kind that `completing.py` knows, or the values themselves; "" for nothing."""
    match kind:
        case Known():
            return kind.kind
        case click.Choice():
            return [str(value) for value in kind.choices]
        case click.Path(file_okay=False):
            return "folder"
        case click.Path() | click.File():
            return "file"
        case _:
            return ""


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201 - its output is the file
