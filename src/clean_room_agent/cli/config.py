"""`cra config`: every value with where it is from; get, set and unset one."""

from pathlib import Path
from typing import Any

import click

from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.config_values import (
    ConfiguredValue,
    find_values,
    list_values,
    set_value,
    unset_value,
)
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.paging import paged
from clean_room_agent.cli.settings import user_config_file
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace

HELP = """Show configured values, and change one.

A value comes from the repository's .clean_room/config.toml, else from the user's own file for all repositories
($XDG_CONFIG_HOME/clean-room-agent/config.toml), else it is the default. Flags of a command go before all of them; the
environment gives none but the server's key, whose variable models.api_key_env names.

\b
cra config                                    every value, and where it is from
cra config get models.coding
cra config set models.coding qwen2.5-coder:7b
cra config set --user models.base_url http://127.0.0.1:8080
cra config unset models.coding                what is below counts again

Exit codes: 0 done, 2 no such key, no value, or a wrong one.
"""
COLOURS = {"repository": "green", "user": "cyan", "default": "dim", "not set": "yellow"}
user_option = click.option("--user", is_flag=True, help="In the user's file, for all repositories.")


@click.group(help=HELP, invoke_without_command=True)
@options.repo_option
@options.json_option
@click.pass_context
def command(context: click.Context, repo: Path, as_json: bool) -> int:
    """The command."""
    if context.invoked_subcommand is None:
        return _show(list_values(_workspace(repo)), as_json=as_json, sources=True)
    return 0


@command.command("list")
@click.option("--sources", is_flag=True, help="Where each value is from, too.")
@options.repo_option
@options.json_option
def list_command(sources: bool, repo: Path, as_json: bool) -> int:
    """List every key with its value."""
    return _show(list_values(_workspace(repo)), as_json=as_json, sources=sources)


@command.command("get")
@click.argument("key", type=options.CONFIG_KEY)
@options.repo_option
@options.json_option
def get_command(key: str, repo: Path, as_json: bool) -> int:
    """Print the value of KEY, such as models.coding, or every value of a table."""
    found = find_values(_workspace(repo), key)
    if as_json:
        output.answer_json(_as_object(found))
        return 0
    if len(found) > 1 or found[0].key != key:
        return _show(found, as_json=False, sources=False)
    if found[0].source == "not set":
        raise UsageError(f"nothing gives {key}, and it has no default", hint=f"cra config set {key} VALUE")
    value = found[0].value
    output.answer(value if isinstance(value, str) else _toml(value))
    return 0


@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", type=options.CONFIG_KEY)
@click.argument("value")
@user_option
@options.repo_option
@options.json_option
def set_command(key: str, value: str, user: bool, repo: Path, as_json: bool) -> int:
    """Give KEY the VALUE (as TOML, or as plain words) in the repository's file; its comments stay."""
    path, written = set_value(None if user else wiring.workspace_of(repo), key, value)
    _tell(repo, path, key, user=user, as_json=as_json, told=f"{key} = {_toml(written)}")
    return 0


@command.command("unset")
@click.argument("key", type=options.CONFIG_KEY)
@user_option
@options.repo_option
@options.json_option
def unset_command(key: str, user: bool, repo: Path, as_json: bool) -> int:
    """Take KEY out of the repository's file: the user's counts again, or the default."""
    path = unset_value(None if user else wiring.workspace_of(repo), key)
    _tell(repo, path, key, user=user, as_json=as_json, told=f"{key} was taken out")
    return 0


def _workspace(repo: Path) -> Workspace | None:
    """The repository's; None outside of any."""
    here = repo.absolute()
    return wiring.workspace_of(repo) if any((at / ".git").exists() for at in (here, *here.parents)) else None


def _tell(repo: Path, path: Path, key: str, *, user: bool, as_json: bool, told: str) -> None:
    """What stands in the file now, and whether it counts here."""
    workspace = _workspace(repo) if user else None
    inforce = [each for each in find_values(workspace, key) if each.key == key] if workspace else []
    shadowed = [each for each in inforce if each.source == "repository"]
    if as_json:
        output.answer_json({"file": path, "key": key, "shadowed": bool(shadowed)})
        return
    output.answer(f"{path}: {told}")
    for each in shadowed:
        output.answer(
            f"here the repository's own file goes before it: {key} = {_toml(each.value)}\n"
            f"  -> cra config unset {key}"
        )


def _as_object(values: tuple[ConfiguredValue, ...]) -> dict[str, Any]:
    return {each.key: {"value": each.value, "source": each.source} for each in values}


def _show(values: tuple[ConfiguredValue, ...], *, as_json: bool, sources: bool) -> int:
    if as_json:
        output.answer_json(_as_object(values))
        return 0
    from rich.text import Text

    with paged() as console:
        if sources:
            console.print(Text(f"user: {user_config_file()}", style="dim"))
        for each in neutral(values):
            line = Text(each.key, style="bold").append(" = ", style="dim")
            line.append("" if each.value is None else _toml(each.value), style="not bold")
            if sources:
                note = (
                    f"  {each.source}, and required"
                    if each.required and each.value is None
                    else f"  {each.source}"
                )
                line.append(note, style=COLOURS[each.source])
            console.print(line, highlight=False, soft_wrap=True)
    return 0


def _toml(value: Any) -> str:
    import tomlkit

    text: str = tomlkit.item(value).as_string()
    return text
