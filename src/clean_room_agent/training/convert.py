"""Converts a PEFT adapter to the GGUF files of llama.cpp: the adapter itself, and merged models.

A LoRA of rank r adds `scale * B @ A` to a weight, A being r x in and B out x r, scale = alpha / r. llama.cpp keeps the
query and key weights of llama models with the two halves of each head's rows interleaved (its rotary embedding turns
neighbouring rows, transformers' turns halves), so that the rows of B are interleaved too. For a head of 4 rows 0 1 2 3 the
order becomes 0 2 1 3. qwen2 and qwen3 keep the rows as they are.

A merged model is quantised as the base was, tensor by tensor. So that a quantiser's luck does not count as the adapter's,
a control is made in the same way with B = 0: of the tensors that the adapter changes, both have been read and written once.

An adapter's file is kept only if its logits were compared with PEFT's (`logits_process`).
"""

import importlib.util
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.errors import ArtifactError, CommandError, UsageError
from clean_room_agent.file_contents import atomic_write, sync_file, sync_folder
from clean_room_agent.proc import inherited_environment

EXTRA_HINT = "install the extra: pip install 'clean-room-agent[train]'"
PERMUTED = {"llama": True, "qwen2": False, "qwen3": False}
"""Whether an architecture's query and key rows are interleaved; others are refused."""
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""PEFT's names of the parts of a layer, and GGUF's."""
MAX_DIFFERENCE = 0.1
"""Largest difference allowed for any logit: rows in a wrong order gave 1 and more, the same weights .001 and less."""
PROOF = "conversion.json"
"""The result of the comparison with PEFT, next to the adapter."""
EXTRA = ("gguf", "safetensors", "torch", "transformers", "peft")
Proof = Callable[[Path, Path, Path], None]
"""Compares logits, given the base's GGUF, PEFT's folder and the adapter's GGUF, and raises if they differ."""
KEY = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.([a-z_.]+)\.lora_([AB])\.weight")
PROOF_SECONDS = 3600.0
"""A large base is read twice."""
Floats = Any
"""A numpy array of float32; numpy is only there if the extra is installed."""


class Delta(Struct, frozen=True, kw_only=True):
    """What the adapter adds to one tensor: `scale * b @ a`, rows in the base's order."""

    a: Floats
    b: Floats


class Base(Struct, frozen=True, kw_only=True):
    """The GGUF file of a base."""

    reader: Any
    architecture: str
    heads: int
    kv_heads: int


def require_extra() -> None:
    """Check that the packages for converting are installed.

    Raises:
        UsageError: one is missing.
    """
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"adapters cannot be converted without {', '.join(missing)}", hint=EXTRA_HINT)


def prove_conversion(base_gguf: Path, folder: Path, adapter_gguf: Path) -> None:
    """Check that the adapter's GGUF computes what PEFT's files do; the figures go to `conversion.json` in the folder.

    Raises:
        ArtifactError: a logit differs by more than `MAX_DIFFERENCE`.
        CommandError: it cannot be computed.
    """
    base = _read_base(base_gguf)
    apart = adapter_gguf.with_name(f".{secrets.token_hex(4)}.proof")
    apart.mkdir()  # beside the model, transformers would take an `adapter_config.json` for the model's own
    merged = apart / "merged.gguf"
    try:
        scale, deltas = _read_adapter(adapter_gguf)
        _write_merged(merged, base=base, deltas=deltas, scale=scale, exact=True)
        script = "clean_room_agent.training.logits_process"
        files = (str(path.absolute()) for path in (base_gguf, folder, merged))
        done = proc.run(
            (sys.executable, "-P", "-m", script, *files),
            cwd=apart,
            env=inherited_environment(without="HF_") | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(apart)},
            timeout=PROOF_SECONDS,
        )
    except CommandError as exc:
        last = exc.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ArtifactError(f"the converted adapter cannot be compared with PEFT's: {last[:500]}") from exc
    finally:
        shutil.rmtree(apart, ignore_errors=True)
    found = json.loads(done.stdout.decode().rpartition("@")[2])
    atomic_write(folder / PROOF, json.dumps(found | {"most": MAX_DIFFERENCE}, sort_keys=True) + "\n")
    if not found["difference"] < MAX_DIFFERENCE:
        raise ArtifactError(
            f"{folder}: the converted adapter's logits differ from PEFT's by up to {found['difference']:.2f}, "
            f"where {MAX_DIFFERENCE} is allowed",
            hint=f"is {base_gguf} the model that it was trained on?",
        )


def convert_adapter(adapter_gguf: Path, base_gguf: Path, prove: Proof = prove_conversion) -> None:
    """Convert the PEFT adapter in a folder to a GGUF file of this name, with `merged.gguf` and `control.gguf`.

    The merged files are left out if the base's quantisation cannot be written; an error says so when they are needed.

    Raises:
        UsageError: the extra is missing, the architecture is unknown, or a tensor does not match the base.
        ArtifactError: the converted adapter computes something else than PEFT's.
    """
    require_extra()
    base, folder = _read_base(base_gguf), adapter_gguf.parent
    alpha, deltas = read_deltas(folder, base)

    def write(path: Path) -> None:
        _write_adapter(path, base=base, alpha=alpha, deltas=deltas)
        prove(base_gguf, folder, path)

    _write_whole(adapter_gguf, write)
    if _unwritable_kinds(base, deltas):
        return
    rank = next(iter(deltas.values())).a.shape[0]
    for name, scale in (("control.gguf", 0.0), ("merged.gguf", alpha / rank)):
        _write_whole(folder / name, partial(_write_merged, base=base, deltas=deltas, scale=scale))


