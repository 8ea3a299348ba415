"""PEFT adapters as GGUF: names, order of rows, quantisation, and what cannot be converted."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from clean_room_agent.errors import UsageError

if importlib.util.find_spec("gguf") is None or importlib.util.find_spec("safetensors") is None:
    pytest.skip("gguf and safetensors are not installed (extra train)", allow_module_level=True)

import gguf
import numpy as np
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file

from clean_room_agent.training import convert
from clean_room_agent.training.convert import interleaved

HEADS, KV_HEADS, SIZE, RANK, ALPHA = 4, 2, 64, 8, 16
KINDS = {
    "self_attn.q_proj": ("attn_q", SIZE),
    "self_attn.k_proj": ("attn_k", 32),
    "mlp.up_proj": ("ffn_up", 96),
}
Q8 = gguf.GGMLQuantizationType.Q8_0
F32 = gguf.GGMLQuantizationType.F32


def unproven(_base: Path, _folder: Path, _adapter: Path) -> None:
    """These bases have too few tensors to be computed; `test_logits_process` computes whole ones."""


def convert_adapter(adapter: Path, base: Path) -> None:
    convert.convert_adapter(adapter, base, unproven)


def drawn(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def weights(high: int) -> Any:
    """As transformers orders the rows."""
    return drawn(high, SIZE, seed=high)


def base_at(path: Path, architecture: str, kind: Any = F32) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "ü"])
    for name, high in KINDS.values():
        rows = weights(high)
        if architecture == "llama" and name != "ffn_up":
            rows = interleaved(rows, HEADS if name == "attn_q" else KV_HEADS)
        writer.add_tensor(f"blk.0.{name}.weight", quantize(rows, kind), raw_dtype=kind)
    writer.add_tensor("output.weight", quantize(drawn(8, SIZE), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def adapter_at(folder: Path, **settings: Any) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"r": RANK, "lora_alpha": ALPHA, **settings}))
    tensors = {}
    for part, (_, high) in KINDS.items():
        head = f"base_model.model.model.layers.0.{part}"
        tensors[f"{head}.lora_A.weight"] = drawn(RANK, SIZE, seed=2)
        tensors[f"{head}.lora_B.weight"] = drawn(high, RANK, seed=3)
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder / "scope_judgment-v1.gguf"


def read(path: Path) -> dict[str, Any]:
    return {each.name: dequantize(each.data, each.tensor_type) for each in gguf.GGUFReader(path).tensors}


def changed(high: int) -> Any:
    """The weights with the adapter, as transformers orders the rows."""
    return weights(high) + ALPHA / RANK * (drawn(high, RANK, seed=3) @ drawn(RANK, SIZE, seed=2))


def test_an_interleaved_head_has_its_halves_in_turns() -> None:
    rows = np.arange(8).reshape(8, 1)
    assert interleaved(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_merged_model_is_the_base_with_the_adapter_in_its_own_order(
    tmp_path: Path, architecture: str
) -> None:
    base = base_at(tmp_path / "base.gguf", architecture)
    convert_adapter(adapter_at(tmp_path / "a"), base)
    merged = read(tmp_path / "a/merged.gguf")
    for name, high in KINDS.values():
        wanted = changed(high)
        if architecture == "llama" and name != "ffn_up":
            wanted = interleaved(wanted, HEADS if name == "attn_q" else KV_HEADS)
        assert np.abs(merged[f"blk.0.{name}.weight"] - wanted).max() < 1e-4
    assert (merged["output.weight"] == read(base)["output.weight"]).all()
    assert (
        read(tmp_path / "a/control.gguf")["blk.0.attn_q.weight"] == read(base)["blk.0.attn_q.weight"]
    ).all()
    fields = gguf.GGUFReader(tmp_path / "a/merged.gguf").fields
    assert fields["tokenizer.ggml.tokens"].contents() == ["a", "b", "ü"]


def test_a_quantised_base_gives_quantised_models_and_the_control_has_lost_as_much(tmp_path: Path) -> None:
    base = base_at(tmp_path / "base.gguf", "qwen2", Q8)
    convert_adapter(adapter_at(tmp_path / "a"), base)
    for name in ("merged.gguf", "control.gguf"):
        assert {each.tensor_type for each in gguf.GGUFReader(tmp_path / "a" / name).tensors} == {Q8}
    control, before = read(tmp_path / "a/control.gguf"), read(base)
    for name, _ in KINDS.values():
        again = dequantize(quantize(before[f"blk.0.{name}.weight"], Q8), Q8)
        assert (control[f"blk.0.{name}.weight"] == again).all()
    merged = read(tmp_path / "a/merged.gguf")["blk.0.ffn_up.weight"]
    assert np.abs(merged - changed(96)).max() < 0.2


def test_what_cannot_be_converted_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    path = adapter_at(tmp_path / "a")
    with pytest.raises(UsageError, match="adapters for gemma cannot be converted"):
        convert_adapter(path, base_at(tmp_path / "g.gguf", "gemma"))
    (tmp_path / "no.gguf").write_text("no")
    with pytest.raises(UsageError, match="is not a GGUF model"):
        convert_adapter(path, tmp_path / "no.gguf")
    base = base_at(tmp_path / "b.gguf", "qwen2")
    with pytest.raises(UsageError, match="only plain LoRA"):
        convert_adapter(adapter_at(tmp_path / "d", use_dora=True), base)
    save_file(
        {f"base_model.model.model.layers.9.mlp.up_proj.lora_{half}.weight": drawn(8, 8) for half in "AB"},
        tmp_path / "a/adapter_model.safetensors",
    )
    with pytest.raises(UsageError, match=r"the base has no blk\.9\.ffn_up\.weight"):
        convert_adapter(path, base)
    assert sorted(each.name for each in (tmp_path / "a").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
