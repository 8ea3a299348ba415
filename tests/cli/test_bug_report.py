"""A bug report: what is in it, what is not, and that nothing leaves the machine."""

import contextlib
import io
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from testing.runs.recorded import read_newest
from testing.runs.solving import MENDED_MONEY, MONEY, TILL, Project, make_project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.tracebacks import log_text
from clean_room_agent.cli.main import run
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw.runs import EventRow, append_event
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d"
SERVER_KEY = "plain words as a key"
"""Looks like no secret: only the configuration says that this variable holds one."""
PASSWORD = "Tr0ub4dor&3-" + "xK9mP2vL5nQ8"
WEAK = "hunter"
URL_PASSWORD = "p4ss" + "Zq81Lm"
SECRETS = (TOKEN, SERVER_KEY, PASSWORD, WEAK, URL_PASSWORD)
CODE_LINES = ("share = cents // people", "divmod(cents, people)")
PLACES = frozenset(
    {"README.txt", "program.json", "check.json", "configuration.json", "folder.json"}
    | {"run.json", "events.json", "calls.json"}
)
TRACEBACKS = frozenset({"tracebacks/cra-bug-1.log", "tracebacks/cra-bug-3.log"})


def read_archive(path: Path) -> dict[str, str]:
    """Texts by name."""
    with zipfile.ZipFile(path) as packed:
        assert packed.testzip() is None
        return {name.partition("/")[2]: packed.read(name).decode() for name in packed.namelist()}


def values(files: dict[str, str]) -> dict[str, Any]:
    """Value and source by key."""
    return {row["key"]: (row["value"], row["source"]) for row in json.loads(files["configuration.json"])}


@pytest.fixture(scope="module")
def planted_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a run, and secrets in its code, its record and the temporary folder beside it."""
    folder = tmp_path_factory.mktemp("planted")
    files = {**TILL, "till/money.py": f'PASSWORD = "{PASSWORD}"\n{MONEY}'}
    project = make_project(folder, files, {"till/money.py": f'PASSWORD = "{PASSWORD}"\n{MENDED_MONEY}'})
    temporary = folder / "temporary"
    temporary.mkdir()
    bug = OSError(
        f"in {project.home}/work with {TOKEN} on round half up\nWhere it happened:\n\nround half up"
    )
    (temporary / "cra-bug-1.log").write_text(log_text(bug))
    (temporary / "cra-bug-3.log").write_text("round half up")
    (temporary / "cra-bug-round half up.log").write_text("")
    os.mkfifo(temporary / "cra-bug-4.log")
    (temporary / "cra-bug-2.log").symlink_to(project.top / "till" / "money.py")
    with OllamaServer(project.oracle) as server:
        told = project.solve(server)
    assert told.code == 0, told.err
    assert told.recorded.run is not None
    row = EventRow(
        task_id=told.recorded.run.task_id,
        kind="note",
        detail=f"{SERVER_KEY}, {TOKEN} in {project.home}/secret and {project.top}/till\n",
        timestamp="2030-01-01T00:00:00.000Z",
    )
    with contextlib.closing(get_connection("raw", repo_path=project.top)) as conn, transaction(conn):
        append_event(conn, row)
        append_event(
            conn, EventRow(task_id=row.task_id, kind="hint", detail="round half up", timestamp=row.timestamp)
        )
    return project


@pytest.fixture
def planted(planted_once: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same with secrets in its configuration and the environment, too."""
    monkeypatch.setattr("tempfile.tempdir", str(planted_once.top.parent / "temporary"))
    planted_once.configure(
        f"http://me:{URL_PASSWORD}@127.0.0.1:9/v1",
        models={
            "provider": "openai",
            "api_key_env": "MY_SERVER",
            "extra_body": {"user_token": WEAK, "note": f"for {TOKEN}"},
        },
    )
    monkeypatch.setenv("MY_SERVER", SERVER_KEY)
    monkeypatch.setenv("DEPLOY_KEY", PASSWORD)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--token={TOKEN}")
    return planted_once


