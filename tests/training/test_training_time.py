"""How long a training is said to take, and which rows fit into the hours that there are."""

import json
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.training.test_dataset import ORIGIN, answer

from clean_room_agent.errors import UsageError
from clean_room_agent.training.dataset import DatasetEntry, Message, TrainingRow
from clean_room_agent.training.training_time import parameters_of, shortest_rows, tokens_a_second, tokens_of


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(*shapes: tuple[int, ...], names: tuple[str, ...] = ("a", "b")) -> bytes:
    """A GGUF header with values of each form, and these tensors."""
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("qwen2"),
        text("block_count") + struct.pack("<II", 4, 24),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
    ]
    tensors = [
        text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0)
        for name, shape in zip(names, shapes, strict=False)
    ]
    return struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(pairs)) + b"".join(pairs + tensors)


def entry(function: str, length: int) -> DatasetEntry:
    row = TrainingRow(
        prompt=(Message(role="user", content="word " * length),),
        completion=answer("x"),
        origin=replace(ORIGIN, task_id=function),
    )
    return DatasetEntry(split="train", kind="sft", row=row)


def test_parameters_are_those_of_the_headers(tmp_path: Path) -> None:
    (tmp_path / "base.gguf").write_bytes(gguf((1000, 50), (7,)))
    assert parameters_of(tmp_path / "base.gguf") == 50_007
    untied = gguf((1000, 50), (1000, 50), names=("token_embd.weight", "output.weight"))
    (tmp_path / "base.gguf").write_bytes(untied)
    assert parameters_of(tmp_path / "base.gguf") == 50_000
    folder = tmp_path / "base"
    folder.mkdir()
    for number in (1, 2):
        tensors = {"__metadata__": {"format": "pt"}, f"w{number}": {"dtype": "BF16", "shape": [4, 5]}}
        header = json.dumps(tensors).encode()
        (folder / f"model-{number}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert parameters_of(folder) == 40


@pytest.mark.parametrize("content", [b"weights", b"", gguf((5, 5))[:60]])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "base.gguf").write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read as a model"):
        parameters_of(tmp_path / "base.gguf")
    with pytest.raises(UsageError, match="there is no base model"):
        parameters_of(tmp_path / "nowhere")


def test_speed_falls_with_parameters_and_rises_with_cores() -> None:
    assert tokens_a_second(500_000_000, 1, bfloat16=True) == 28
    assert tokens_a_second(1_500_000_000, 2, bfloat16=True) == pytest.approx(18.67, abs=0.01)
    assert tokens_a_second(500_000_000, 1, bfloat16=False) == pytest.approx(20.7, abs=0.01)


def test_the_shortest_rows_of_each_function_come_before_further_ones() -> None:
    rows = [entry("f", length) for length in (1, 2, 3)] + [entry("g", length) for length in (20, 30)]
    costs = {len(one.row.prompt[0].content): tokens_of(one.row) for one in rows}
    first = costs[5] + costs[100]
    assert shortest_rows(rows, first) == [rows[0], rows[3]]
    assert shortest_rows(rows, first + costs[10] + costs[150]) == [rows[0], rows[3], rows[1], rows[4]]
    assert shortest_rows(rows[::-1], 1e9) == [rows[0], rows[3], rows[1], rows[4], rows[2]]
    assert shortest_rows(rows, 3) == []
