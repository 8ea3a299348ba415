"""`cra init`: what it writes, what it asks for, and what it refuses to make up."""

import contextlib
import os
import pty
import time

import pytest
from testing.forked import Forked
from testing.patience import PATIENCE
from testing.runs.solving import Project
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.workspace import Workspace

NOWHERE = "http://127.0.0.1:1"
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
            said += _rest(main)
            out, _ = process.communicate()
    os.close(main)
    assert process.returncode == 0, said
    assert out.startswith("wrote ")
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


def _rest(terminal: int) -> str:
    """What is said until nobody has the other end open."""
    said = b""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            said += piece
    return said.decode()


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
