"""`cra completion`: the script is installed, real shells use it, and what they are offered."""

import contextlib
import io
import os
import shutil
import stat
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from testing.runs.solving import Project
from testing.shells import Shell

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import start
from clean_room_agent.cli.completing import COMPLETE, script_of
from clean_room_agent.cli.main import COMMANDS, run
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_orchestrator_run

CRA = str(Path(sys.executable).with_name("cra"))
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d"


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "share/bash-completion/completions/cra"),
        ("zsh", "share/zsh/site-functions/_cra"),
        ("fish", "config/fish/completions/cra.fish"),
    ],
)
def test_one_command_installs_the_script(
    shell: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert run(["completion", shell, "--install"]) == 0
    said = capsys.readouterr()
    path = tmp_path / place
    assert said.out == f"{path}\n"
    assert said.err.startswith(("every new", "add to ~/.zshrc"))
    assert path.read_text(encoding="utf-8") == printed
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444 & ~os.umask(os.umask(0))


def offered(*words: str, project: Project | None = None, cwd: Path | None = None) -> dict[str, str]:
    """What zsh is answered for these words after `cra`: each completion with what it means."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    asked = {COMPLETE: "zsh_complete", "COMP_WORDS": " ".join(("cra", *words)), "COMP_CWORD": str(len(words))}
    environment = project.environment() if project else dict(os.environ)
    with (
        patch.dict(os.environ, {**environment, **asked}, clear=True),
        patch.object(sys, "argv", [CRA]),
        contextlib.chdir(cwd or (project.top if project else Path.cwd())),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        assert start.run() == 0
    assert err.getvalue() == ""
    out.seek(0)
    lines = out.read().splitlines()
    return dict(zip(lines[1::3], lines[2::3], strict=True))


def add_run(project: Project, task_id: str, task: str) -> None:
    """A run older than any other."""
    with contextlib.closing(get_connection("raw", repo_path=project.top)) as conn, transaction(conn):
        row = OrchestratorRunRow(
            task_id=task_id,
            repo_path=str(project.top),
            task_description=task,
            status=RunStatus.FAILED,
            timestamp="2020-01-01T00:00:00.000000+00:00",
        )
        append_orchestrator_run(conn, row)


def test_commands_flags_and_values_are_offered() -> None:
    assert [*offered("re")] == ["retrieve", "report", "replay"]
    assert offered("runs") == {"runs": COMMANDS["runs"]}
    assert {*offered("adapters", "")} == {"deploy", "evaluate", "list", "retire"}
    assert [*offered("retrieve", "--no")] == ["--no-model"]
    assert [*offered("retrieve", "--format", "")] == ["text", "json", "markdown", "prompt"]
    assert offered("nonsense", "") == {}


def test_runs_are_offered_with_their_tasks_the_newest_first(till: Project, solved: str) -> None:
    add_run(till, "00000001-58d4-4f0e-9a35-0d6f3b1c7e55", f"Mend {SECRET}\n\x1b[31mand more")
    told = offered("show", "", project=till)
    assert [*told] == ["@", solved[:8], "00000001"]
    assert told["00000001"].startswith("solve, failed: Mend [secret:")
    assert told[solved[:8]].startswith("solve, complete: ")
    assert [*offered("apply", solved[:20], project=till)] == [solved]
    assert [*offered("show", "0000000", project=till, cwd=till.top / "till")] == ["00000001"]


def test_nothing_of_a_folder_that_came_with_the_repository_is_read(till: Project, solved: str) -> None:
    (till.top / ".clean_room" / "trust.key").unlink()
    assert offered("show", solved[:3], project=till) == {}


STARTS = {
    "bash": (("bash", "--rcfile", "start", "-i"), "PS1='> '\nbind 'set bell-style none'\n. ./script\n"),
    "zsh": (("zsh", "-f", "-i"), "PS1='> '\nautoload -U compinit; compinit -u -D\n. ./script\n"),
    "fish": (("fish", "--no-config", "-i"), "function fish_prompt; echo -n '> '; end\n. ./script\n"),
}


def open_shell(shell: str, project: Project, path: Path, **environment: str) -> Shell:
    """The shell in the project, with the script read and `path` first on PATH, once it has shown that it is ready."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    command, text = STARTS[shell]
    (project.top / "script").write_text(script_of(shell))
    (project.top / "start").write_text(text)
    told = {
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
        "TERM": "xterm",
        "COLUMNS": "120",
        "LINES": "40",
    }
    terminal = Shell(command, env={**project.environment(), **told, **environment}, cwd=project.top)
    if shell != "bash":
        terminal.type(". ./start\n")
    terminal.type("echo re''ady\n")
    terminal.shown_until("ready")
    return terminal


@pytest.mark.parametrize("shell", STARTS)
def test_a_real_shell_completes_a_run_and_a_path(shell: str, till: Project, solved: str) -> None:
    with open_shell(shell, till, Path(CRA).parent) as terminal:
        for typed, whole in (
            (f"echo; cra show {solved[:4]}", solved[4:8]),
            ("cra solve --plan scr", "ipt"),
            ("cra adapters dep", "loy"),
        ):
            terminal.type(f"{typed}\t")
            assert whole in terminal.shown_until(whole)
            terminal.type("\x15")
