"""The configured server, its key, and the model that it loads while a run does what needs none."""

import time
from pathlib import Path
from typing import Any

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import RELEVANT, SHOUT, Note, budget_config, model_client, models_config
from testing.patience import PATIENCE, wait_until
from testing.runs.solving import Project, make_project
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_server import (
    RECORDED_MODELS,
    connect,
    first_model,
    loading,
    open_server,
    require_all,
)
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.wiring import router_of
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import TimeSpanRow, find_task, list_time_spans
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.model_config import ModelsConfig, Provider
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.spending import TimeLog
from clean_room_agent.workspace import Workspace

MODELS: dict[str, Any] = {
    "base_url": "http://127.0.0.1:1",
    "coding": "a",
    "reasoning": "b",
    "provider": "openai",
}


def test_a_key_that_is_not_set_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        open_server(ModelsConfig(**MODELS, api_key_env="MY_KEY"))
    assert "MY_KEY" in caught.value.message + caught.value.hint


def test_the_demo_s_recording_is_no_server() -> None:
    with pytest.raises(ConfigError, match="recording"):
        open_server(ModelsConfig(**MODELS | RECORDED_MODELS))


@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_a_server_is_spoken_to_by_the_configured_protocol(provider: Provider) -> None:
    assert connect(models_config("http://127.0.0.1:1", provider=provider)).provider == provider


def test_a_run_is_not_refused_by_a_server_that_is_busy() -> None:
    with OpenAiServer([], failing=[503], adapters=("b.gguf",)) as server:
        config = models_config(server.base_url, provider="openai", coding="coder:3b+b")
        require_all(connect(config), ModelRouter(config, budget_config()))
        assert not server.failing


def test_each_model_is_asked_at_the_server_of_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODER_KEY", "sk-secret")
    sink = MemorySink()
    with (
        OllamaServer(["yes"], models=["thinker:4b"]) as thinker,
        OpenAiServer(["hi", "ho"], models=["coder:3b", "lora"], key="sk-secret", slots=3) as coder,
    ):
        own = {"base_url": coder.base_url, "provider": "openai", "api_key_env": "CODER_KEY"}
        config = models_config(
            thinker.base_url, servers={"coding": own}, overrides={"implement": "lora"}, logprobs=False
        )
        server = open_server(config)
        client = model_client(server, sink, config=config)
        assert client.ask(SHOUT, Note(text="a"), pass_id="t:p").value == "HI"
        verdict = client.ask(RELEVANT, Note(text="a"), pass_id="t:p").value
        assert isinstance(verdict, Choice)
        assert verdict.word == "yes"
        assert client.ask(SHOUT, Note(text="b"), pass_id="t:p", tag="lora").value == "HO"
        assert [model.tag for model in server.list_models()] == ["coder:3b", "lora", "thinker:4b"]
        assert (server.window("lora"), server.window("thinker:4b"), server.slots("lora")) == (4096, None, 3)
        assert server.version() == "llama-server b1-0, version 0.15.0"
    assert [(call.model.tag, call.model.provider) for call in sink.asked()] == [
        ("coder:3b", "openai"),
        ("thinker:4b", "ollama"),
        ("lora", "openai"),
    ]
    assert "sk-secret" not in str(sink.calls)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def settings_of(project: Project, server: OllamaServer, **models: str) -> Settings:
    project.configure(server.base_url, models=models)
    return load_settings(Workspace(repo=project.top).config, Overrides())


def spans(project: Project) -> tuple[TimeSpanRow, ...]:
    with read_record(project.top) as conn:
        return list_time_spans(conn, find_task(conn, "@"))


def test_a_run_has_its_first_model_loaded_once_before_the_first_question(project: Project) -> None:
    loaded: list[list[str]] = []

    def answer(call: ChatCall) -> object:
        loaded.append(sorted(server.state.loaded))
        return project.oracle(call)

    with OllamaServer(answer) as server:  # type: ignore[arg-type]
        assert project.solve(server).code == 0
    assert [body["model"] for body in server.loads] == ["thinker:4b"]
    assert server.reloads == 0
    assert loaded[0] == ["thinker:4b"]
    (row,) = [row for row in spans(project) if row.kind is TimeKind.MODEL_LOAD]
    assert row.detail == "thinker:4b"


def test_a_load_that_fails_is_noted_and_ends_nothing(project: Project) -> None:
    rows: list[TimeSpanRow] = []
    with OllamaServer([]) as server:
        settings = settings_of(project, server, reasoning="gone:1b")
        times = TimeLog("task", utc_now)
        first = first_model(router_of(settings), planned=False)
        with times.connected(rows.append), loading(settings.models, first, times):
            wait_until(lambda: bool(rows), "the end of the load")
    assert rows[0].detail.startswith("gone:1b: ")


def test_a_load_is_given_up_when_the_run_is_over(project: Project) -> None:
    with OllamaServer([], load_seconds=PATIENCE) as server:
        settings = settings_of(project, server)
        began = time.monotonic()
        first = first_model(router_of(settings), planned=False)
        with loading(settings.models, first, TimeLog("task", utc_now)):
            wait_until(lambda: bool(server.loads), "the request")
        assert time.monotonic() - began < PATIENCE / 2


def test_the_first_question_of_a_planned_run_is_what_it_needs_to_see(project: Project) -> None:
    with OllamaServer([]) as server:
        settings = settings_of(project, server, classifier="sorter:1b")
    router = router_of(settings)
    assert first_model(router, planned=True).tag == "sorter:1b"
    assert first_model(router, planned=False).tag == "thinker:4b"
