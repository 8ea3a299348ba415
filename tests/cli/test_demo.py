"""`cra demo`: what it makes and says, and what it leaves."""

import contextlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from testing.states.hostile import canary, canary_program

from clean_room_agent.app.demo import load_sample, make_repository
from clean_room_agent.cli.demo import SAID
from clean_room_agent.cli.main import run as cra
from clean_room_agent.folders import working_in

NO_SERVER = (
    *("demo", "--live", "--base-url", "http://127.0.0.1:9"),
    *("--coding", "coder:3b", "--reasoning", "thinker:4b"),
)
"""A demo that ends as soon as its project is made."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's project, solved, and what was said."""
    top = tmp_path_factory.mktemp("demo")
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(said):
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patched.setenv(name, str(top / name))
        assert cra(["demo", "--dir", str(top)]) == 0
    return top / "tally", said.getvalue()


@pytest.fixture
def demo(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(made[0].parent / name))
    return made[0]


def test_the_demo_solves_its_task_and_says_that_the_model_is_recorded(
    made: tuple[Path, str], demo: Path
) -> None:
    lines = made[1].strip().split("\n")
    assert SAID in lines[0]
    assert "recording" in lines[-1]
    assert any("complete: shown by " in line for line in lines)
    shown = [line.split("  (")[0] for line in lines if "cra show" in line or "git -C" in line]
    assert len(shown) == 4
    assert all(f"--repo {demo}" in line or f"-C {demo}" in line for line in shown), (
        "they work where one stands"
    )
    branches = subprocess.run(
        ("git", "branch", "--list", "cra/*"), cwd=demo, capture_output=True, text=True, check=True
    )
    assert branches.stdout.strip().startswith("cra/")


def test_a_second_demo_does_not_overwrite_the_first(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "tally").mkdir()
    assert cra(["demo", "--dir", str(home)]) == 2
    assert "already exists" in capfd.readouterr().err


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


def test_the_next_demo_removes_what_earlier_ones_left_unless_somebody_is_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home))

    def left() -> list[Path]:
        return sorted(home.glob("cra-demo-*"))

    for name in ("cra-demo-mine1234", "cra-demo-busy1234", "cra-demo-shell123"):
        (home / name / "tally").mkdir(parents=True)
    (home / "cra-demo-linked12").symlink_to(home / "cra-demo-mine1234")
    (home / "my-cra-demo-12345678").mkdir()
    assert cra([*NO_SERVER, "--keep"]) == 3
    assert len(left()) == 5
    (first,) = [
        path for path in left() if path.name[9:] not in {"mine1234", "busy1234", "shell123", "linked12"}
    ]
    sleeping = (sys.executable, "-c", "input()")
    with (
        working_in(home / "cra-demo-busy1234"),
        subprocess.Popen(sleeping, cwd=home / "cra-demo-shell123/tally", stdin=subprocess.PIPE),
    ):
        capfd.readouterr()
        assert cra(NO_SERVER) == 3
    said = capfd.readouterr()
    assert f"removed {first}, from an earlier demo" in said.err
    kept = {"cra-demo-busy1234", "cra-demo-shell123", "cra-demo-linked12"}
    assert kept < {path.name for path in left()}
    assert len(left()) == len(kept) + 1
    assert (home / "my-cra-demo-12345678").is_dir()


def test_all_that_needs_no_model_works_in_the_demo(demo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cra(["replay", "--repo", str(demo)]) == 0
    assert "the same" in capfd.readouterr().out
    for words in (
        ("show",), ("show", "@", "--why", "tally/money.py"), ("runs",), ("stats",), ("config",), ("prune",),
        ("report", "@", "-o", str(demo.parent / "report.html")), ("retrieve", "--no-model", "split"), ("apply",), ("index",),
    ):  # fmt: skip
        assert cra([*words, "--repo", str(demo)]) == 0, (words, capfd.readouterr())
    assert cra(["train-plan", "--repo", str(demo)]) == 1
    assert "no plan: of 1 ended task in the record none failed" in capfd.readouterr().out
