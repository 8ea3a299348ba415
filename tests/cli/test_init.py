"""`cra init`: what it writes, what it asks for, and what it refuses to make up."""

import os
import pty
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from testing.forked import Forked
from testing.patience import PATIENCE
from testing.repositories import git, init_repository, make_repository, write
from testing.runs.solving import Project
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer
from testing.shells import read_terminal

from clean_room_agent.app.discovery import WHICH_MODEL
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.cli.init import Answers, Given, gather, given_values, offer_ignored
from clean_room_agent.cli.main import run
from clean_room_agent.errors import ModelNotFound, UsageError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import included_files
from clean_room_agent.workspace import Workspace

NOWHERE = "http://127.0.0.1:1"
GIVEN = {"coding": "coder:3b", "reasoning": "thinker:4b", "context_window": 16_384, "sandbox": "none"}

BELOW = {
    "models": {"coding": "mine", "base_url": "127.0.0.1:8080"},
    "budget": {"context_window": 4096, "reserved_tokens": 512},
    "testing": {"test_command": "pytest"},
    "sandbox": {"mode": "bwrap"},
}


def given(below: dict[str, Any], **flags: Any) -> Given:
    names = (
        "base_url", "provider", "api_key_env", "coding", "reasoning", "test_command", "context_window",
        "reserved_tokens", "sandbox",
    )  # fmt: skip
    return given_values(below, {**dict.fromkeys(names), **flags})


def test_a_flag_goes_before_the_user_s_file() -> None:
    found = given(BELOW, coding="flag", reserved_tokens=0)
    assert (found.coding, found.reserved_tokens, found.context_window) == ("flag", 0, 4096)
    assert (found.test_command, found.sandbox) == ("pytest", "bwrap")
    assert found.server.base_url == "http://127.0.0.1:8080"


def test_what_nobody_says_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box:1")
    found = given({})
    assert (found.coding, found.context_window, found.server.base_url) == (None, None, None)
    assert found.server.ollama_host == "box:1"


def test_there_must_be_a_folder_to_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    assert run(["init", str(top), "--trust"]) == 2
    assert f"there is no {top}/.clean_room" in capsys.readouterr().err


class Consent(Answers):
    """Whoever takes what was found."""

    def __init__(self, *, asks: bool = False) -> None:
        super().__init__(accept=True, ask=asks)

    def settle(self, flag: str, what: str, given: Any, found: Any, choices: Sequence[str] = ()) -> Any:
        self.asks, asks = False, self.asks
        value = super().settle(flag, what, given, found, choices)
        self.asks = asks
        return value


def command_of(top: Path, files: Mapping[str, str]) -> str:
    write(init_repository(top), files)
    found = gather(Workspace(repo=top), given({}, **GIVEN, base_url=NOWHERE), Consent())
    return str(found["testing"]["test_command"])


def test_each_way_to_run_tests_is_told_and_the_most_direct_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "tests/test_a.py": "def test_a(): pass\n",
        "package.json": '{"scripts": {"test": "node --test"}}',
    }
    assert command_of(tmp_path, files) == "python3 -m pytest -q"
    assert "also found: npm test" in capsys.readouterr().err


def test_where_there_are_no_tests_it_is_told_what_can_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="--test-command"):
        command_of(tmp_path, {"a.py": "x = 1\n"})
    told = capsys.readouterr().err
    assert "no tests were found here" in told
    assert 'accept = "untested"' in told


GENERATED = {
    ".gitignore": "_v.py\nmade*\n",
    "p/__init__.py": "from ._v import v\n",
    "p/_v.py": "v = 1\n",
    "a.js": "require('./made [1].js')\n",
    "made [1].js": "",
}