def read_deltas(folder: Path, base: Base) -> tuple[float, Mapping[str, Delta]]:
    """Alpha, and what is added to each tensor, by its name in the base.

    Raises:
        UsageError: a tensor is not one of the base's, or has another shape.
    """
    from safetensors.numpy import load_file

    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    if settings.get("use_dora") or settings.get("rank_pattern") or settings.get("alpha_pattern"):
        raise UsageError(f"{folder}: only plain LoRA of one rank can be converted")
    alpha = float(settings["lora_alpha"]) * (settings["r"] ** 0.5 if settings.get("use_rslora") else 1)
    tensors = {each.name: each for each in base.reader.tensors}
    halves: dict[str, dict[str, Floats]] = {}
    for key, value in sorted(load_file(folder / "adapter_model.safetensors").items()):
        found = KEY.fullmatch(key)
        if found is None or found[2] not in NAMES:
            raise UsageError(f"{folder}: the adapter changes {key}, which cannot be converted")
        name = f"blk.{found[1]}.{NAMES[found[2]]}.weight"
        if name not in tensors:
            raise UsageError(f"{folder}: the base has no {name}: is it another model?")
        halves.setdefault(name, {})[found[3]] = value.astype("float32")
    deltas = {}
    for name, parts in halves.items():
        wide, high = (
            int(size) for size in tensors[name].shape[:2]
        )  # GGUF lists the innermost dimension first
        if parts["A"].shape[1] != wide or parts["B"].shape[0] != high:
            raise UsageError(f"{folder}: {name} has another shape in the base: is it another model?")
        deltas[name] = Delta(a=parts["A"], b=_in_base_order(parts["B"], name, base))
    if not deltas:
        raise UsageError(f"{folder}: the adapter changes nothing")
    return alpha, deltas


def interleaved(rows: Floats, heads: int) -> Floats:
    """Each head's rows with its two halves interleaved."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def _in_base_order(rows: Floats, name: str, base: Base) -> Floats:
    if not PERMUTED[base.architecture] or not name.endswith(("attn_q.weight", "attn_k.weight")):
        return rows
    return interleaved(rows, base.heads if "attn_q" in name else base.kv_heads)


def _read_base(path: Path) -> Base:
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        architecture = str(reader.fields["general.architecture"].contents())
        heads = int(reader.fields[f"{architecture}.attention.head_count"].contents())
        kv_heads = int(reader.fields[f"{architecture}.attention.head_count_kv"].contents())
    except (OSError, ValueError, KeyError) as exc:
        raise UsageError(f"{path} is not a GGUF model: {exc}") from exc
    if architecture not in PERMUTED:
        raise UsageError(
            f"{path}: adapters for {architecture} cannot be converted", hint=f"known: {', '.join(PERMUTED)}"
        )
    return Base(reader=reader, architecture=architecture, heads=heads, kv_heads=kv_heads)


def _write_adapter(path: Path, base: Base, alpha: float, deltas: Mapping[str, Delta]) -> None:
    from gguf import GGUFWriter

    writer = GGUFWriter(path, base.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, delta in sorted(deltas.items()):
        writer.add_tensor(f"{name}.lora_a", delta.a)
        writer.add_tensor(f"{name}.lora_b", delta.b)
    _write_file(writer)


def _read_adapter(path: Path) -> tuple[float, Mapping[str, Delta]]:
    """The scale, and what is added to each tensor, as stored in the file."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    halves = {each.name: each.data.copy() for each in reader.tensors}
    names = [name.removesuffix(".lora_a") for name in halves if name.endswith(".lora_a")]
    deltas = {name: Delta(a=halves[f"{name}.lora_a"], b=halves[f"{name}.lora_b"]) for name in names}
    rank = next(iter(deltas.values())).a.shape[0]
    return float(reader.fields["adapter.lora.alpha"].contents()) / rank, deltas


def _write_merged(
    path: Path, base: Base, deltas: Mapping[str, Delta], scale: float, *, exact: bool = False
) -> None:
    """Write the merged model. `exact` keeps changed tensors in float32 instead of the base's quantisation."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import dequantize, quantize

    writer = GGUFWriter(path, base.architecture)
    for field in base.reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            writer.add_key_value(field.name, field.contents(), *_field_types(field))
    for tensor in base.reader.tensors:
        data, delta, kind = tensor.data, deltas.get(tensor.name), tensor.tensor_type
        if delta is not None:
            weights = dequantize(data, kind) + scale * (delta.b @ delta.a)
            kind = GGMLQuantizationType.F32 if exact else kind
            data = quantize(weights.astype("float32"), kind)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    _write_file(writer)


def _field_types(field: Any) -> Iterator[Any]:
    yield field.types[0]
    if len(field.types) > 1:
        yield field.types[-1]


def _write_file(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _unwritable_kinds(base: Base, deltas: Mapping[str, Delta]) -> tuple[str, ...]:
    """The quantisations of changed tensors that cannot be written."""
    import numpy as np
    from gguf.quants import quantize

    kinds = {each.tensor_type for each in base.reader.tensors if each.name in deltas}
    found = []
    for kind in sorted(kinds):
        try:
            quantize(np.zeros((1, 256), dtype="float32"), kind)
        except NotImplementedError:
            found.append(kind.name)
    return tuple(found)


def _write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write the file atomically."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        write(temporary)
        sync_file(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise UsageError(
            f"cannot write {path}: {os.strerror(exc.errno or 0)}", hint="free some space"
        ) from exc
    finally:
        temporary.unlink(missing_ok=True)
