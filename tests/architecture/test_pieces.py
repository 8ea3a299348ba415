"""How the source is divided into modules, and that each has its tests beside it. Run as a module, it prints the figures."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from msgspec import Struct
from tests.architecture.syntax_trees import nodes

from clean_room_agent.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/clean_room_agent"
PAGE = ROOT / "planning/architecture.md"
MAX_COMMAND = 120
LEAST_MIRRORED = 0.8
SMALL = 60
MOST_SMALL_ALONE = 15
"""Small modules with one importer that stay: doors, prompts, stages, commands, tables."""


class Module(Struct, frozen=True, kw_only=True):
    """A module of the package."""

    path: str
    """Below the package."""
    lines: int
    importers: int
    tested: bool
    """Whether it has tests at the mirrored path."""


def _imports(path: Path) -> set[str]:
    named = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    return {f"{name.removeprefix('clean_room_agent.').replace('.', '/')}.py" for name in named}


@cache
def modules() -> tuple[Module, ...]:
    """All modules, by path."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    importers: dict[str, int] = defaultdict(int)
    for path in paths:
        for name in _imports(path):
            importers[name] += 1
    return tuple(
        Module(
            path=(below := path.relative_to(PACKAGE)).as_posix(),
            lines=len(path.read_text(encoding="utf-8").splitlines()),
            importers=importers[below.as_posix()],
            tested=(ROOT / "tests" / below.parent / f"test_{below.name}").is_file(),
        )
        for path in paths
    )


def figures() -> dict[str, int]:
    """What `planning/architecture.md` tells."""
    found = modules()
    commands = {f"cli/{entry.module}.py" for entry in COMMANDS.values()}
    return {
        "modules": len(found),
        f"modules under {SMALL} lines": sum(each.lines < SMALL for each in found),
        "modules with one importer": sum(each.importers == 1 for each in found),
        "both": sum(each.lines < SMALL and each.importers == 1 for each in found),
        "percent of modules with tests at the mirrored path": int(
            100 * sum(each.tested for each in found) / len(found)
        ),
        "lines of the longest command": max(each.lines for each in found if each.path in commands),
    }


def test_a_command_is_options_one_call_and_output() -> None:
    commands = {f"cli/{entry.module}.py" for entry in COMMANDS.values()}
    assert {
        each.path: each.lines for each in modules() if each.path in commands and each.lines > MAX_COMMAND
    } == {}


def test_most_modules_have_their_tests_at_the_mirrored_path() -> None:
    found = modules()
    untested = [each.path for each in found if not each.tested]
    assert len(untested) <= (1 - LEAST_MIRRORED) * len(found), untested


def test_small_modules_with_one_importer_are_few() -> None:
    alone = [each.path for each in modules() if each.lines < SMALL and each.importers == 1]
    assert len(alone) <= MOST_SMALL_ALONE, alone


def test_the_page_names_every_figure() -> None:
    section = (
        PAGE.read_text(encoding="utf-8")
        .partition("## How the source is divided into modules")[2]
        .partition("\n## ")[0]
    )
    assert set(re.findall(r"^\| ([a-z][^|]*?) \|", section, re.MULTILINE)) == {*figures(), "figure"}


if __name__ == "__main__":
    for name, figure in figures().items():
        print(f"{figure:6,}  {name}")  # noqa: T201 - its output is what it is for
