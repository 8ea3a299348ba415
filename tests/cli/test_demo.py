import subprocess
from pathlib import Path

import pytest
from tests.fakes.states.hostile import canary, canary_program

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
        top = make_repository(sample, tmp_path / name)
        found = subprocess.run(("git", "rev-parse", "HEAD"), cwd=top, capture_output=True, check=True)
        heads.append(found.stdout)
    assert heads[0] == heads[1]


def test_the_project_is_made_without_the_user_s_hooks_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = canary_program(tmp_path, tmp_path / "program")
    hooks = tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        canary_program(tmp_path, hooks / name)
    (tmp_path / "attributes").write_text("* filter=x\n")
    (tmp_path / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = {program}\n\tattributesFile = {tmp_path}/attributes\n"
        f"[init]\n\ttemplateDir = {tmp_path}/template\n[commit]\n\tgpgSign = true\n"
        f'[gpg]\n\tprogram = {program}\n[filter "x"]\n\tclean = {program}\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    make_repository(load_sample(), tmp_path / "made")
    assert canary(tmp_path) == ()
    assert not (tmp_path / "trace").exists()
