"""A dataset folder: what stands in its files, and that it stands whole or not at all."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from clean_room_agent.errors import UsageError
from clean_room_agent.training.dataset import (
    FORMATS,
    Card,
    DatasetEntry,
    Kind,
    Message,
    RowOrigin,
    Split,
    TrainingRow,
    read_rows,
    write_dataset,
)

CARD = Card(
    title="Scope judgments",
    base_model="tiny:1b",
    plan={"target": "scope_judgment"},
    criteria={"max_tokens": 4096},
    split_rule="the newest tenth is test",
    exclusions={"near-duplicate": 3},
)
ORIGIN = RowOrigin(
    stage="scope_judgment",
    source="logged",
    repo="/code/shop",
    commit="abc",
    timestamp="2026-01-02T03:04:05Z",
    license="MIT",
    model="tiny:1b",
    task_id="task-1:impl:a:b",
    call_id=7,
)
PROMPT = (Message(role="system", content="Judge."), Message(role="user", content="Is cart.py needed? é"))


def answer(text: str) -> tuple[Message, ...]:
    return (Message(role="assistant", content=text),)


def row(text: str = "yes", *, label: bool = True, **origin: Any) -> TrainingRow:
    return TrainingRow(
        prompt=PROMPT, completion=answer(text), origin=structs.replace(ORIGIN, **origin), label=label
    )


PAIR = TrainingRow(prompt=PROMPT, completion=answer("yes"), rejected=answer("maybe"), origin=ORIGIN)


def entries() -> list[DatasetEntry]:
    good: list[tuple[Split, Kind, TrainingRow]] = [
        ("train", "sft", row()),
        ("train", "sft", row("no", call_id=8)),
        ("validation", "sft", row("no", call_id=9)),
        ("test", "sft", row("no", call_id=10, license="")),
        ("train", "dpo", PAIR),
        ("train", "kto", row("no", call_id=11, label=False)),
    ]
    return [DatasetEntry(split=split, kind=kind, row=each) for split, kind, each in good]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_supervised_row_holds_prompt_completion_messages_and_flat_metadata(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["trl"])
    first = lines(tmp_path / "data/scope_judgment/train.jsonl")[0]
    assert first["messages"] == first["prompt"] + first["completion"]
    assert first["completion"] == [{"role": "assistant", "content": "yes"}]
    flat = {
        key: value for key, value in first.items() if key not in {"messages", "prompt", "completion", "id"}
    }
    assert flat == {
        "stage": "scope_judgment",
        "source": "logged",
        "repo": "/code/shop",
        "commit": "abc",
        "timestamp": "2026-01-02T03:04:05Z",
        "license": "MIT",
        "model": "tiny:1b",
        "label": True,
        "task_id": "task-1:impl:a:b",
        "call_id": 7,
    }


def test_each_kind_and_split_has_a_file_of_its_own(tmp_path: Path) -> None:
    written = write_dataset(tmp_path / "data", entries(), CARD, FORMATS["trl"])
    assert [(each.path, each.rows) for each in written.files] == [
        ("scope_judgment/dpo_train.jsonl", 1),
        ("scope_judgment/kto_train.jsonl", 1),
        ("scope_judgment/test.jsonl", 1),
        ("scope_judgment/train.jsonl", 2),
        ("scope_judgment/validation.jsonl", 1),
    ]
    assert written.count("sft") == 4
    for each in written.files:
        content = (tmp_path / "data" / each.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == each.sha256


def test_a_bad_answer_is_refused_among_supervised_rows_and_nothing_is_left(tmp_path: Path) -> None:
    bad = [*entries(), DatasetEntry(split="train", kind="sft", row=row(label=False))]
    with pytest.raises(ValueError, match="not a good answer"):
        write_dataset(tmp_path / "data", bad, CARD, FORMATS["trl"])
    assert list(tmp_path.iterdir()) == []


def test_supervised_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["trl"])
    good = [entry.row for entry in entries() if entry.kind == "sft"]
    assert list(read_rows(tmp_path / "data", "scope_judgment")) == good
    assert list(read_rows(tmp_path / "data", "scope_judgment", "test")) == good[3:]
    assert list(read_rows(tmp_path / "data", "implement")) == []
    (tmp_path / "data/scope_judgment/test.jsonl").write_text("[1]\n")
    with pytest.raises(UsageError, match="cannot be read as a dataset"):
        list(read_rows(tmp_path / "data", "scope_judgment"))


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        write_dataset(tmp_path, entries(), CARD, FORMATS["trl"])
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_the_readme_names_each_part_for_datasets_and_tells_what_was_left_out(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["trl"])
    text = (tmp_path / "data/README.md").read_text()
    assert text.startswith(
        '---\nconfigs:\n- config_name: "scope_judgment"\n  data_files:\n'
        '  - split: train\n    path: "scope_judgment/train.jsonl"\n'
    )
    assert '- config_name: "scope_judgment-kto"' in text
    assert '"near-duplicate": 3' in text
    assert "the newest tenth is test" in text
    card = json.loads((tmp_path / "data/card.json").read_text())
    assert card["licences"] == {"MIT": 5, "unknown": 1}
    assert card["exclusions"] == {"near-duplicate": 3}


def test_rows_of_one_task_are_one_group_whatever_the_pass() -> None:
    assert row(task_id="t:impl:a:b").origin.group == row(task_id="t:meta_plan").origin.group
    assert row(task_id="", commit="abc").origin.group != row(task_id="", commit="abd").origin.group


def test_llama_factory_is_told_of_every_file(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["llama-factory"])
    known = json.loads((tmp_path / "data/dataset_info.json").read_text())
    assert known["scope_judgment_train"]["file_name"] == "scope_judgment/train.jsonl"
    assert known["scope_judgment_dpo_train"]["ranking"] is True
    assert known["scope_judgment_kto_train"]["columns"]["kto_tag"] == "label"
    for each in known.values():
        assert lines(tmp_path / "data" / each["file_name"])
    pair = lines(tmp_path / "data" / known["scope_judgment_dpo_train"]["file_name"])[0]
    assert pair["rejected"] == {"role": "assistant", "content": "maybe"}


def test_openai_lines_hold_no_other_key(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["openai"])
    assert {tuple(each) for each in lines(tmp_path / "data/openai/scope_judgment/train.jsonl")} == {
        ("messages",)
    }
    pair = lines(tmp_path / "data/openai/scope_judgment/dpo_train.jsonl")[0]
    assert set(pair) == {"input", "preferred_output", "non_preferred_output"}


def test_unsloth_and_axolotl_get_what_they_read(tmp_path: Path) -> None:
    write_dataset(tmp_path / "unsloth", entries(), CARD, FORMATS["unsloth"])
    assert "conversations" in lines(tmp_path / "unsloth/unsloth/scope_judgment/train.jsonl")[0]
    write_dataset(tmp_path / "axolotl", entries(), CARD, FORMATS["axolotl"])
    assert '- path: "scope_judgment/train.jsonl"' in (tmp_path / "axolotl/axolotl.yaml").read_text()
    assert "rl: dpo" in (tmp_path / "axolotl/axolotl_dpo.yaml").read_text()
