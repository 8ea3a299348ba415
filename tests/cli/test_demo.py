import subprocess
from pathlib import Path

import pytest

from clean_room_agent.cli.demo import SAID
from clean_room_agent.cli.main import run as cra
from clean_room_agent.cli.sample import load_sample, make_repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_demo_solves_its_task_and_says_that_the_model_is_recorded(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cra(["demo", "--dir", str(home)]) == 0
    lines = capfd.readouterr().out.strip().split("\n")
    assert SAID in lines[0]
    assert "recording" in lines[-1]
    assert any("complete: the tests pass" in line for line in lines)
    top = home / "tally"
    branches = subprocess.run(
        ("git", "branch", "--list", "cra/*"), cwd=top, capture_output=True, text=True, check=True
    )
    assert branches.stdout.strip().startswith("cra/")
    run = branches.stdout.strip().removeprefix("cra/")
    assert cra(["replay", run, "--repo", str(top)]) == 0
    assert "the same" in capfd.readouterr().out


def test_a_second_demo_does_not_overwrite_the_first(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "tally").mkdir()
    assert cra(["demo", "--dir", str(home)]) == 2
    assert "is there already" in capfd.readouterr().err


def test_the_sample_has_the_same_commits_everywhere(tmp_path: Path) -> None:
    sample = load_sample()
    heads = []
    for name in ("one", "two"):
        top = make_repository(sample, tmp_path / name, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        found = subprocess.run(("git", "rev-parse", "HEAD"), cwd=top, capture_output=True, check=True)
        heads.append(found.stdout)
    assert heads[0] == heads[1]
