"""The folders are loaded by the packages they are made for, where these are installed."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.training.test_dataset import CARD, entries, lines, row

from clean_room_agent import proc
from clean_room_agent.child_processes import inherited_environment
from clean_room_agent.training.dataset import Entry, write_dataset
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
TRL = """
import json, sys
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, SFTConfig, SFTTrainer

folder, out = sys.argv[1], sys.argv[2]
words = ["[UNK]", "[PAD]", "[EOS]", "yes", "no", "maybe", "<", ">", "/", "user", "system", "assistant"]
backend = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
)
tokenizer.chat_template = (
    "{% for m in messages %}< {{ m.role }} > {{ m.content }} [EOS] {% endfor %}"
    "{% if add_generation_prompt %}< assistant > {% endif %}"
)
def model():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, pad_token_id=1, eos_token_id=2,
    ))
def options(kind, **more):
    return kind(
        output_dir=out, max_steps=1, per_device_train_batch_size=2, use_cpu=True, bf16=False, report_to=[],
        max_length=64, save_strategy="no", **more,
    )
found = {}
def step(name, trainer):
    trainer.train()
    found[name] = trainer.train_dataset.num_rows
rows = load_dataset(folder, "scope_judgment", split="train")
trainer = SFTTrainer(model=model(), args=options(SFTConfig), train_dataset=rows, processing_class=tokenizer)
first = trainer.train_dataset[0]
learned = [token for token, label in zip(first["input_ids"], first["labels"]) if label != -100]
found["learned"] = tokenizer.decode(learned)
step("sft", trainer)
pairs = load_dataset(folder, "scope_judgment-dpo", split="train")
step("dpo", DPOTrainer(
    model=model(), ref_model=model(), args=options(DPOConfig), train_dataset=pairs, processing_class=tokenizer
))
labelled = load_dataset(folder, "scope_judgment-kto", split="train")
step("kto", KTOTrainer(
    model=model(), ref_model=model(), args=options(KTOConfig), train_dataset=labelled, processing_class=tokenizer
))
print(json.dumps(found))
"""
LLAMA_FACTORY = """
import json, sys
from datasets import load_dataset
from llamafactory.data.converter import get_dataset_converter
from llamafactory.data.parser import get_dataset_list
from llamafactory.hparams import DataArguments
folder = sys.argv[1]
names = json.load(open(folder + "/dataset_info.json"))
found = {}
for name, attr in zip(names, get_dataset_list(list(names), folder)):
    rows = load_dataset("json", data_files=folder + "/" + attr.dataset_name, split="train")
    convert = get_dataset_converter(attr.formatting, attr, DataArguments(dataset_dir=folder))
    made = convert(rows[0])
    found[name] = [made["_system"], made["_prompt"], made["_response"]]
print(json.dumps(found))
"""


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not installed (opt-in)"
    )


def ask(script: str, folder: Path, home: Path) -> dict[str, Any]:
    env = {**inherited_environment(without="HF_"), "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    done = proc.run(
        (sys.executable, "-c", script, str(folder), str(home / "out")), cwd=home, env=env, timeout=240
    )
    value: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return value


@needs("datasets")
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


@needs("trl")
@needs("torch")
def test_trl_trains_on_all_rows_of_each_kind_and_learns_the_answer_alone(tmp_path: Path) -> None:
    more = [*entries(), Entry(split="train", kind="kto", row=row("yes", call_id=12))]
    write_dataset(tmp_path / "data", more, CARD, FORMATS["trl"])
    found = ask(TRL, tmp_path / "data", tmp_path)
    assert (found["sft"], found["dpo"], found["kto"]) == (2, 1, 2)
    assert found["learned"].split() == ["yes", "[EOS]"]


@needs("llamafactory")
@needs("torchaudio")
def test_llama_factory_converts_every_file(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", entries(), CARD, FORMATS["llama-factory"])
    found = ask(LLAMA_FACTORY, tmp_path / "data", tmp_path)
    assert len(found) == 5
    asked = [{"role": "user", "content": "Is cart.py needed? é"}]
    assert all((system, prompt) == ("Judge.", asked) for system, prompt, _ in found.values())
    answers = {name: [each["content"] for each in response] for name, (_, _, response) in found.items()}
    assert answers["scope_judgment_train"] == ["yes"]
    assert answers["scope_judgment_dpo_train"] == ["yes", "maybe"]
    assert answers["scope_judgment_kto_train"] == ["", "no"]