def make(project: Project, *flags: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What `--json` answers, and the archive."""
    code, out, err = project.run_here("bug-report", *flags, "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    return told, read_archive(Path(told["path"]))


@pytest.mark.parametrize("flags", [(), ("--prompts",)])
def test_no_secret_and_no_home_is_in_it(planted: Project, flags: tuple[str, ...]) -> None:
    told, files = make(planted, *flags)
    assert "error" in files["configuration.json"], (
        "a password in an address is refused, and stands in the file"
    )
    for name, text in files.items():
        for secret in SECRETS:
            assert secret not in text, name
        assert str(planted.home) not in text, name
        assert str(planted.top) not in text, name
    assert told["secrets_replaced"] > 0
    if flags:
        notes = [detail for _, kind, detail in json.loads(files["texts.json"])["events"] if kind == "note"]
        assert "~/secret and <repository>/till" in notes[-1]
        assert notes[-1].count("[secret:") == 2
        assert "OSError: in ~/work with [secret:" in files["tracebacks/cra-bug-1.log"]
    assert "tracebacks/cra-bug-2.log" not in files, "a link leads anywhere"


def test_the_secrets_were_there_to_be_found(planted: Project) -> None:
    config = Workspace(repo=planted.top).config.read_text()
    for secret in (WEAK, TOKEN, URL_PASSWORD):
        assert secret in config
    prompts = "".join(call.request.prompt for call in read_newest(Workspace(repo=planted.top).raw).calls)
    assert PASSWORD in prompts
    assert CODE_LINES[0] in prompts


def test_what_a_maintainer_needs_is_in_it(planted: Project) -> None:
    models = {"provider": "openai", "api_key_env": "MY_SERVER", "extra_body": {"user_token": WEAK}}
    planted.configure("http://127.0.0.1:9/v1", models=models)
    told, files = make(planted)
    assert WEAK not in files["configuration.json"]
    assert set(files) == PLACES | TRACEBACKS
    assert files["tracebacks/cra-bug-1.log"] == "Where it happened:\n\nbuiltins.OSError\n"
    assert files["tracebacks/cra-bug-3.log"] == ""
    program = json.loads(files["program.json"])
    assert program["cra"] == VERSION
    assert {"click", "httpx", "pydantic"} <= set(program["packages"])
    assert program["sandbox"]
    assert program["variables"]["PYTEST_ADDOPTS"].startswith("--token=[secret:")
    assert "DEPLOY_KEY" not in program["variables"]
    assert {"git", "platform", "configuration"} <= {line["name"] for line in json.loads(files["check.json"])}
    known = values(files)
    assert known["budget.context_window"] == (16384, "repository")
    assert known["models.api_key_env"] == ("MY_SERVER", "repository")
    assert known["models.extra_body.user_token"][0].startswith("[hidden")
    record = json.loads(files["run.json"])
    assert (record["task_id"], record["status"]) == (told["task_id"], "complete")
    assert next(row["kind"] for row in record["tests"]) == "baseline"
    assert any(entry["attempts"] for entry in record["passes"])
    made = [call["prompt"] for call in json.loads(files["calls.json"])]
    assert [name for name in made if name != PROBE_NAME] == [
        call.site.call_type for call in planted.recorded().calls
    ]
    assert any(entry["name"] == "raw.sqlite" for entry in json.loads(files["folder.json"]))


def test_the_users_code_and_words_are_in_it_on_demand_alone(planted: Project) -> None:
    planted.configure("http://127.0.0.1:9/v1")
    _, files = make(planted)
    everything = "".join(files.values())
    assert not any(line in everything for line in CODE_LINES)
    assert planted.task not in everything
    assert "round half up" not in everything
    assert "must add up" not in everything
    assert f"{planted.top.name}-" not in everything, "the folder's name"
    assert "removed below <worktrees>" in files["check.json"]
    _, files = make(planted, "--prompts")
    assert set(files) - PLACES == {
        *TRACEBACKS,
        "task.txt",
        "texts.json",
        "prompts.json",
        "diffs.json",
        "tests.json",
    }
    for line in CODE_LINES:
        assert line in files["prompts.json"] + files["diffs.json"]
    assert planted.task in files["task.txt"]


def test_it_says_what_is_in_it_and_sends_nothing(planted: Project, tmp_path: Path) -> None:
    place = tmp_path / "bug.zip"
    with OllamaServer(planted.oracle) as server:
        planted.configure(server.base_url)
        code, out, err = planted.run_here("bug-report", "@", "-o", str(place))
        assert server.requests == []
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == str(place)
    files = read_archive(place)
    for name in files:
        assert name == "README.txt" or any(line.startswith(f"  {name} (") for line in lines), name
    assert "Nothing was sent. Read it before you give it to anyone:" in lines
    assert max(len(line) for line in lines[1:]) <= 60
    assert "\n".join(lines[2 : 2 * len(files)]) in files["README.txt"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_no_file_is_written_over(planted: Project, tmp_path: Path) -> None:
    place = tmp_path / "bug.zip"
    place.write_text("mine")
    code, _, err = planted.run_here("bug-report", "-o", str(place))
    assert code == 2
    assert "already exists" in err
    assert place.read_text() == "mine"


def test_a_run_that_there_is_not_is_an_error(planted: Project) -> None:
    code, _, err = planted.run_here("bug-report", "zzzz")
    assert code == 2
    assert "no task begins with 'zzzz'" in err


def test_the_tree_is_as_before(planted: Project) -> None:
    assert planted.cra("bug-report").traces == {}


def test_without_a_run_and_without_settings_the_rest_is_told(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    told, files = make(till)
    assert told["task_id"] is None
    assert "run.json" not in files
    Workspace(repo=till.top).config.write_text("[models\n")
    _, files = make(till)
    assert "is not valid TOML" in json.loads(files["configuration.json"])["error"]
    Workspace(repo=till.top).config.write_text(
        f'[models]\nbase_url = 1\nnew_token = "{WEAK}"\n[odd]\na = 3\n'
    )
    _, files = make(till)
    told = json.loads(files["configuration.json"])
    assert "unknown table [odd]" in told["error"]
    assert told["repository"] == {
        "models": {"base_url": 1, "new_token": told["repository"]["models"]["new_token"]},
        "odd": {"a": 3},
    }
    assert WEAK not in files["configuration.json"]


def test_the_users_own_settings_are_told_as_such_and_their_key_is_kept(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MINE", SERVER_KEY)
    monkeypatch.setenv("CI", f"with {SERVER_KEY}")
    till.configure("http://127.0.0.1:9", models={"provider": "openai"})
    config = Workspace(repo=till.top).config
    kept = [line for line in config.read_text().splitlines() if "api_key_env" not in line]
    config.write_text("\n".join(kept))
    (tmp_path / "clean-room-agent").mkdir()
    (tmp_path / "clean-room-agent" / "config.toml").write_text('[models]\napi_key_env = "MINE"\n')
    _, files = make(till)
    assert values(files)["models.api_key_env"] == ("MINE", "user")
    assert json.loads(files["program.json"])["variables"]["CI"].startswith("with [secret:")
    assert SERVER_KEY not in "".join(files.values())


def test_a_record_that_cannot_be_read_is_said(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    Workspace(repo=till.top).raw.write_bytes(b"no database at all" * 100)
    _, files = make(till)
    assert "raw.sqlite" in files["record.txt"]


def test_outside_of_a_repository_and_in_somebody_elses_the_rest_is_told(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = till.top / ".clean_room"
    folder.mkdir()
    (folder / "config.toml").write_text(f'[models]\ncoding = "{WEAK}"\n')
    for repo in (tmp_path, till.top):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run(["bug-report", "--repo", str(repo), "--json"]) == 0
        place = Path(json.loads(out.getvalue())["path"])
        assert place == tmp_path / "cra-bug-report.zip"
        files = read_archive(place)
        assert files["repository.txt"]
        assert "configuration.json" not in files
        assert WEAK not in "".join(files.values())
        place.unlink()
    assert os.listdir(folder) == ["config.toml"]  # noqa: PTH208 - names alone
