"""`cra config`: show configured values and where they come from; get, set and unset them."""

from pathlib import Path
from typing import Any

import click
import tomlkit
from rich.padding import Padding
from rich.text import Text

from clean_room_agent.app import wiring
from clean_room_agent.app.config_values import (
    ConfiguredValue,
    find_values,
    list_values,
    set_value,
    unset_value,
    workspace_or_none,
)
from clean_room_agent.app.settings import user_config_file
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import paged, sanitized
from clean_room_agent.errors import UsageError

COLOURS = {"repository": "green", "user": "cyan", "default": "dim", "not set": "yellow"}


def tell(repo: Path, path: Path, key: str, *, user: bool, as_json: bool, told: str) -> None:
    """Print what was written to the file, and whether it takes effect here."""
    workspace = workspace_or_none(repo) if user else None
    inforce = [each for each in list_values(workspace) if each.key == key] if workspace else []
    shadowed = [each for each in inforce if each.source == "repository"]
    if as_json:
        output.answer_json({"file": path, "key": key, "shadowed": bool(shadowed)})
        return
    output.answer(f"{path}: {told}")
    for each in shadowed:
        output.answer(
            f"here the repository's own file overrides it: {key} = {toml(each.value)}\n"
            f"  -> cra config unset {key}"
        )


def as_object(values: tuple[ConfiguredValue, ...]) -> dict[str, Any]:
    """Values as `--json` answers them."""
    return {each.key: {"value": each.value, "source": each.source} for each in values}


def show(values: tuple[ConfiguredValue, ...], *, as_json: bool, described: bool) -> int:
    """Print values, if `described` with the source of each and below it what it is for; returns the exit code."""
    if as_json:
        output.answer_json(as_object(values))
        return 0

    with paged() as console:
        if described:
            console.print(Text(f"user: {user_config_file()}", style="dim"))
        for each in sanitized(values):
            line = Text(each.key, style="bold").append(" = ", style="dim")
            line.append("" if each.value is None else toml(each.value), style="not bold")
            if described:
                note = (
                    f"  {each.source}, and required"
                    if each.required and each.value is None
                    else f"  {each.source}"
                )
                line.append(note, style=COLOURS[each.source])
            console.print(line, highlight=False, soft_wrap=True)
            if described and each.description:
                console.print(Padding(Text(each.description, style="dim"), (0, 0, 0, 4), expand=False))
    return 0


def toml(value: Any) -> str:
    """A value in TOML syntax."""
    text: str = tomlkit.item(value).as_string()
    return text


HELP = """Show configured values, and change one.

A value comes from the repository's .clean_room/config.toml, else from your own file for all repositories
($XDG_CONFIG_HOME/clean-room-agent/config.toml), else it is the default. Flags override all of them. The environment
provides nothing but the server's key, in the variable that models.api_key_env names.

\b
cra config                                    every value, where it comes from, and what it is for
cra config get models.coding
cra config set models.coding qwen2.5-coder:7b
cra config set --user models.base_url http://127.0.0.1:8080
cra config unset models.coding                use your own file's value, or the default

Exit codes: 0 done, 2 no such key, no value, or an invalid one.
"""
user_option = click.option("--user", is_flag=True, help="In your own file, for all repositories.")


@click.group(help=HELP, invoke_without_command=True)
@options.repo_option
@options.json_option
@click.pass_context
def command(context: click.Context, repo: Path, as_json: bool) -> int:
    """The command."""
    if context.invoked_subcommand is None:
        return show(list_values(workspace_or_none(repo)), as_json=as_json, described=True)
    return 0


@command.command("get")
@click.argument("key")
@options.repo_option
@options.json_option
def get_command(key: str, repo: Path, as_json: bool) -> int:
    """Print the value of KEY, such as models.coding, or all values of a table."""
    found = find_values(workspace_or_none(repo), key)
    if as_json:
        output.answer_json(as_object(found))
        return 0
    if len(found) > 1 or found[0].key != key:
        return show(found, as_json=False, described=False)
    if found[0].source == "not set":
        raise UsageError(f"{key} is not set, and it has no default", hint=f"cra config set {key} VALUE")
    value = found[0].value
    output.answer(value if isinstance(value, str) else toml(value))
    return 0


@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@user_option
@options.repo_option
@options.json_option
def set_command(key: str, value: str, user: bool, repo: Path, as_json: bool) -> int:
    """Set KEY to VALUE (TOML, or plain words) in the repository's file, keeping its comments."""
    path, written = set_value(None if user else wiring.workspace_of(repo), key, value)
    tell(repo, path, key, user=user, as_json=as_json, told=f"{key} = {toml(written)}")
    return 0


@command.command("unset")
@click.argument("key")
@user_option
@options.repo_option
@options.json_option
def unset_command(key: str, user: bool, repo: Path, as_json: bool) -> int:
    """Remove KEY from the repository's file, so that your own file's value or the default applies."""
    path = unset_value(None if user else wiring.workspace_of(repo), key)
    tell(repo, path, key, user=user, as_json=as_json, told=f"{key} was removed")
    return 0
