"""Adapters on a real llama-server, where the environment names one with a llama model; see protocols/measuring.md."""

import importlib.util
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from testing.client.chat_request import MODEL as CONFIGURED
from testing.client.chat_request import chat_request
from testing.servers.llama_server import MODEL, PROGRAM, TAG, running

from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.transports.openai import OpenAiTransport, connect
from clean_room_agent.training.convert import EXTRA, convert_adapter

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        not (PROGRAM and MODEL and all(importlib.util.find_spec(name) for name in EXTRA)),
        reason="CRA_LLAMA_SERVER and CRA_LLAMA_MODEL name no server and model, or the extra train is missing",
    ),
]
RANK = 8


def adapter_at(folder: Path, *, zero: bool) -> Path:
    """A random adapter of the model, or one that adds nothing, as llama-server loads it."""
    import gguf  # noqa: PLC0415 - of the extra train
    import numpy as np  # noqa: PLC0415
    from safetensors.numpy import save_file  # noqa: PLC0415

    folder.mkdir()
    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "target_modules": ["q_proj", "k_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps({**settings, "r": RANK, "lora_alpha": 2 * RANK}))
    draw = np.random.default_rng(1)
    tensors = {}
    for each in gguf.GGUFReader(MODEL).tensors:
        parts = each.name.split(".")
        if len(parts) != 4 or parts[2] not in {"attn_q", "attn_k"}:
            continue
        head = f"base_model.model.model.layers.{parts[1]}.self_attn.{parts[2][-1]}_proj"
        wide, high = (int(size) for size in each.shape[:2])
        scale = 0.0 if zero else 0.5
        tensors[f"{head}.lora_A.weight"] = (draw.normal(size=(RANK, wide)) / wide**0.5).astype("float32")
        tensors[f"{head}.lora_B.weight"] = (scale * draw.normal(size=(high, RANK))).astype("float32")
    save_file(tensors, folder / "adapter_model.safetensors")
    path = folder / f"{folder.name}.gguf"
    convert_adapter(path, Path(MODEL))
    return path


def likely(transport: OpenAiTransport, tag: str) -> dict[str, float]:
    answer = transport.send(
        chat_request(
            model=replace(CONFIGURED, tag=tag),
            prompt="# Count\n\nOne, two,",
            wants_logprobs=True,
            max_tokens=1,
        )
    )
    assert answer.error is None, answer.error
    first: TokenChoice = answer.tokens[0]
    return dict(first.top)


def test_each_request_has_the_adapter_that_its_tag_names_and_no_other(tmp_path: Path) -> None:
    files = [adapter_at(tmp_path / name, zero=name == "zero-v2") for name in ("random-v1", "zero-v2")]
    more = ("--lora", ",".join(map(str, files)), "--lora-init-without-apply")
    with running(tmp_path / "log", *more, threads=1) as server:
        transport = connect(msgspec.convert({**server.models_table, "parallel": 1}, ModelsConfig))
        base, random, again = (likely(transport, tag) for tag in (TAG, f"{TAG}+random-v1", TAG))
        zero, cold = likely(transport, f"{TAG}+zero-v2"), likely(transport, f"{TAG}+random-v1")
    assert base == again == pytest.approx(zero, abs=1e-3)
    assert random == pytest.approx(cold, abs=1e-3)
    shared = base.keys() & random.keys()
    assert len(shared) < len(base) or max(abs(base[word] - random[word]) for word in shared) > 0.01