def test_ignored_files_that_code_imports_are_offered_to_a_person_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(init_repository(tmp_path), GENERATED)
    workspace, include = Workspace(repo=tmp_path), tmp_path / ".worktreeinclude"
    offer_ignored(workspace, Consent())
    assert not include.exists()
    assert "put into .worktreeinclude, a line each: made [1].js, p/_v.py" in capsys.readouterr().err
    include.write_text("mine")
    offer_ignored(workspace, Consent(asks=True))
    offer_ignored(workspace, Consent(asks=True))
    assert include.read_text() == "mine\n/made \\[1\\].js\n/p/_v.py\n"
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Begin")
    assert included_files(open_repository(tmp_path)) == ("made [1].js", "p/_v.py")


@pytest.mark.parametrize("kind", [OllamaServer, OpenAiServer])
@pytest.mark.parametrize("flag", ["coding", "reasoning"])
def test_a_given_model_that_the_server_lacks_is_the_fault_that_is_told(
    kind: type[OllamaServer | OpenAiServer], flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init_repository(tmp_path)
    flags = {**GIVEN, "context_window": None, "test_command": "pytest", flag: "nosuch:7b"}
    with kind([]) as server, pytest.raises(ModelNotFound, match="does not have the model 'nosuch:7b'"):
        gather(Workspace(repo=tmp_path), given({}, base_url=server.base_url, **flags), Consent())
    assert "coder:3b, thinker:4b" in capsys.readouterr().err.splitlines()[0]


def test_a_given_value_needs_no_consent() -> None:
    answers = Answers(accept=False, ask=False)
    assert answers.settle("--coding", "coding model", "given", "found") == "given"
    assert answers.missing == []


def test_a_found_value_is_taken_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert Answers(accept=True, ask=False).settle("--coding", "coding model", None, "found") == "found"
    assert "coding model: found" in capsys.readouterr().err


def test_what_nobody_gives_is_named_with_its_flag() -> None:
    answers = Answers(accept=False, ask=False)
    assert answers.settle("--coding", "coding model", None, "found") is None
    assert answers.settle("--context-window", "window", None, None) is None
    assert answers.missing == ["--coding (coding model; found: found)", "--context-window (window)"]
    assert answers.found_more
    assert not answers.agrees("run them with your privileges")


FLAGS = (
    *("--coding", "coder:3b", "--reasoning", "thinker:4b", "--context-window", "16384"),
    *("--test-command", "python3 -m unittest -v", "--base-url", NOWHERE),
)


def test_flags_alone_are_enough_and_need_no_server(till: Project) -> None:
    told = till.cra("init", *FLAGS)
    config = Workspace(repo=till.top).config
    assert told.code == 0
    assert told.out.splitlines()[0] == f"wrote {config}"
    assert told.traces == {}
    settings = load_settings(config, Overrides())
    settings.require("models", "budget", "stages", "solve", "testing")
    assert (settings.budget.context_window, settings.budget.reserved_tokens) == (16_384, 4_096)


def test_without_server_and_terminal_all_that_is_missing_is_named_at_once(till: Project) -> None:
    told = till.cra("init", "--base-url", NOWHERE)
    assert (told.code, told.out) == (2, "")
    for flag in ("--coding", "--reasoning", "--context-window", "--test-command"):
        assert flag in told.err
    assert "found: python3 -m unittest -v" in told.err
    assert "start the model server" in told.err
    assert not Workspace(repo=till.top).config.exists()


def test_what_was_found_is_not_taken_without_consent(till: Project) -> None:
    with OllamaServer([]) as server:
        told = till.cra("init", "--base-url", server.base_url)
    assert told.code == 2
    assert "--coding (coding model; found: coder:3b)" in told.err
    assert "accept what was found with --yes" in told.err


def test_yes_takes_what_was_found(till: Project) -> None:
    with OllamaServer([]) as server:
        told = till.cra("init", "--base-url", server.base_url, "--yes")
        assert told.code == 0
        settings = load_settings(Workspace(repo=till.top).config, Overrides())
        assert settings.models.base_url == server.base_url
    assert (settings.models.coding, settings.models.reasoning) == ("coder:3b", "thinker:4b")
    assert settings.testing.test_command == "python3 -m unittest -v"
    assert settings.budget.context_window == 32_768


def test_yes_takes_what_a_server_of_openais_api_needs_and_its_window(till: Project) -> None:
    with OpenAiServer([], kind="vllm", window=8_192) as server:
        assert till.cra("init", "--base-url", f"{server.base_url}/v1", "--yes").code == 0
        settings = load_settings(Workspace(repo=till.top).config, Overrides())
    assert (settings.models.provider, settings.models.base_url) == ("openai", f"{server.base_url}/v1")
    assert settings.budget.context_window == 8_192


def test_as_many_requests_are_sent_at_a_time_as_the_server_says_that_it_answers(till: Project) -> None:
    with OpenAiServer([], slots=4) as server:
        assert till.cra("init", "--base-url", server.base_url, "--yes").code == 0
    assert load_settings(Workspace(repo=till.top).config, Overrides()).models.parallel == 4


def test_a_server_that_routes_tells_window_and_slots_of_the_model_that_is_chosen(till: Project) -> None:
    with OpenAiServer([], routes=True, slots=4) as server:
        assert till.cra("init", "--base-url", server.base_url, "--yes").code == 0
    settings = load_settings(Workspace(repo=till.top).config, Overrides())
    assert (settings.models.parallel, settings.budget.context_window) == (4, 4096)


def test_a_server_that_does_not_tell_its_window_leaves_that_to_the_user(till: Project) -> None:
    with OpenAiServer([], kind="llama-cpp-python") as server:
        told = till.cra("init", "--base-url", server.base_url, "--yes")
        assert told.code == 2
        assert "not given: --context-window (window in tokens)\n" in told.err
        assert till.cra("init", "--base-url", server.base_url, "--yes", "--context-window", "4096").code == 0
    settings = load_settings(Workspace(repo=till.top).config, Overrides())
    assert (settings.models.schema_dialect, settings.models.streaming) == ("json_object", False)


def test_a_server_that_wants_a_key_is_found_with_it(till: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRA_TEST_KEY", "s3cret")
    with OpenAiServer([], key="s3cret") as server:
        flags = ("init", "--base-url", server.base_url, "--provider", "openai", "--yes")
        refused = till.cra(*flags)
        assert (refused.code, "status 401" in refused.err) == (2, True)
        assert till.cra(*flags, "--api-key-env", "CRA_TEST_KEY").code == 0
    text = Workspace(repo=till.top).config.read_text()
    assert 'api_key_env = "CRA_TEST_KEY"' in text
    assert "s3cret" not in text


def test_where_no_model_is_found_it_is_said_which_one_to_take(till: Project) -> None:
    nowhere = till.cra("init", "--base-url", NOWHERE)
    with OllamaServer([], models=()) as server:
        empty = till.cra("init", "--base-url", server.base_url)
        given = till.cra("init", *FLAGS, "--base-url", server.base_url)
    for told in (nowhere, empty):
        assert WHICH_MODEL in told.err
    assert "-> `ollama pull qwen2.5-coder:7b`, for example, and again `cra init" in empty.err
    assert WHICH_MODEL not in given.err


def test_the_readme_has_the_figures_that_are_told() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    told = readme.partition("### Which model\n")[2].partition("###")[0]
    sizes = re.findall(r"(\d[\d.]*B) in (\d+ GB)", told)
    assert len(sizes) == 4
    assert all(f"{size}: {memory}" in WHICH_MODEL for size, memory in sizes)
    windows = re.findall(r"\d+,\d{3}", told)
    assert len(windows) == 2
    assert all(window in WHICH_MODEL for window in windows)


def test_yes_does_not_make_up_what_was_not_found(till: Project) -> None:
    told = till.cra("init", "--base-url", NOWHERE, "--yes")
    assert told.code == 2
    assert "--coding (coding model)" in told.err


def test_a_configuration_is_replaced_only_by_force(till: Project) -> None:
    till.cra("init", *FLAGS)
    config = Workspace(repo=till.top).config
    config.write_text(config.read_text() + "# mine\n")
    refused = till.cra("init", *FLAGS)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert config.read_text().endswith("# mine\n")
    assert till.cra("init", *FLAGS, "--force").code == 0
    assert "# mine" not in config.read_text()


def test_print_writes_nothing(till: Project) -> None:
    told = till.cra("init", "--print")
    assert told.code == 0
    assert "[models]" in told.out
    assert "# coding =" in told.out
    assert not Workspace(repo=till.top).folder.exists()


def test_a_flag_out_of_range_is_named(till: Project) -> None:
    told = till.cra("init", "--context-window", "0")
    assert told.code == 2
    assert "--context-window" in told.err


def test_at_a_terminal_each_value_is_asked_for_with_what_was_found(till: Project) -> None:
    main, side = pty.openpty()
    with OllamaServer([]) as server:
        flags = ("--sandbox", "none", "--base-url", server.base_url)
        with Forked(till, "init", *flags, terminal={0: side, 2: side}) as process:
            os.close(side)
            said = _converse(
                main,
                ("  2  thinker:4b", "mine:1b\n"),
                ("reasoning", "2\n"),
                ("window", "\n"),
                ("test", "\n"),
                ("run the tests once", "y\n"),
            )
            said += read_terminal(main)
            out, _ = process.communicate()
    os.close(main)
    assert process.returncode == 0, said
    assert out.startswith("wrote ")
    assert "next: cra check, then cra solve" in out
    assert "the server does not list mine:1b" in said
    assert "test_command: 3 passed, 1 failed" in said, said
    settings = load_settings(Workspace(repo=till.top).config, Overrides())
    assert (settings.models.coding, settings.models.reasoning) == ("mine:1b", "thinker:4b")


def _converse(terminal: int, *turns: tuple[str, str]) -> str:
    said = ""
    until = time.monotonic() + PATIENCE
    for question, answer in turns:
        heard = ""
        while f"{question}" not in heard or not heard.rstrip(" ").endswith(":"):
            assert time.monotonic() < until, said + heard
            heard += os.read(terminal, 4096).decode()
        said += heard
        os.write(terminal, answer.encode())
    return said


def test_the_sandbox_is_written_as_it_was_found_or_given(till: Project) -> None:
    told = till.cra("init", *FLAGS)
    settings = load_settings(Workspace(repo=till.top).config, Overrides())
    if "sandbox: bubblewrap" in told.err:
        assert settings.sandbox.mode == "bwrap"
    else:
        assert "no sandbox for the tests: " in told.err
        assert settings.sandbox.mode == "auto", "nobody has agreed to none"
    till.cra("init", *FLAGS, "--force", "--sandbox", "none")
    assert load_settings(Workspace(repo=till.top).config, Overrides()).sandbox.mode == "none"


def test_init_never_chooses_a_model_that_is_sent_on(till: Project) -> None:
    models = ("big-coder:480b-cloud", "coder:3b", "forwarded-coder:1b", "thinker:4b")
    with OllamaServer([], models=models, forwards={"forwarded-coder:1b": "https://cloud.example"}) as server:
        assert till.cra("init", "--base-url", server.base_url, "--yes").code == 0
        settings = load_settings(Workspace(repo=till.top).config, Overrides())
        assert (settings.models.coding, settings.models.reasoning) == ("coder:3b", "thinker:4b")
        for tag in ("big-coder:480b-cloud", "forwarded-coder:1b"):
            told = till.cra("init", "--base-url", server.base_url, "--yes", "--force", "--coding", tag)
            assert told.code == 2
            assert f"{tag}: prompts for this model are forwarded to" in told.err
    assert load_settings(Workspace(repo=till.top).config, Overrides()).models.coding == "coder:3b"
