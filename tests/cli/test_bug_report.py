"""A bug report: what is in it, what is not, and that nothing leaves the machine."""

import contextlib
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testing.runs.recorded import read_newest
from testing.runs.solving import MENDED_MONEY, MONEY, TILL, Project, make_project
from testing.servers.ollama_server import OllamaServer
from tests.db.raw.samples import SAMPLES

from clean_room_agent.app.tracebacks import log_text
from clean_room_agent.cli.bug_report import HIDDEN, SHOWN_TEXTS, cleaner, without_named, without_texts
from clean_room_agent.cli.main import run
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw.runs import EventRow, append_event
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.redaction import Redactor
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
PARTS = {"program", "check", "configuration", "tracebacks", "run"}


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


def make(project: Project, *flags: str) -> tuple[dict[str, Any], str]:
    """What `--json` answers, and the report's text."""
    code, out, err = project.run_here("bug-report", *flags, "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    text = Path(told["path"]).read_text(encoding="utf-8")
    Path(told["path"]).unlink()
    assert set(json.loads(text)) == set(told["parts"])
    return told, text


def test_no_secret_and_no_home_is_in_it(planted: Project) -> None:
    told, text = make(planted)
    report = json.loads(text)
    assert "error" in report["configuration"], "a password in an address is refused, and is in the file"
    assert [secret for secret in SECRETS if secret in text] == []
    assert str(planted.home) not in text
    assert str(planted.top) not in text
    assert told["secrets_replaced"] > 0
    assert "cra-bug-2.log" not in report["tracebacks"], "a link leads anywhere"


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
    told, text = make(planted)
    report = json.loads(text)
    assert WEAK not in text
    assert set(report) == PARTS
    assert report["tracebacks"] == {
        "cra-bug-1.log": "Where it happened:\n\nbuiltins.OSError\n",
        "cra-bug-3.log": "",
    }
    program, known, run_told = report["program"], report["configuration"], report["run"]
    assert program["cra"] == VERSION
    assert {"click", "httpx", "pydantic"} <= set(program["packages"])
    assert program["sandbox"]
    assert program["variables"]["PYTEST_ADDOPTS"].startswith("--token=[secret:")
    assert "DEPLOY_KEY" not in program["variables"]
    assert {"git", "platform", "configuration"} <= {line["name"] for line in report["check"]}
    assert known["budget.context_window"] == {"value": 16384, "source": "repository"}
    assert known["models.api_key_env"]["value"] == "MY_SERVER"
    assert known["models.extra_body.user_token"]["value"].startswith("[hidden")
    assert (run_told["id"], run_told["run"]["status"]) == (told["task_id"], "complete")
    assert run_told["tests"][0]["kind"] == "baseline"
    assert any(entry["attempts"] for entry in run_told["passes"])
    made = [call["site"]["call_type"] for entry in run_told["passes"] for call in entry["calls"]]
    asked = [call.site.call_type for call in planted.recorded().calls]
    assert [name for name in made if name != PROBE_NAME] == asked


def test_the_users_code_and_words_are_not_in_it(planted: Project) -> None:
    planted.configure("http://127.0.0.1:9/v1")
    _, text = make(planted)
    words = (*CODE_LINES, planted.task, "round half up", "must add up", f"{planted.top.name}-")
    assert [each for each in words if each in text] == []
    assert "removed below <worktrees>" in text


def test_it_says_what_is_in_it_and_sends_nothing(planted: Project, tmp_path: Path) -> None:
    place = tmp_path / "bug.json"
    with OllamaServer(planted.oracle) as server:
        planted.configure(server.base_url)
        code, out, err = planted.run_here("bug-report", "@", "-o", str(place))
        assert server.requests == []
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == str(place)
    for name in json.loads(place.read_text()):
        assert any(line.startswith(f"  {name} (") for line in lines), name
    assert "Nothing was sent. Read it before you give it to anyone." in lines
    assert max(len(line) for line in lines[1:]) <= 80
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert planted.run_here("bug-report", "-o", str(place))[0] == 2, "no file is written over"


def test_a_run_that_there_is_not_is_an_error(planted: Project) -> None:
    code, _, err = planted.run_here("bug-report", "zzzz")
    assert code == 2
    assert "no task begins with 'zzzz'" in err


def test_the_tree_is_as_before(planted: Project) -> None:
    assert planted.cra("bug-report").traces == {}


def test_without_a_run_settings_or_a_readable_record_the_rest_is_told(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    told, text = make(till)
    assert told["task_id"] is None
    assert "run" not in json.loads(text)
    workspace = Workspace(repo=till.top)
    workspace.config.write_text("[models\n")
    assert "is not valid TOML" in json.loads(make(till)[1])["configuration"]["error"]
    workspace.raw.write_bytes(b"no database at all" * 100)
    assert "raw.sqlite" in json.loads(make(till)[1])["record"]


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
        assert place == tmp_path / "cra-bug-report.json"
        text = place.read_text()
        assert json.loads(text)["repository"]
        assert "configuration" not in json.loads(text)
        assert WEAK not in text
        place.unlink()
    assert os.listdir(folder) == ["config.toml"]  # noqa: PTH208 - names alone


def test_places_of_the_user_are_taken_out(tmp_path: Path) -> None:
    clean = cleaner(Redactor(lambda: b"k" * 32, ("hunter2-hunter2",)), Workspace(repo=tmp_path))
    text = clean(f"{tmp_path}/a.py {Path.home()}/b.py {tmp_path}-other hunter2-hunter2")
    assert "<repository>/a.py" in text
    assert "~/b.py" in text
    assert "hunter2" not in text


def test_what_has_a_secret_s_name_is_hidden_at_any_depth() -> None:
    value = {
        "api_key": "abc",
        "api_key_env": "KEY",
        "extra_body": [{"password": "x", "top_k": 3}],
        "token": "",
    }
    assert without_named("", value) == {
        "api_key": HIDDEN,
        "api_key_env": "KEY",
        "extra_body": [{"password": HIDDEN, "top_k": 3}],
        "token": "",
    }


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of each text in a value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def test_of_the_record_only_listed_texts_are_told() -> None:
    rows = [to_shown(row) for _, row in SAMPLES]
    told = without_texts("", rows)
    hidden = [(key, text) for key, text in texts(rows) if key not in SHOWN_TEXTS and len(text) > 20]
    assert hidden
    said = json.dumps(told)
    assert [pair for pair in hidden if pair[1] in said] == []
    assert "(20 characters)" not in json.dumps([key for key, _ in texts(told)])
