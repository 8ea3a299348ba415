"""The layers, walls and doors of `.importlinter` hold, and the check of them can fail."""

import configparser
import shutil
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.proc import inherited_environment

ROOT = Path(__file__).parents[2]
PACKAGE = "clean_room_agent"
FORBIDDEN = {
    "orchestrator/solve.py": "import sqlite3",
    "retrieval/retriever.py": "import httpx",
    "app/wiring.py": "import subprocess",
    "report/live.py": "import click",
    "query/knowledge.py": "import tree_sitter",
    "execute/prompt_fitting.py": "import clean_room_agent.sandbox.policy",
    "orchestrator/steps/rounds.py": "from rich.console import Console",
    "execute/implement.py": "def peek():\n    from clean_room_agent.query.knowledge import KnowledgeBase",
    "artifacts/names.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import clean_room_agent.proc",
    "llm/token_estimator.py": "import clean_room_agent.llm.client",
    "cli/output.py": "def late():\n    import mcp",
    "cli/safe_console.py": "def late():\n    import clean_room_agent.cli.solve",
    "syntax.py": "def late():\n    import clean_room_agent.languages.python.modules",
}
"""What no file may say, one line of each kind: also inside a function, also for types only."""


def lint(folder: Path) -> proc.Completed:
    """`lint-imports` over the package below `folder`."""
    program = Path(sys.executable).with_name("lint-imports")
    env = inherited_environment(without="PYTHON") | {"PYTHONPATH": str(folder / "src")}
    command = (str(program), "--no-cache")
    return proc.run(command, cwd=folder, env=env, timeout=PATIENCE, check=False)


def copy_tree(folder: Path) -> Path:
    """The package and its contracts, where a test may break them."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / PACKAGE, folder / "src" / PACKAGE, ignore=ignore)
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


def contracts() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / ".importlinter")
    return read


def titles() -> list[str]:
    read = contracts()
    return [read[name]["name"] for name in read.sections() if name.startswith("importlinter:contract:")]


def test_forbidden_imports_break_every_contract(tmp_path: Path) -> None:
    root = copy_tree(tmp_path)
    for name, line in FORBIDDEN.items():
        path = root / "src" / PACKAGE / name
        path.write_text(path.read_text(encoding="utf-8") + f"\n\n{line}\n", encoding="utf-8")
    done = lint(root)
    out = done.stdout.decode()
    assert done.returncode != 0
    assert [title for title in titles() if f"{title} BROKEN" not in out] == []
    assert f"{PACKAGE}.orchestrator.solve" in out.split("Broken contracts")[1]


def test_every_part_of_the_package_is_a_layer() -> None:
    layers = contracts()["importlinter:contract:layers"]
    assert layers["exhaustive"] == "True"
    lines = layers["layers"].splitlines()
    named = {name.strip(" ()") for line in lines if line.strip() for name in line.split("|")}
    package = ROOT / "src" / PACKAGE
    there = {path.stem for path in package.iterdir() if path.suffix == ".py" and path.stem != "__init__"}
    there |= {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert there - named == set()


@pytest.mark.parametrize("layer", ["execute", "orchestrator"])
def test_the_wall_names_every_part_that_opens_the_curated_database(layer: str) -> None:
    wall = contracts()["importlinter:contract:wall"]
    assert f"{PACKAGE}.{layer}" in wall["source_modules"].split()
    walled = set(wall["forbidden_modules"].split())
    assert walled == {f"{PACKAGE}.{name}" for name in ("retrieval", "query", "indexer", "db.curated")}
