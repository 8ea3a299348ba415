"""`cra completion`: the script is installed, and real shells use it."""

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from testing.runs.solving import Project
from testing.shells import Shell

from clean_room_agent.cli.completion import SCRIPTS
from clean_room_agent.cli.main import run

CRA = str(Path(sys.executable).with_name("cra"))


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


STARTS = {
    "bash": (("bash", "--rcfile", "start", "-i"), "PS1='> '\nbind 'set bell-style none'\n. ./script\n"),
    "zsh": (("zsh", "-f", "-i"), "PS1='> '\nautoload -U compinit; compinit -u -D\n. ./script\n"),
    "fish": (("fish", "--no-config", "-i"), "function fish_prompt; echo -n '> '; end\n. ./script\n"),
}


def start(shell: str, project: Project, path: Path, **environment: str) -> Shell:
    """The shell in the project, with the script read and `path` first on PATH, once it has shown that it is ready."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    command, text = STARTS[shell]
    (project.top / "script").write_text((SCRIPTS / f"cra.{shell}").read_text(encoding="utf-8"))
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
    with start(shell, till, Path(CRA).parent) as terminal:
        for typed, whole in (
            (f"echo; cra show {solved[:4]}", solved[4:8]),
            (f"cra show '{solved[:4]}", solved[4:8]),
            ("cra solve --plan=scr", "ipt"),
            ("cra solve --plan scr", "ipt"),
            ("cra adapters dep", "loy"),
        ):
            terminal.type(f"{typed}\t")
            assert whole in terminal.shown_until(whole)
            terminal.type("\x15")
