"""The start of the program: what is answered before anything is imported, and what that costs."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from testing.timing import processor_seconds

from clean_room_agent.version import VERSION

ROOT = Path(__file__).parents[2]
LOADED = """\
import json, sys
from clean_room_agent.cli.start import run
run()
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told_without_an_import_of_the_command_line(flag: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, flag], capture_output=True, text=True, check=True)
    assert done.stdout == f"cra, version {VERSION}\n"
    ours = [name for name in json.loads(done.stderr) if name.startswith("clean_room_agent")]
    assert ours == [
        "clean_room_agent",
        "clean_room_agent.cli",
        "clean_room_agent.cli.start",
        "clean_room_agent.cli.streams",
        "clean_room_agent.version",
    ]
    assert "click" not in done.stderr


def test_the_version_costs_hardly_more_than_python_itself() -> None:
    cra = str(Path(sys.executable).with_name("cra"))
    told = processor_seconds([cra, "--version"])
    assert told < 0.1
    assert told < 3 * processor_seconds([sys.executable, "-c", "pass"])


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert ROOT.joinpath(project["tool"]["hatch"]["version"]["path"]).is_file()


def test_the_module_can_be_run_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clean_room_agent", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cra, version {VERSION}\n"
