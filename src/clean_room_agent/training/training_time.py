"""How long a training takes, before it has begun: from its rows' tokens, the base's parameters and the processors.

Measured: a base of 0.5B parameters trains at 28 tokens a second on a core with native bfloat16, one of 135M at 142 with it and
105 without. Example: 20,000 tokens twice over, 0.5B parameters, two cores: 40,000 / 56 = 714 s.
"""

import json
import math
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from clean_room_agent.errors import UsageError
from clean_room_agent.llm.token_estimator import FRAMING_TOKENS, estimate
from clean_room_agent.safe_open import open_named
from clean_room_agent.training.dataset import DatasetEntry, TrainingRow

TOKENS_A_SECOND = 28.0
"""On one core, per `OF_PARAMETERS`."""
OF_PARAMETERS = 0.5e9
FLOAT32_SHARE = 105 / 142
READING = 3
"""How many times as fast a model reads: training goes back over all of it, which costs as much as two readings."""
GGUF_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
GGUF_TEXT, GGUF_ARRAY = 8, 9
LAST_LAYERS = (("output.weight", "token_embd.weight"), ("lm_head.weight", "model.embed_tokens.weight"))
"""Of a GGUF and of transformers, each with the embedding that may stand in for it."""
BASES = "name a GGUF file, or a folder that transformers can load, with safetensors"


def parameters_of(base: Path) -> int:
    """The number of parameters that the base computes with, from the headers of its files: a GGUF, or a folder with safetensors.
    An embedding is looked up: it counts only where it is the last layer, too.

    Raises:
        UsageError: it is neither.
    """
    files = [base] if base.is_file() else sorted(base.glob("*.safetensors"))
    sizes: dict[str, int] = {}
    try:
        for file in files:
            sizes |= _gguf_sizes(file) if base.is_file() else _safetensors_sizes(file)
    except (OSError, struct.error, ValueError, KeyError, TypeError) as exc:
        raise UsageError(f"{base} cannot be read as a model: {exc}", hint=BASES) from exc
    if not sizes:
        raise UsageError(f"there is no base model at {base}", hint=BASES)
    looked_up = sum(sizes.get(embedding, 0) for last, embedding in LAST_LAYERS if last in sizes)
    return sum(sizes.values()) - looked_up


def _safetensors_sizes(path: Path) -> dict[str, int]:
    with open_named(path) as file:
        (size,) = struct.unpack("<Q", file.read(8))
        tensors = json.loads(file.read(size))
    return {name: math.prod(one["shape"]) for name, one in tensors.items() if name != "__metadata__"}


def _gguf_sizes(path: Path) -> dict[str, int]:
    """As llama.cpp's gguf.md lays the header out: pairs of names and values, then name, dimensions, type and offset of tensors."""
    sizes: dict[str, int] = {}
    with open_named(path) as file:
        if file.read(4) != b"GGUF":
            raise ValueError("it is no GGUF file")
        _version, tensors, pairs = _read_struct(file, "IQQ")
        for _ in range(pairs):
            _read_text(file)
            _skip_value(file, *_read_struct(file, "I"))
        for _ in range(tensors):
            name = _read_text(file)
            (dimensions,) = _read_struct(file, "I")
            sizes[name] = math.prod(_read_struct(file, f"{dimensions}Q"))
            _read_struct(file, "IQ")
    return sizes


def _read_struct(file: IO[bytes], form: str) -> tuple[int, ...]:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def _read_text(file: IO[bytes]) -> str:
    (size,) = _read_struct(file, "Q")
    return file.read(size).decode("utf-8", "replace")


def _skip_value(file: IO[bytes], kind: int) -> None:
    if kind == GGUF_TEXT:
        _read_text(file)
    elif kind == GGUF_ARRAY:
        of, count = _read_struct(file, "IQ")
        if of in GGUF_SCALARS:
            file.seek(count * struct.calcsize(GGUF_SCALARS[of]), 1)
            return
        for _ in range(count):
            _skip_value(file, of)
    else:
        _read_struct(file, GGUF_SCALARS[kind])


def tokens_a_second(parameters: int, cores: int, *, bfloat16: bool) -> float:
    """How fast a base is trained on so many cores."""
    return TOKENS_A_SECOND * OF_PARAMETERS / parameters * cores * (1 if bfloat16 else FLOAT32_SHARE)


def tokens_of(row: TrainingRow) -> int:
    """About the tokens that the trainer makes of the row."""
    return sum(estimate(message.content) for message in row.messages) + FRAMING_TOKENS


def shortest_rows(entries: Iterable[DatasetEntry], most_tokens: float) -> list[DatasetEntry]:
    """The shortest of the rows that have at most so many tokens together: the shortest of each function, then the next of each."""
    turns: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, str, DatasetEntry]] = []
    for tokens, id_, entry in sorted(
        ((tokens_of(entry.row), entry.row.id, entry) for entry in entries), key=lambda one: one[:2]
    ):
        turns[entry.row.origin.group] += 1
        ranked.append((turns[entry.row.origin.group], tokens, id_, entry))
    kept: list[DatasetEntry] = []
    for _, tokens, _, entry in sorted(ranked, key=lambda one: one[:3]):
        most_tokens -= tokens
        if most_tokens < 0:
            break
        kept.append(entry)
    return kept
