"""The folders are loaded by the packages they are made for, where these are installed."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from tests.training.test_dataset import CARD, entries, lines

from clean_room_agent import proc
from clean_room_agent.training.dataset import write_dataset
from clean_room_agent.training.dataset_formats import FORMATS

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
TRAINERS_VIEW = """
import json, sys
from datasets import load_dataset
from trl.data_utils import is_conversational
folder = sys.argv[1]
found = {}
for name in ("scope_judgment", "scope_judgment-dpo", "scope_judgment-kto"):
    row = load_dataset(folder, name, split="train")[0]
    found[name] = is_conversational(row)
print(json.dumps(found))
"""


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not installed (opt-in)"
    )


def ask(script: str, folder: Path, home: Path) -> dict[str, object]:
    env = {**proc.inherited_environment(without="HF_"), "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    done = proc.run((sys.executable, "-c", script, str(folder)), cwd=home, env=env, timeout=240)
    value: dict[str, object] = json.loads(done.stdout.decode().splitlines()[-1])
    return value


@needs("datasets")
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_datasets_loads_every_part_of_every_format(tmp_path: Path, name: str) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS[name])
    found = ask(LOAD, tmp_path / "data", tmp_path)
    assert set(found) == {"scope_judgment", "scope_judgment-dpo", "scope_judgment-kto"}
    supervised = found["scope_judgment"]
    assert isinstance(supervised, dict)
    assert {split: facts[0] for split, facts in supervised.items()} == {
        "train": 2,
        "validation": 1,
        "test": 1,
    }
    first = lines(tmp_path / "data/scope_judgment/train.jsonl")[0]
    assert supervised["train"][1] == sorted(first)


@needs("trl")
@needs("datasets")
def test_trl_takes_the_rows_for_conversations(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["trl"])
    assert set(ask(TRAINERS_VIEW, tmp_path / "data", tmp_path).values()) == {True}
