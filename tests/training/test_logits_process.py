"""A converted adapter against PEFT's, computed by transformers, where the extra train is installed."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from clean_room_agent.errors import ArtifactError
from clean_room_agent.training.convert import EXTRA, PROOF, convert_adapter, prove_conversion

if any(importlib.util.find_spec(name) is None for name in EXTRA):
    pytest.skip("torch, transformers, peft, gguf and safetensors are not installed", allow_module_level=True)

import gguf
import numpy as np
from safetensors.numpy import save_file

HEADS, KV_HEADS, SIZE, WIDE, VOCABULARY, RANK = 4, 2, 64, 96, 50, 8
HEAD = {"llama": SIZE // HEADS, "qwen2": SIZE // HEADS, "qwen3": 128}
"""Rows of a head; transformers takes 128 of every qwen3 that it reads from GGUF."""


def parts_of(architecture: str) -> dict[str, tuple[str, int, int]]:
    """PEFT's name: GGUF's, rows, columns."""
    queries, keys = HEADS * HEAD[architecture], KV_HEADS * HEAD[architecture]
    return {
        "self_attn.q_proj": ("attn_q", queries, SIZE),
        "self_attn.k_proj": ("attn_k", keys, SIZE),
        "self_attn.v_proj": ("attn_v", keys, SIZE),
        "self_attn.o_proj": ("attn_output", SIZE, queries),
        "mlp.gate_proj": ("ffn_gate", WIDE, SIZE),
        "mlp.up_proj": ("ffn_up", WIDE, SIZE),
        "mlp.down_proj": ("ffn_down", SIZE, WIDE),
    }


def drawn(*shape: int, seed: int) -> Any:
    return (np.random.default_rng(seed).normal(size=shape) / shape[-1] ** 0.5).astype("float32")


def base_at(path: Path, architecture: str) -> Path:
    """A model of one layer with random weights."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_embedding_length(SIZE)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD[architecture])
    writer.add_value_length(HEAD[architecture])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCABULARY)
    tensors = {f"blk.0.{name}.weight": (high, wide) for name, high, wide in parts_of(architecture).values()}
    tensors |= {"token_embd.weight": (VOCABULARY, SIZE), "output.weight": (VOCABULARY, SIZE)}
    for seed, (name, shape) in enumerate(tensors.items()):
        writer.add_tensor(name, drawn(*shape, seed=seed) * (5 if "attn" in name else 1))
    norms = {"output_norm": SIZE, "blk.0.attn_norm": SIZE, "blk.0.ffn_norm": SIZE}
    norms |= dict.fromkeys(["blk.0.attn_q_norm", "blk.0.attn_k_norm"] if architecture == "qwen3" else [], 128)
    for name, size in norms.items():
        writer.add_tensor(f"{name}.weight", np.ones(size, dtype="float32"))
    if architecture == "qwen2":
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(
                f"blk.0.{name}.bias", np.zeros(tensors[f"blk.0.{name}.weight"][0], dtype="float32")
            )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def adapter_at(folder: Path, architecture: str) -> Path:
    folder.mkdir()
    parts = parts_of(architecture)
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": [name.rpartition(".")[2] for name in parts],
    }
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    tensors = {}
    for seed, (name, (_, high, wide)) in enumerate(parts.items()):
        head = f"base_model.model.model.layers.0.{name}"
        tensors[f"{head}.lora_A.weight"] = drawn(RANK, wide, seed=100 + seed)
        tensors[f"{head}.lora_B.weight"] = drawn(high, RANK, seed=200 + seed)
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder / "scope_judgment-v1.gguf"


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_converted_adapter_computes_what_pefts_does(tmp_path: Path, architecture: str) -> None:
    adapter = adapter_at(tmp_path / "a", architecture)
    convert_adapter(adapter, base_at(tmp_path / "base.gguf", architecture))
    found = json.loads((tmp_path / "a" / PROOF).read_text())
    assert found["difference"] < 1e-3
    assert found["effect"] > 0.5
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "adapter_config.json", "adapter_model.safetensors", "control.gguf", PROOF, "merged.gguf", adapter.name,
    ]  # fmt: skip


def test_rows_in_another_architectures_order_are_found_out(tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "a", "llama")
    convert_adapter(adapter, base_at(tmp_path / "other.gguf", "qwen2"))
    with pytest.raises(ArtifactError, match="logits differ from PEFT's by up to"):
        prove_conversion(base_at(tmp_path / "base.gguf", "llama"), tmp_path / "a", adapter)


def test_an_adapter_that_cannot_be_computed_is_not_converted(tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "a", "llama")
    settings = json.loads((tmp_path / "a/adapter_config.json").read_text())
    (tmp_path / "a/adapter_config.json").write_text(json.dumps({**settings, "peft_type": "NO_SUCH_TYPE"}))
    with pytest.raises(ArtifactError, match="cannot be compared with PEFT's"):
        convert_adapter(adapter, base_at(tmp_path / "base.gguf", "llama"))
    assert not adapter.exists()
