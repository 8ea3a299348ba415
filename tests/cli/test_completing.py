"""What the shell offers at TAB: asked as the shells ask it, and in the shells themselves."""

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from testing.runs.solving import TASK, Project

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import start
from clean_room_agent.cli.completing import answer_shell, find_completions
from clean_room_agent.cli.main import COMMANDS, run
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_orchestrator_run
from clean_room_agent.redaction import SHOWN_DIGITS
from clean_room_agent.retrieval.retriever import STAGES

CRA = str(Path(sys.executable).with_name("cra"))


SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d"


BASH_BREAKS = " \t\n\"'@><=;|&(:"


def offered(*words: str) -> list[str]:
    return [word for word, _ in find_completions(words)[1]]


def ask(project: Project, shell: str, *words: str, cwd: Path | None = None) -> list[str]:
    """The lines that the program answers a shell with."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {**project.environment(), start.COMPLETE: shell}, clear=True),
        patch.object(sys, "argv", [CRA, *words]),
        contextlib.chdir(cwd or project.top),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        start.run()
    assert err.getvalue() == ""
    return out.getvalue().splitlines()


def add_runs(project: Project, count: int, task: str = "Mend the {} thing") -> None:
    """Runs older than any other, all with ids that begin with `0`."""
    with contextlib.closing(get_connection("raw", repo_path=project.top)) as conn, transaction(conn):
        for number in range(count):
            row = OrchestratorRunRow(
                task_id=f"{number:08x}-58d4-4f0e-9a35-0d6f3b1c7e55",
                repo_path=str(project.top),
                task_description=task.format(number),
                status=RunStatus.FAILED,
                timestamp=f"2020-01-01T00:{number // 60:02}:{number % 60:02}.000000+00:00",
            )
            append_orchestrator_run(conn, row)


def test_commands_with_their_help() -> None:
    assert offered("re") == ["retrieve", "report", "replay"]
    assert offered("") == list(COMMANDS)
    assert find_completions(["runs"])[1] == [("runs", COMMANDS["runs"])]
    assert offered("help", "ap") == ["apply"]
    assert set(offered("adapters", "")) == {"deploy", "evaluate", "list", "retire"}
    assert offered("nonsense", "") == []


@pytest.mark.parametrize("words", [(), ("cra ",), ("a", "b", "c")])
def test_bash_without_its_two_words_is_answered_with_nothing(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    answer_shell("bash", words)
    assert capsys.readouterr().out == ""


def test_flags_are_offered_once_and_their_values_where_they_are_known() -> None:
    assert offered("retrieve", "--no") == ["--no-model"]
    assert offered("retrieve", "--no-model", "--no") == []
    assert offered("retrieve", "--format", "") == ["text", "json", "markdown", "prompt"]
    assert offered("retrieve", "--format=j") == ["--format=json"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert set(offered("train-plan", "--target", "scope")) == {"scope_judgment", "scope_batch"}
    assert offered("solve", "--", "-") == []
    assert offered("solve", "--nonsense=") == []


def test_stages_and_keys_of_the_configuration_are_offered() -> None:
    assert offered("solve", "--stages", "") == list(STAGES)
    assert offered("solve", "--stages", "scope,") == [f"scope,{name}" for name in STAGES if name != "scope"]
    assert offered("replay", "--stage", "scope") == ["scope", "scope_batch", "scope_judgment"]
    assert offered("config", "set", "models.co") == ["models.coding"]
    assert "solve.max_attempts" in offered("config", "unset", "--user", "")


def test_files_and_folders_are_left_to_the_shell() -> None:
    assert find_completions(["solve", "--plan", ""])[0] == "files"
    assert find_completions(["solve", "--plan=pl"])[0] == "files"
    assert find_completions(["show", "--why", ""])[0] == "files"
    assert find_completions(["runs", "--repo", ""])[0] == "folders"


def test_what_is_typed_has_no_effect(till: Project, tmp_path: Path) -> None:
    kept = tmp_path / "events"
    kept.write_text("kept")
    assert "--json" in offered("solve", "--events", str(kept), "--notify", "--issue", "/none", "--js")
    assert kept.read_text() == "kept"


def test_runs_with_their_tasks_the_newest_first(till: Project, solved: str) -> None:
    add_runs(till, 40)
    told = f"solve, complete: {TASK}"
    told = told if len(told) <= 72 else told[:71] + "…"
    lines = ask(till, "zsh", "show", "")
    assert lines[:4] == [
        "words",
        f"@\t{told}",
        f"{solved[:8]}\t{told}",
        "00000027\tsolve, failed: Mend the 39 thing",
    ]
    assert len(lines) == 1 + 1 + 30
    assert ask(till, "fish", "solve", "--resume", solved[:3]) == ["words", f"{solved[:8]}\t{told}"]
    assert ask(till, "zsh", "apply", solved[:20]) == ["words", f"{solved}\t{told}"]
    assert ask(till, "zsh", "report", "@")[1:3] == [f"@\t{told}", "@~1\tsolve, failed: Mend the 39 thing"]
    assert ask(till, "zsh", "replay", "@~2") == [
        "words",
        "@~2\tsolve, failed: Mend the 38 thing",
        *(f"@~2{number}\tsolve, failed: Mend the {20 - number} thing" for number in range(10)),
    ]


def test_another_repository_is_named_by_the_flag(till: Project, solved: str, tmp_path: Path) -> None:
    assert any(
        solved[:8] in line for line in ask(till, "zsh", "show", "--repo", str(till.top), "", cwd=tmp_path)
    )
    assert not any(solved[:8] in line for line in ask(till, "zsh", "show", "", cwd=tmp_path))


def test_a_folder_inside_of_the_repository_is_as_good(till: Project, solved: str) -> None:
    assert any(solved[:8] in line for line in ask(till, "zsh", "show", "", cwd=till.top / "till"))


def test_a_secret_in_a_task_is_not_shown(till: Project, solved: str) -> None:
    add_runs(till, 1, f"The token is {SECRET}\n\x1b[31mand more")
    (line,) = [line for line in ask(till, "zsh", "show", "0000") if line.startswith("0")]
    assert line.startswith("00000000\tsolve, failed: The token is [secret:")
    assert len(line.partition("[secret:")[2].partition("]")[0]) == SHOWN_DIGITS


def test_nothing_of_a_folder_that_came_with_the_repository_is_read(till: Project, solved: str) -> None:
    assert len(ask(till, "zsh", "show", "")) > 1
    (till.top / ".clean_room" / "trust.key").unlink()
    before = {path.name: path.stat() for path in (till.top / ".clean_room").iterdir()}
    assert ask(till, "zsh", "show", solved[:3]) == ["words"]
    assert all(solved[:8] not in line for line in ask(till, "zsh", "show", ""))
    assert {path.name: path.stat() for path in (till.top / ".clean_room").iterdir()} == before


def test_bash_gets_words_from_its_last_break_on(till: Project, solved: str) -> None:
    def bash(line: str, breaks: str = BASH_BREAKS) -> list[str]:
        return ask(till, "bash", line, breaks)[1:]

    assert bash("cra re") == ["retrieve", "report", "replay"]
    assert bash("cra solve --stages=sc") == ["scope"]
    assert bash("cra solve --stages=sc", " \t\n") == ["--stages=scope"]
    assert bash("cra show @") == ["@"]
    for quote in ("", "'", '"'):
        assert bash(f"cra show {quote}{solved[:4]}") == [solved[:8]]
    assert bash(f"cra show --repo='.' {solved[:4]}") == [solved[:8]]
    assert bash('cra solve --stages="sc') == []


def test_only_words_that_mean_themselves_in_any_quote_are_offered(till: Project, solved: str) -> None:
    with contextlib.closing(get_connection("raw", repo_path=till.top)) as conn:
        conn.execute("DROP TRIGGER IF EXISTS orchestrator_runs_identity")
        for odd in ("0$(x)", "0`x", "0 x", "0\x1b[31m", "0\u202e", "0;x"):
            row = OrchestratorRunRow(
                task_id=odd,
                repo_path=str(till.top),
                task_description="",
                status=RunStatus.FAILED,
                timestamp="t",
            )
            append_orchestrator_run(conn, row)
    add_runs(till, 1)
    for shell, line in (
        ("bash", ("cra show 0", BASH_BREAKS)),
        ("zsh", ("show", "0")),
        ("fish", ("show", "0")),
    ):
        words = [word.partition("\t")[0] for word in ask(till, shell, *line)]
        assert [word for word in words if word != solved[:8]] == ["words", "00000000"], shell


def test_completion_runs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "bash"
    planted.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["completion", "bash"]) == 0
    assert not (tmp_path / "ran").exists()
