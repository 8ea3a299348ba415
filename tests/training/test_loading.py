"""Datasets are loaded by `datasets`, where it is installed."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.training.test_dataset import CARD, entries, lines

from clean_room_agent import proc
from clean_room_agent.proc import inherited_environment
from clean_room_agent.training.dataset import FORMATS, write_dataset

LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
folder = sys.argv[1]
found = {}
for name in get_dataset_config_names(folder):
    loaded = load_dataset(folder, name)
    found[name] = {split: [rows.num_rows, sorted(rows.column_names)] for split, rows in loaded.items()}
print(json.dumps(found))
"""


def ask(script: str, folder: Path, home: Path) -> dict[str, Any]:
    env = {**inherited_environment(without="HF_"), "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    done = proc.run(
        (sys.executable, "-c", script, str(folder), str(home / "out")), cwd=home, env=env, timeout=240
    )
    value: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return value


@pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="needs the extra `train`")
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_datasets_loads_every_part_of_every_format(tmp_path: Path, name: str) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS[name])
    found = ask(LOAD, tmp_path / "data", tmp_path)
    assert set(found) == {"scope_judgment", "scope_judgment-dpo", "scope_judgment-kto"}
    supervised = found["scope_judgment"]
    assert {split: facts[0] for split, facts in supervised.items()} == {
        "train": 2,
        "validation": 1,
        "test": 1,
    }
    first = lines(tmp_path / "data/scope_judgment/train.jsonl")[0]
    assert supervised["train"][1] == sorted(first)
