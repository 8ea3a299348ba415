"""How `cra config` prints values and where they come from."""

from pathlib import Path
from typing import Any

from clean_room_agent.app.config_values import (
    ConfiguredValue,
    list_values,
    workspace_or_none,
)
from clean_room_agent.app.settings import user_config_file
from clean_room_agent.cli import output
from clean_room_agent.cli.paging import paged
from clean_room_agent.cli.safe_console import sanitized

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


def show(
    values: tuple[ConfiguredValue, ...], *, as_json: bool, sources: bool, described: bool = False
) -> int:
    """Print values, with the source of each if `sources`, and below it what it is for if `described`; returns the exit code."""
    if as_json:
        output.answer_json(as_object(values))
        return 0
    from rich.padding import Padding
    from rich.text import Text

    with paged() as console:
        if sources:
            console.print(Text(f"user: {user_config_file()}", style="dim"))
        for each in sanitized(values):
            line = Text(each.key, style="bold").append(" = ", style="dim")
            line.append("" if each.value is None else toml(each.value), style="not bold")
            if sources:
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
    import tomlkit

    text: str = tomlkit.item(value).as_string()
    return text
