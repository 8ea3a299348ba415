"""The walks in `planning/architecture.md` are short, and every hop of them is in the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from clean_room_agent.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/clean_room_agent"
PAGE = (ROOT / "planning/architecture.md").read_text(encoding="utf-8")
MOST_HOPS = 10
HOP = re.compile(
    r"^\d+\. `(?P<module>[\w/]+\.py)`(?P<how>, by name|, by way of `(?P<between>[\w/]+\.py)`)?", re.MULTILINE
)
WALK = re.compile(r"^### (One `cra .*)$", re.MULTILINE)


def walks() -> dict[str, tuple[re.Match[str], ...]]:
    """The hops of each walk, by its heading."""
    _, *parts = WALK.split(PAGE.partition("## Four walks")[2].partition("\n## ")[0])
    return {title: tuple(HOP.finditer(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of the package that a module imports, also inside functions, as paths below it."""
    tree = ast.parse((SOURCES / module).read_text(encoding="utf-8"))
    named = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    paths = {f"{name.removeprefix('clean_room_agent.').replace('.', '/')}.py" for name in named}
    return frozenset(path for path in paths if (SOURCES / path).is_file())


def reaches(start: str, goal: str) -> bool:
    """Whether `start` imports `goal`, over however many modules."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module == goal:
            return True
        waiting += imports(module) - seen
        seen |= imports(module)
    return False


def fault(before: str, hop: re.Match[str]) -> str:
    """What is wrong with a hop from the module before it; "" where nothing is."""
    module, between = hop["module"], hop["between"]
    if not (SOURCES / module).is_file():
        return f"there is no {module}"
    if between is not None:
        known = module in imports(between) and reaches("app/solve.py", between)
        return "" if known else f"{between} does not hand {module} on"
    if hop["how"]:
        by_name = {f"cli/{entry.module}.py" for entry in COMMANDS.values()}
        return "" if before == "cli/main.py" and module in by_name else f"{before} does not name {module}"
    return "" if not before or module in imports(before) else f"{before} does not import {module}"


def faults(hops: tuple[re.Match[str], ...]) -> list[str]:
    befores = ["", *(hop["module"] for hop in hops)]
    return [told for before, hop in zip(befores, hops, strict=False) if (told := fault(before, hop))]


def test_a_solve_an_index_a_training_and_a_report_are_walked() -> None:
    commands = {title.split("`")[1] for title in walks()}
    assert commands == {"cra solve", "cra index", "cra train", "cra report"}


@pytest.mark.parametrize("title", walks())
def test_a_walk_is_short_and_every_hop_is_in_the_code(title: str) -> None:
    hops = walks()[title]
    assert faults(hops) == []
    assert 5 <= len(hops) <= MOST_HOPS
    assert hops[0]["module"] == "cli/main.py"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("2. `cli/solving.py`, by name", "there is no cli/solving.py"),
        ("2. `cli/output.py`, by name", "cli/main.py does not name cli/output.py"),
        ("2. `cli/solve.py`", "cli/main.py does not import cli/solve.py"),
        ("2. `llm/client.py`, by way of `app/clock.py`", "app/clock.py does not hand llm/client.py on"),
    ],
)
def test_a_wrong_hop_is_found(line: str, told: str) -> None:
    hop = HOP.match(line)
    assert hop is not None
    assert fault("cli/main.py", hop) == told
