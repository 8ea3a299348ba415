"""The layers, walls and doors of `.importlinter` hold, and the check of them can fail."""

import configparser
import shutil
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.child_processes import inherited_environment

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
    "git/refs.py": "def late():\n    import git",
    "cli/output.py": "def late():\n    import mcp",
    "cli/paging.py": "def late():\n    import clean_room_agent.cli.solve",
    "app/clock.py": "def late():\n    import clean_room_agent.git.clones",
}
"""What no file may say, one line of each kind: also inside a function, also for types only."""
AROUND = "testing/.importlinter"
FORBIDDEN_AROUND = {
    f"src/{PACKAGE}/version.py": "import testing.repositories",
    "testing/timing.py": "import tests.test_timing",
    "tests/test_timing.py": "import benchmarks.timing",
    "benchmarks/timing.py": "import tests.test_timing",
}
"""The same for the contracts around the package; `tests` and `benchmarks` hold nothing else."""


def lint(folder: Path, config: str = ".importlinter") -> proc.Completed:
    """`lint-imports` over the package below `folder`."""
    program = Path(sys.executable).with_name("lint-imports")
    env = inherited_environment(without="PYTHON") | {"PYTHONPATH": str(folder / "src")}
    command = (str(program), "--no-cache", "--config", config)
    return proc.run(command, cwd=folder, env=env, timeout=PATIENCE, check=False)


def copy_tree(folder: Path) -> Path:
    """The package and its contracts, where a test may break them."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / PACKAGE, folder / "src" / PACKAGE, ignore=ignore)
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


def contracts(config: str = ".importlinter") -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / config)
    return read


def titles(config: str = ".importlinter") -> list[str]:
    read = contracts(config)
    return [read[name]["name"] for name in read.sections() if name.startswith("importlinter:contract:")]


def test_every_contract_is_kept() -> None:
    done = lint(ROOT)
    out = done.stdout.decode()
    assert done.returncode == 0, out
    assert [title for title in titles() if f"{title} KEPT" not in out] == []


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


def test_tests_benchmarks_and_what_they_share_import_in_one_direction() -> None:
    done = lint(ROOT, AROUND)
    out = done.stdout.decode()
    assert done.returncode == 0, out
    assert [title for title in titles(AROUND) if f"{title} KEPT" not in out] == []


def test_a_forbidden_import_around_the_package_breaks_each_contract(tmp_path: Path) -> None:
    root = copy_tree(tmp_path)
    shutil.copytree(ROOT / "testing", root / "testing", ignore=shutil.ignore_patterns("__pycache__"))
    allowed = {"tests/benchmarks/test_timing.py": "import benchmarks.timing"}
    for name, line in (allowed | FORBIDDEN_AROUND).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{line}\n", encoding="utf-8")
    done = lint(root, AROUND)
    out = done.stdout.decode()
    assert done.returncode != 0
    assert [title for title in titles(AROUND) if f"{title} BROKEN" not in out] == []


def test_a_new_package_must_be_given_a_place(tmp_path: Path) -> None:
    root = copy_tree(tmp_path)
    new = root / "src" / PACKAGE / "helpers"
    new.mkdir()
    (new / "__init__.py").touch()
    done = lint(root)
    assert done.returncode != 0
    assert f"{PACKAGE}.helpers" in done.stdout.decode()


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
