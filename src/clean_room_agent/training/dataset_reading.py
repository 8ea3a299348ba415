"""Reads a dataset's rows back from its folder."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clean_room_agent.errors import UsageError
from clean_room_agent.safe_open import open_named
from clean_room_agent.training.dataset import SPLITS, Message, Origin, Row, Split


def read_rows(folder: Path, stage: str) -> Iterator[Row]:
    """The supervised rows of one prompt in a dataset, split by split.

    Raises:
        UsageError: a file cannot be read, or holds something else.
    """
    for split in SPLITS:
        yield from read_split(folder, stage, split)


def read_split(folder: Path, stage: str, split: Split) -> Iterator[Row]:
    """The supervised rows of one split; none if it has no file.

    Raises:
        UsageError: the file cannot be read, or holds something else.
    """
    path = folder / stage / f"{split}.jsonl"
    if not path.exists():
        return
    try:
        with open_named(path) as file:
            lines = file.read().decode("utf-8").split("\n")[:-1]
        for line in lines:
            yield _row_of(json.loads(line))
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise UsageError(f"{path} cannot be read as a dataset: {exc}") from exc


def _row_of(value: Mapping[str, Any]) -> Row:
    return Row(
        prompt=tuple(Message(**message) for message in value["prompt"]),
        completion=tuple(Message(**message) for message in value["completion"]),
        origin=Origin(**{name: value[name] for name in Origin.__struct_fields__}),
        label=value["label"],
    )
