"""What the shell offers at TAB: asked as the shells ask it, and in the shells themselves."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from testing.runs.solving import TASK, Project
from testing.timing import processor_seconds

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import start
from clean_room_agent.cli.completing import complete, tell_shell
from clean_room_agent.cli.main import COMMANDS, run
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_orchestrator_run
from clean_room_agent.db.raw.training import ADAPTER_REGISTRY, AdapterRow
from clean_room_agent.redaction import SHOWN_DIGITS

CRA = str(Path(sys.executable).with_name("cra"))


SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d"


BASH_BREAKS = " \t\n\"'@><=;|&(:"


def offered(*words: str) -> list[str]:
    return [word for word, _ in complete(words).words]


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


def ask_process(project: Project, shell: str, *words: str) -> list[str]:
    """The same from a process of its own."""
    environment = {**project.environment(), start.COMPLETE: shell}
    done = subprocess.run(
        [CRA, *words], cwd=project.top, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


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
    assert dict(complete(["runs"]).words) == {"runs": COMMANDS["runs"].help}
    assert offered("help", "ap") == ["apply"]
    assert offered("adapters", "") == ["deploy", "evaluate", "list", "retire"]
    assert offered("nonsense", "") == []


@pytest.mark.parametrize("words", [(), ("cra ",), ("a", "b", "c")])
def test_bash_without_its_two_words_is_answered_with_nothing(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    tell_shell("bash", words)
    assert capsys.readouterr().out == ""


def test_flags_are_offered_once_and_their_values_where_they_are_known() -> None:
    assert offered("retrieve", "--no") == ["--no-model"]
    assert offered("retrieve", "--no-model", "--no") == []
    assert "--prompt" in offered("show", "--diff", "-")
    assert "--diff" not in offered("show", "--diff", "-")
    assert "--verbose" in offered("solve", "-v", "-")
    assert offered("retrieve", "--format", "") == ["text", "json", "markdown", "prompt"]
    assert offered("retrieve", "--format=j") == ["--format=json"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert offered("train-plan", "--target", "scope") == ["scope_judgment", "scope_batch"]
    assert offered("solve", "--", "-") == []
    assert offered("solve", "--nonsense=") == []


def test_stages_come_one_after_the_other() -> None:
    assert offered("solve", "--stages", "") == ["scope", "precision"]
    assert offered("solve", "--stages", "scope,") == ["scope,precision"]
    assert complete(["solve", "--stages", "s"]).how == "open"
    assert offered("replay", "--stage", "scope") == ["scope", "scope_batch", "scope_judgment"]


def test_keys_of_the_configuration_with_what_they_are_for() -> None:
    assert offered("config", "set", "models.co") == ["models.coding"]
    assert dict(complete(["config", "get", "budget.reserved"]).words)["budget.reserved_tokens"]
    assert "solve.max_attempts" in offered("config", "unset", "--user", "")


def test_files_and_folders_are_left_to_the_shell() -> None:
    assert complete(["solve", "--plan", ""]).how == "files"
    assert complete(["solve", "--plan=pl"]).how == "files"
    assert complete(["retrieve", "--issue", ""]).how == "files"
    assert complete(["runs", "--repo", ""]).how == "folders"
    assert complete(["bootstrap", "one", ""]).how == "folders"


def test_where_nothing_is_known_of_a_word_the_flags_are_offered() -> None:
    assert "--apply" in offered("solve", "")
    assert offered("solve", "some words") == []


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


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_process_of_its_own_answers_the_same(till: Project, solved: str, shell: str) -> None:
    asked = (("show", ""), ("solve", "--resume", solved[:3]), ("show", "--why", "till/"))
    for words in asked if shell == "zsh" else asked[:1]:
        assert ask_process(till, shell, *words) == ask(till, shell, *words)


def test_places_of_a_run(till: Project, solved: str) -> None:
    lines = ask(till, "zsh", "show", f"{solved[:8]}/")
    places = [line.partition("\t")[0].partition("/")[2] for line in lines[1:]]
    assert places[0] == "meta_plan"
    step = next(place for place in places if "/" in place)
    assert step.partition("/")[0] in places
    for place in places:
        assert till.run_here("show", f"@/{place}")[0] == 0, place


def test_the_files_of_a_run_after_why(till: Project, solved: str) -> None:
    add_runs(till, 1)
    assert "till/money.py\tshown" in ask(till, "zsh", "show", "--why", "till/")
    assert ask(till, "zsh", "show", "@~1", "--why", "till/") == ["words"]
    assert "--why=till/money.py\tshown" in ask(till, "zsh", "show", "--why=till/m")
    assert till.run_here("show", "--why", "till/money.py")[0] == 0


def test_adapters_with_their_prompts(till: Project, solved: str) -> None:
    with contextlib.closing(get_connection("raw", repo_path=till.top)) as conn:
        conn.execute("PRAGMA foreign_keys = OFF")
        ADAPTER_REGISTRY.insert(
            conn,
            AdapterRow(
                dataset_id=1,
                stage_name="scope_batch",
                base_model="b",
                model_tag="b-scope-v1",
                training_loss=None,
                trained_at="t",
            ),
        )
    assert ask(till, "zsh", "adapters", "deploy", "") == ["words", "b-scope-v1\tscope_batch"]


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


def test_without_a_record_flags_are_offered(till: Project) -> None:
    assert "--diff\tWhat changed" in ask(till, "zsh", "show", "")


def test_bash_gets_words_from_its_last_break_on(till: Project, solved: str) -> None:
    def bash(line: str, breaks: str = BASH_BREAKS) -> list[str]:
        return ask(till, "bash", line, breaks)

    assert bash("cra re") == ["words", "retrieve", "report", "replay"]
    assert bash("cra solve --stages=sc") == ["open", "scope"]
    assert bash("cra solve --stages=sc", " \t\n") == ["open", "--stages=scope"]
    assert bash("cra show @") == ["open", "@"]
    adjusted = bash("cra show @/adjust:")
    assert adjusted[0] == "words"
    assert all(not line.startswith("@") and "adjust" not in line for line in adjusted[1:])
    assert bash("cra show @/adjust:", " \t\n")[1].startswith("@/adjust:")


def decide_about(project: Project, run: str, *names: str) -> None:
    """Record that the run decided about files of these names."""
    with contextlib.closing(get_connection("raw", repo_path=project.top)) as conn:
        conn.executemany(
            "INSERT INTO retrieval_decisions (task_id, stage, tier, included, reason, timestamp, path) "
            "VALUES (?, 's', 1, 1, 'r', 't', ?)",
            [(run, name) for name in names],
        )


def test_what_bash_would_take_apart_is_escaped(till: Project, solved: str) -> None:
    decide_about(till, solved, "my file$(x).py", "your/a&b", "your/c;d")

    def bash(line: str) -> list[str]:
        return ask(till, "bash", line, BASH_BREAKS)

    assert bash("cra show --why my") == ["words", r"my\ file$'\x24'\(x\).py"]
    assert bash("cra show --why 'my f") == ["words", "my file$(x).py"]
    assert bash('cra show --why "my f') == ["words", "my file\"$'\\x24'\"(x).py"]
    assert bash("cra show --why=$'my f") == ["words", "my file$(x).py"]
    assert bash('cra show "$(cra show --why "my') == ["words"]
    assert bash("cra show --why y") == ["open", "your/"]
    assert bash("cra show --why your/") == ["words", "", r"your/a\&b", r"your/c\;d"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_that_no_line_can_show_are_not_offered(till: Project, solved: str, shell: str) -> None:
    odd = ("\t", "\n", "\r", "\x1b[31m", "\x7f", "\x9b", "\u202e", "\u200b", "\u2028", "\ufeff", "\u00ad")
    decide_about(till, solved, "odd-plain", *(f"odd{each}$(x)" for each in odd))
    line = ["cra show --why odd", BASH_BREAKS] if shell == "bash" else ["show", "--why", "odd"]
    assert [each.partition("\t")[0] for each in ask(till, shell, *line)] == ["words", "odd-plain"]


def test_a_tab_takes_little_time_in_a_record_of_500_runs(till: Project, solved: str) -> None:
    add_runs(till, 500)
    environment = {**till.environment(), "_CRA_COMPLETE": "zsh"}
    for words in (["show", ""], ["show", "--why", "t"], ["solve", "--st"]):
        spent = processor_seconds([CRA, *words], env=environment, cwd=till.top, enough=0.15)
        assert spent < 0.15, words


def test_completion_runs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "bash"
    planted.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["completion", "bash"]) == 0
    assert not (tmp_path / "ran").exists()
