"""The page on the pipeline names a test for each law, and names no test that is not there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "planning" / "pipeline.md"
LAWS = (
    "Fresh context",
    "Deterministic first, model second",
    "Default-deny",
    "Nothing is cut in silence",
    "Use what was parsed",
    "Caps are ordered",
    "Plans are data",
    "Tests always run",
    "Log before you act",
    "Your tree is yours",
    "Local means local",
    "No silent fallback",
)


def table() -> dict[str, tuple[str, ...]]:
    """Law -> node ids of its tests, as the page has them."""
    text = PAGE.read_text(encoding="utf-8")
    block = text.split("<!-- laws -->")[1].split("<!-- /laws -->")[0]
    rows = re.findall(r"^\| (\d+ [^|]+?) \| ([^|]+) \|$", block, re.MULTILINE)
    return {law: tuple(re.findall(r"`([^`]+)`", tests)) for law, tests in rows}


def names_in(path: Path) -> set[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_law_has_a_row() -> None:
    assert tuple(table()) == tuple(f"{number} {law}" for number, law in enumerate(LAWS, start=1))


@pytest.mark.parametrize("number", range(1, len(LAWS) + 1))
def test_a_law_has_tests_and_they_exist(number: int) -> None:
    nodes = table()[f"{number} {LAWS[number - 1]}"]
    assert nodes
    for node in nodes:
        name, _, test = node.partition("::")
        path = ROOT / name
        assert path.is_file(), f"{node}: no such file"
        assert test in names_in(path), f"{node}: no such test"
