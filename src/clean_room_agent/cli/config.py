"""`cra config`: show configured values and where they come from; get, set and unset them."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.config_values import (
    find_values,
    list_values,
    set_value,
    unset_value,
    workspace_or_none,
)
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.config import as_object, show, tell, toml
from clean_room_agent.errors import UsageError

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
        return show(list_values(workspace_or_none(repo)), as_json=as_json, sources=True, described=True)
    return 0


@command.command("list")
@click.option("--sources", is_flag=True, help="Also show where each value comes from.")
@options.repo_option
@options.json_option
def list_command(sources: bool, repo: Path, as_json: bool) -> int:
    """List every key with its value."""
    return show(list_values(workspace_or_none(repo)), as_json=as_json, sources=sources)


@command.command("get")
@click.argument("key", type=options.CONFIG_KEY)
@options.repo_option
@options.json_option
def get_command(key: str, repo: Path, as_json: bool) -> int:
    """Print the value of KEY, such as models.coding, or all values of a table."""
    found = find_values(workspace_or_none(repo), key)
    if as_json:
        output.answer_json(as_object(found))
        return 0
    if len(found) > 1 or found[0].key != key:
        return show(found, as_json=False, sources=False)
    if found[0].source == "not set":
        raise UsageError(f"{key} is not set, and it has no default", hint=f"cra config set {key} VALUE")
    value = found[0].value
    output.answer(value if isinstance(value, str) else toml(value))
    return 0


@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", type=options.CONFIG_KEY)
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
@click.argument("key", type=options.CONFIG_KEY)
@user_option
@options.repo_option
@options.json_option
def unset_command(key: str, user: bool, repo: Path, as_json: bool) -> int:
    """Remove KEY from the repository's file, so that your own file's value or the default applies."""
    path = unset_value(None if user else wiring.workspace_of(repo), key)
    tell(repo, path, key, user=user, as_json=as_json, told=f"{key} was removed")
    return 0
