from typing import Any

import pytest
from testing.client.model_client import models_config

from clean_room_agent.config import keys_of, load_slice
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig

MODELS = {"base_url": "http://127.0.0.1:11434", "coding": "c:3b", "reasoning": "r:4b"}
BUDGET = {"context_window": 8192, "reserved_tokens": 2048}


def load_models(**fields: Any) -> ModelsConfig:
    return load_slice({"models": MODELS | fields}, "models", ModelsConfig, source="config.toml")


def load_budget(**fields: Any) -> BudgetConfig:
    return load_slice({"budget": BUDGET | fields}, "budget", BudgetConfig, source="config.toml")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434",
        "http://localhost:1/",
        "http://[::1]:8080",
        "http://127.8.9.1",
        "http://a.localhost",
        "http://LOCALHOST:1",
        "http://[::ffff:127.0.0.1]:1",
        "http://[::ffff:7f00:1]:1",
        "http://[0:0:0:0:0:0:0:1]",
    ],
)
def test_this_machine_needs_no_permission(url: str) -> None:
    assert load_models(base_url=url).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.5:11434",
        "https://example.org",
        "http://localhost.example.org",
        "http://0.0.0.0:11434",
        "http://[::2]",
        "http://localhost.evil.example",
        "http://127.0.0.1.nip.example",
        "http://localhost-evil.example",
        "http://notlocalhost",
        "http://localhost.:1",
        "http://[::]:1",
        "http://[::127.0.0.1]:1",
        "http://[64:ff9b::7f00:1]:1",
        "http://[::ffff:10.0.0.1]:1",
    ],
)
def test_another_machine_is_refused_unless_allowed(url: str) -> None:
    with pytest.raises(ConfigError, match="is not this machine") as caught:
        load_models(base_url=url)
    assert "allow_remote = true" in caught.value.hint
    assert caught.value.exit_code == 2
    assert load_models(base_url=url, allow_remote=True).allow_remote


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:11434",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1@example.org",
        "http://127.0.0.1\\@x",
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/?a",
        "http://2130706433",
        "http://0x7f000001",
        "http://0x7f.0.0.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.0.1.",
        "http://127.0.0.01",
        "http://%6c%6f%63alhost",
        "http://localhost%2eevil",
        "http://localhost;evil",
        "http://localhost,evil",
        "http://[v1.localhost]",
        "http://loc\u0430lhost",
        "http://\u24dbocalhost",
        "http://127\u30020.0.1",
        "http://localhost\t.evil",
        "http://127.0.0.1#@evil",
        "http://127.0.0.1:80:90",
        "unix:///run/model.sock",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not the address of a server"):
        load_models(base_url=url)


def test_a_reserve_as_large_as_the_window_is_refused() -> None:
    with pytest.raises(ConfigError, match="leaves nothing of context_window = 8192"):
        load_budget(reserved_tokens=8192)
    with pytest.raises(ConfigError, match="leaves nothing"):
        load_budget(coding={"context_window": 10, "reserved_tokens": 11})


def test_every_field_says_what_it_is_for() -> None:
    for kind in (ModelsConfig, BudgetConfig):
        assert all(key.description for key in keys_of(kind).values())


@pytest.mark.parametrize(
    "tag", ["big:cloud", "big:120b-cloud", "big-cloud", "big:120B-Cloud", "big-cloud:latest"]
)
@pytest.mark.parametrize("key", ["coding", "reasoning", "classifier", "overrides", "escalation"])
def test_a_model_that_runs_in_ollamas_cloud_is_refused_unless_allowed(key: str, tag: str) -> None:
    value: object = {"overrides": {"enrichment": tag}, "escalation": {"coding": [tag]}}.get(key, tag)
    with pytest.raises(ConfigError, match="to its cloud, and prompts hold your code") as caught:
        load_models(**{key: value})
    assert tag in caught.value.message
    assert "allow_remote = true" in caught.value.hint
    assert load_models(**{key: value}, allow_remote=True).allow_remote


TWO = {"coding": {"base_url": "http://127.0.0.1:2/", "provider": "openai", "api_key_env": "CODER_KEY"}}


def test_a_role_may_have_a_server_of_its_own() -> None:
    models = models_config(servers=TWO, api_key_env="KEY", grammar=True)
    coding, reasoning = models.each_server()
    assert (coding.base_url, coding.provider, coding.api_key_env) == (
        "http://127.0.0.1:2",
        "openai",
        "CODER_KEY",
    )
    assert (reasoning.base_url, reasoning.provider, reasoning.api_key_env) == (
        models.base_url,
        "ollama",
        "KEY",
    )
    assert (coding.grammar, models.for_role("classifier")) == (True, reasoning)
    assert models.at("thinker:4b", "coding") == reasoning
    assert models.at("another", "coding") == coding


def test_the_key_of_one_server_goes_to_no_other() -> None:
    models = models_config(servers={"coding": {"base_url": "http://127.0.0.1:2"}}, api_key_env="KEY")
    assert models.for_role("coding").api_key_env is None


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        (
            {"coding": {"base_url": "http://10.0.0.1:2"}},
            r"\[models.servers.coding\] base_url: .* is not this machine",
        ),
        (
            {"reasoning": {"base_url": "nowhere"}},
            r"\[models.servers.reasoning\] base_url: .* is not the address",
        ),
        (
            {"coding": {"base_url": "http://127.0.0.1:2", "api_key_env": "sk-1"}},
            r"\[models.servers.coding\] api_key_env is not the name",
        ),
    ],
)
def test_the_servers_of_roles_are_checked_as_the_first_one(servers: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        models_config(servers=servers)


def test_one_name_for_models_on_two_servers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the model m would be asked for at .*:2 and at "):
        models_config(coding="m", reasoning="m", servers=TWO)
