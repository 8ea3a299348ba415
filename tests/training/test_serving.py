"""Tags of adapters, and the preset that llama-server is restarted with."""

from pathlib import Path

import pytest

from clean_room_agent.db.raw.training import AdapterRow
from clean_room_agent.training.serving import name_of, preset_text, tag_for


def adapter(tag: str, path: str) -> AdapterRow:
    return AdapterRow(
        dataset_id=1,
        stage_name="scope_batch",
        base_model="base",
        model_tag=tag,
        training_loss=None,
        trained_at="2026-01-02T03:04:05Z",
        adapter_path=path,
        base_digest="",
    )


@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_each_version_has_a_tag_of_its_own(provider: str) -> None:
    tags = {
        tag_for(provider, "qwen3:4b", prompt, version)
        for prompt in ("scope", "implement")
        for version in (1, 2)
    }
    assert len(tags) == 4


def test_an_adapter_s_name_is_in_its_tag() -> None:
    tag = tag_for("openai", "base", "scope_batch", 3)
    assert name_of(adapter(tag, "/adapters/scope_batch-v3")) == "scope_batch-v3"


def test_a_preset_names_the_base_and_every_adapter() -> None:
    text = preset_text("base", "/models/base.gguf", {"scope-v1": Path("/a/scope-v1.gguf")})
    assert "/models/base.gguf" in text
    assert "/a/scope-v1.gguf" in text
