"""What is released: a wheel and an sdist, each the same bytes wherever it is built, with all that the program reads."""

import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import git

from clean_room_agent import proc
from clean_room_agent.version import VERSION

ROOT = Path(__file__).parents[2]
WHEEL = f"clean_room_agent-{VERSION}-py3-none-any.whl"
SDIST = f"clean_room_agent-{VERSION}.tar.gz"


def build(source: Path, target: Path, *flags: str) -> None:
    """The wheel and the sdist of the repository at `source` stand in `target`."""
    command = (sys.executable, "-m", "hatchling", "build", "-d", str(target), *flags)
    environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": "1700000000"}
    proc.run(command, cwd=source, env=environment, timeout=PATIENCE)


def tracked() -> set[str]:
    return {name for name in git(ROOT, "ls-files", "-z").split("\0") if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, of the files that git knows."""
    folder = tmp_path_factory.mktemp("built")
    for name in tracked():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "source" / name)
    build(folder / "source", folder)
    return folder


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (licence,) = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    ours = {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    assert inside == ours
    assert {Path(name).suffix for name in inside} >= {
        ".sql",
        ".j2",
        ".toml",
        ".jsonl",
        ".css",
        ".cjs",
    }


def test_the_sdist_has_the_repository(built: Path) -> None:
    with tarfile.open(built / SDIST) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert inside - {"PKG-INFO"} == tracked()


def test_the_sdist_gives_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / SDIST) as sdist:
        sdist.extractall(tmp_path, filter="data")
    build(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path, "-t", "wheel")
    assert (tmp_path / WHEEL).read_bytes() == (built / WHEEL).read_bytes()


def test_what_is_installed_from_the_wheel_runs_the_demo(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    proc.run(
        (*pip, "--target", str(place), str(built / WHEEL)), cwd=tmp_path, env=environment, timeout=PATIENCE
    )
    environment["PYTHONPATH"] = str(place)
    where = "import clean_room_agent as it; print(it.__file__)"
    found = proc.run(
        (sys.executable, "-c", where), cwd=tmp_path, env=environment, timeout=PATIENCE
    ).stdout.decode()
    assert Path(found.strip()).is_relative_to(place)
    cra = str(place / "bin" / "cra")
    told = proc.run((cra, "--version"), cwd=tmp_path, env=environment, timeout=PATIENCE).stdout.decode()
    assert told == f"cra, version {VERSION}\n"
    demo = proc.run((cra, "demo", "--dir", str(tmp_path)), cwd=tmp_path, env=environment, timeout=PATIENCE)
    assert b"Ask it why:" in demo.stdout
