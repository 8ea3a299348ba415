"""Rows are read back as they were written."""

from pathlib import Path

import pytest
from tests.training.test_dataset import CARD, ORIGIN

from clean_room_agent.errors import UsageError
from clean_room_agent.training.dataset import Entry, Message, Row, write_dataset
from clean_room_agent.training.dataset_formats import FORMATS
from clean_room_agent.training.dataset_reading import read_rows, read_split

ROW = Row(
    prompt=(Message(role="user", content="Is it?"),),
    completion=(Message(role="assistant", content="ja\u2028"),),
    origin=ORIGIN,
    label=True,
)


def test_a_written_row_comes_back(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [Entry(row=ROW, split="train", kind="sft")], CARD, FORMATS["trl"])
    assert [*read_rows(tmp_path / "data", ORIGIN.stage)] == [ROW]
    assert [*read_split(tmp_path / "data", ORIGIN.stage, "test")] == []


def test_what_is_no_dataset_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "scope").mkdir()
    (tmp_path / "scope/train.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"train\.jsonl cannot be read as a dataset"):
        [*read_split(tmp_path, "scope", "train")]
