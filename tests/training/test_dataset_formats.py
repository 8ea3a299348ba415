"""What each trainer gets beyond the common rows."""

import json
from typing import Any

import pytest
from tests.training.test_dataset import ORIGIN

from clean_room_agent.training.dataset import Entry, FileFacts, Message, Row
from clean_room_agent.training.dataset_formats import FORMATS

ROW = Row(
    prompt=(Message(role="user", content="Is it?"),),
    completion=(Message(role="assistant", content="yes"),),
    origin=ORIGIN,
    label=True,
)
CHAT = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "yes"}]


def line(name: str, kind: str) -> Any:
    return FORMATS[name].line(Entry(row=ROW, split="train", kind=kind))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("trl", "sft", None),
        ("axolotl", "sft", None),
        ("unsloth", "sft", {"conversations": CHAT}),
        ("unsloth", "kto", None),
        ("openai", "sft", {"messages": CHAT}),
        ("openai", "kto", None),
        ("llama-factory", "sft", None),
        ("llama-factory", "kto", {"messages": CHAT, "label": True}),
    ],
)
def test_a_row_in_the_trainer_s_shape(name: str, kind: str, expected: Any) -> None:
    assert line(name, kind) == expected


def facts(kind: str, split: str, path: str) -> FileFacts:
    return FileFacts(stage="scope", kind=kind, split=split, path=path, rows=1, sha256="")  # type: ignore[arg-type]


def test_llama_factory_finds_files_by_name() -> None:
    text = FORMATS["llama-factory"].settings(
        (facts("sft", "train", "scope/train.jsonl"), facts("kto", "train", "scope/kto_train.jsonl"))
    )["dataset_info.json"]
    known = json.loads(text)
    assert known["scope_train"]["file_name"] == "scope/train.jsonl"
    assert known["scope_kto_train"]["columns"] == {"messages": "messages", "kto_tag": "label"}


def test_axolotl_is_told_of_training_and_test_files() -> None:
    made = FORMATS["axolotl"].settings(
        (
            facts("sft", "train", "a.jsonl"),
            facts("sft", "validation", "b.jsonl"),
            facts("dpo", "train", "c.jsonl"),
        )
    )
    assert list(made) == ["axolotl.yaml", "axolotl_dpo.yaml"]
    assert made["axolotl.yaml"].index("a.jsonl") < made["axolotl.yaml"].index("test_datasets")
    assert made["axolotl_dpo.yaml"].startswith("rl: dpo\n")
