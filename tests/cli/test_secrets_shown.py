"""A secret that stands in the code: exact in the record, and in nothing that is shown or written for others."""

import json
import os
import re
import stat

import pytest
from testing.repositories import git
from testing.runs.solving import MENDED_MONEY, MONEY, TILL, Project, make_project

from clean_room_agent.cli.main import run
from clean_room_agent.db.connection import read_record
from clean_room_agent.workspace import Workspace

SECRET = "Tr0ub4dor&3-" + "xK9mP2vL5nQ8"
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d"
LINES = f'PASSWORD = "{SECRET}"  # {TOKEN}\ndef split('
MARK = re.compile(r"\[secret:[0-9a-f]{8}\]")
TASK = f"till/money.py: split(100, 3) must add up to 100; the token is {TOKEN}"


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str, str, str]:
    """A solved project with secrets, its run's id, and what the run said on both streams."""
    files = {**TILL, "till/money.py": MONEY.replace("def split(", LINES)}
    mended = {"till/money.py": MENDED_MONEY.replace("def split(", LINES)}
    project = make_project(tmp_path_factory.mktemp("keeper"), files, mended, task=TASK)
    old = os.umask(0)
    try:
        told = project.solve_scripted(None, "--json", "-vv", "--events", str(project.home / "events"))
    finally:
        os.umask(old)
    assert told.code == 0, told.err
    assert told.recorded.run is not None
    return project, told.recorded.run.task_id, told.out, told.err


COMMANDS = (
    ("show", "RUN", "--prompt"),
    ("show", "RUN", "--response"),
    ("show", "RUN", "--diff"),
    ("show", "RUN/part/step", "--diff"),
    ("show", "RUN", "--prompt", "--response", "--diff", "--json"),
    ("show", "RUN"),
    ("show", "RUN", "--tests", "--full"),
    ("show", "RUN", "--budget", "--decisions"),
    ("show", "RUN", "--why", "till/money.py:4"),
    ("runs",),
    ("runs", "--json"),
    ("retrieve", TASK, "--no-model"),
    ("retrieve", TASK, "--no-model", "--format", "prompt"),
    ("retrieve", TASK, "--no-model", "--format", "markdown"),
    ("retrieve", TASK, "--no-model", "--format", "json"),
)


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_no_command_shows_a_secret(keeper: tuple[Project, str, str, str], args: tuple[str, ...]) -> None:
    project, task_id, _, _ = keeper
    passes = json.loads(project.run_here("show", task_id, "--json")[1])["run"]["passes"]
    step = next(found["place"] for found in passes if "/" in found["place"])
    words = [word.replace("RUN", task_id).replace("part/step", step) for word in args]
    code, out, err = project.run_here(*words)
    assert code == 0, err
    assert SECRET not in out + err
    assert TOKEN not in out + err
    assert bool(MARK.search(out + err)) == (
        "in what was printed, so it is not exact; --exact prints all" in err
    )


def test_a_run_shows_no_secret_on_its_way(keeper: tuple[Project, str, str, str]) -> None:
    project, _, out, err = keeper
    events = (project.home / "events").read_text()
    for text in (out, err, events):
        assert SECRET not in text
        assert TOKEN not in text
    assert MARK.search(out)
    assert MARK.search(events)


def test_equal_secrets_look_the_same_in_every_command(keeper: tuple[Project, str, str, str]) -> None:
    project, task_id, out, _ = keeper
    shown = project.run_here("show", task_id, "--diff")[1]
    assert set(MARK.findall(shown)) <= set(MARK.findall(out))
    assert len(set(MARK.findall(out))) == 2


def test_exact_shows_all_and_says_nothing(keeper: tuple[Project, str, str, str]) -> None:
    project, task_id, _, _ = keeper
    code, out, err = project.run_here("show", task_id, "--prompt", "--exact")
    assert (code, err) == (0, "")
    assert SECRET in out
    assert TOKEN in out


def test_the_record_is_exact(keeper: tuple[Project, str, str, str]) -> None:
    project, _, _, _ = keeper
    with read_record(project.top) as conn:
        prompts = "".join(row[0] for row in conn.execute("SELECT prompt FROM retrieval_llm_calls"))
    assert SECRET in prompts
    assert TOKEN in prompts


def test_a_piped_diff_can_be_applied_and_says_when_it_is_not_exact(
    keeper: tuple[Project, str, str, str],
) -> None:
    project, task_id, _, _ = keeper
    _, exact, err = project.run_here("show", task_id, "--diff", "--exact")
    assert err == ""
    assert exact == git(project.top, "diff", "--full-index", "main", f"cra/{task_id[:8]}") + "\n"
    _, shown, err = project.run_here("show", task_id, "--diff")
    assert shown.count("\n") == exact.count("\n")
    assert err == (
        "2 secrets were replaced by [secret:...] in what was printed, so it is not exact; --exact prints all\n"
    )


def test_an_error_that_quotes_a_secret_does_not_show_it(keeper: tuple[Project, str, str, str]) -> None:
    code, _, said = keeper[0].run_here("show", TOKEN)
    assert code == 2
    assert TOKEN not in said
    assert MARK.search(said)


def test_the_value_of_a_secret_variable_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "plain-words-42")
    assert run(["frobnicate-plain-words-42"]) == 2
    assert "plain-words-42" not in capsys.readouterr().err


def test_all_that_a_run_leaves_is_private_under_an_open_umask(keeper: tuple[Project, str, str, str]) -> None:
    project, _, _, _ = keeper
    folder = Workspace(repo=project.top).folder
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert len(found) > 6
    assert {str(path): oct(mode) for path, mode in found.items() if mode & 0o077} == {}
    for path in (project.home / "cache" / "cra" / "worktrees").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_files_that_were_open_to_others_are_closed(till: Project, solved: str) -> None:
    folder = Workspace(repo=till.top).folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    assert till.run_here("retrieve", TASK, "--no-model")[0] == 0
    assert [str(path) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077] == []
