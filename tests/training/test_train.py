"""`cra train`: the driver with a scripted trainer, and the real one where it is installed.

The real one is looked for in this Python, or in the one that CRA_TRAIN_PYTHON names.
"""

import importlib.util
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.training.test_dataset import CARD, answer
from tests.training.test_deployment import NOW, trained

from clean_room_agent import proc
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import DatasetRow, get_dataset, list_adapters
from clean_room_agent.errors import CommandError, CraError, UsageError
from clean_room_agent.training.dataset import (
    FORMATS,
    DatasetEntry,
    Kind,
    Message,
    RowOrigin,
    TrainingRow,
    write_dataset,
)
from clean_room_agent.training.train import Machine, Trained, TrainingJob, job_for, train
from clean_room_agent.training.train_plan import DataCriteria, Hyperparameters, TrainingPlan

PLAN = TrainingPlan(
    target="scope_judgment",
    base_model="tiny:1b",
    criteria=DataCriteria(max_tokens=64),
    hyperparameters=Hyperparameters(rank=4, alpha=8, learning_rate=0.02, epochs=2, batch_size=4),
)
FAKE = """\
#!{python}
import json, pathlib, sys
job = json.loads(pathlib.Path(sys.argv[2]).read_text())
work = pathlib.Path(job["work"])
mode = {mode!r}
tell = lambda **event: print("@" + json.dumps(event), flush=True)
print("talk of a library")
if mode == "cut":
    print("row 7 would be cut", file=sys.stderr); sys.exit(3)
if mode == "library":
    print("trl is not installed", file=sys.stderr); sys.exit(4)
tell(event="tokenised", what="train", rows=8, tokens=99)
tell(event="step", step=1, total=2, loss=2.5)
if mode == "breaks" and not (work / "checkpoint-1").exists():
    (work / "checkpoint-1").mkdir(); sys.exit("out of memory")
(work / "adapter").mkdir()
(work / "adapter" / "adapter_config.json").write_text("{{}}")
tell(event="done", rows=7 if mode == "drops" else 8, steps=2, seconds=1.0, first_loss=2.5, last_loss=0.5,
     resumed_from="checkpoint-1" if (work / "checkpoint-1").exists() else "")
"""


def dataset_at(folder: Path) -> Path:
    entries = []
    for number in range(8):
        origin = RowOrigin(
            stage="scope_judgment", source="logged", repo="/code/shop", timestamp=NOW, task_id=str(number)
        )
        prompt = (Message(role="user", content=f"case {number % 2}"),)
        good, bad = ("yes", "no") if number % 2 else ("no", "yes")
        row = TrainingRow(prompt=prompt, completion=answer(good), origin=origin)
        entries.append(DatasetEntry(split="train", kind="sft", row=row))
        entries.append(DatasetEntry(split="train", kind="kto", row=replace(row, label=number % 3 > 0)))
        pair = TrainingRow(prompt=prompt, completion=answer(good), rejected=answer(bad), origin=origin)
        entries.append(DatasetEntry(split="train", kind="dpo", row=pair))
    write_dataset(folder, entries, CARD, FORMATS["trl"])
    return folder


class Bench:
    """All that a training needs, in one folder."""

    def __init__(self, top: Path, record: Record) -> None:
        self.top, self.record = top, record
        (top / "base").mkdir()
        (top / "base/model.safetensors").write_text("weights")
        row = record.write(get_dataset, trained(record, "other").dataset_id)
        assert row is not None
        self.dataset: DatasetRow = replace(row, dataset_path=str(dataset_at(top / "data")))
        self.steps: list[tuple[int, int, float]] = []

    def job(self, machine: Machine, kind: Kind = "sft", **fields: Any) -> TrainingJob:
        return job_for(
            PLAN,
            self.top / "data",
            self.top / "base",
            self.top / "out.training",
            machine,
            kind=kind,
            **fields,
        )

    def train(self, machine: Machine, job: TrainingJob, *, resume: bool = False) -> Trained:
        return train(
            self.record,
            self.dataset,
            PLAN,
            job,
            self.top / "out",
            machine,
            model_tag="tiny:1b-scope_judgment-v1",
            resume=resume,
            progress=lambda *step: self.steps.append(step),
        )

    def fake(self, mode: str) -> Machine:
        path = self.top / f"python-{mode}"
        path.write_text(FAKE.format(python=sys.executable, mode=mode))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Machine(python=str(path), device="cpu")

    def registered(self) -> list[str]:
        return [each.model_tag for each in self.record.write(list_adapters) if each.model_tag != "other"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "shop").mkdir()
    with Record.open(tmp_path / "shop", clock=lambda: NOW) as record:
        yield Bench(tmp_path, record)


def test_an_adapter_stands_whole_with_what_it_was_trained_on(bench: Bench) -> None:
    machine = bench.fake("works")
    made = bench.train(machine, bench.job(machine))
    assert (made.rows, made.tokens, made.steps, made.last_loss) == (8, 99, 2, 0.5)
    assert bench.steps == [(1, 2, 2.5)]
    about = json.loads((bench.top / "out/cra.json").read_text())
    assert about["base_digest"] == made.adapter.base_digest
    assert len(about["base_digest"]) == 64
    assert (about["job"]["rank"], about["job"]["max_length"], about["job"]["accumulate"]) == (4, 64, 4)
    assert not (bench.top / "out.training").exists()
    assert bench.registered() == ["tiny:1b-scope_judgment-v1"]


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("cut", UsageError, "row 7 would be cut"),
        ("library", UsageError, "trl is not installed"),
        ("drops", CraError, "8 rows came in and 7 were trained"),
        ("breaks", CommandError, "out of memory"),
    ],
)
def test_what_is_not_whole_is_not_registered(
    bench: Bench, mode: str, error: type[CraError], words: str
) -> None:
    machine = bench.fake(mode)
    with pytest.raises(error, match=words):
        bench.train(machine, bench.job(machine))
    assert bench.registered() == []
    assert not (bench.top / "out").exists()


def test_an_interrupted_training_continues_if_it_is_the_same(bench: Bench) -> None:
    machine = bench.fake("breaks")
    job = bench.job(machine)
    with pytest.raises(CommandError):
        bench.train(machine, job)
    with pytest.raises(UsageError, match="an interrupted training"):
        bench.train(machine, job)
    with pytest.raises(UsageError, match="another job"):
        bench.train(machine, bench.job(machine, seed=7), resume=True)
    assert bench.train(machine, job, resume=True).rows == 8
    about = json.loads((bench.top / "out/cra.json").read_text())
    assert about["result"]["resumed_from"] == "checkpoint-1"
    with pytest.raises(UsageError, match="exists"):
        bench.train(machine, job)


def test_a_job_that_cannot_be_done_is_refused_before_it_begins(bench: Bench) -> None:
    with pytest.raises(UsageError, match="cannot be divided"):
        bench.job(Machine(micro_batch=3))
    with pytest.raises(UsageError, match="--kind kto needs 2 rows at a time"):
        bench.job(Machine(micro_batch=1), "kto")
    with pytest.raises(UsageError, match="no base model"):
        job_for(PLAN, bench.top / "data", bench.top / "absent", bench.top / "w", Machine())
    with pytest.raises(UsageError, match=r"there is no .*train\.jsonl"):
        job_for(PLAN, bench.top, bench.top / "base", bench.top / "w", Machine())


PYTHON = os.environ.get("CRA_TRAIN_PYTHON", "")
needs_trl = pytest.mark.skipif(
    not PYTHON and (importlib.util.find_spec("trl") is None or importlib.util.find_spec("torch") is None),
    reason="trl is not installed (extra train), and CRA_TRAIN_PYTHON names no Python that has it",
)
TINY = """
import sys
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
words = ["[UNK]", "[PAD]", "[EOS]", "yes", "no", "case", "0", "1", "user", "assistant", "<", ">"]
backend = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
)
tokenizer.chat_template = (
    "{% for m in messages %}< {{ m.role }} > {{ m.content }} [EOS] {% endfor %}"
    "{% if add_generation_prompt %}< assistant > {% endif %}"
)
torch.manual_seed(1)
LlamaForCausalLM(LlamaConfig(
    vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, pad_token_id=1, eos_token_id=2,
)).save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""
RELOAD = """
import json, sys
from peft import PeftModel
from transformers import AutoModelForCausalLM
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(sys.argv[1]), sys.argv[2])
print(json.dumps(sum(float(value.abs().sum()) for name, value in model.named_parameters() if "lora_B" in name)))
"""


def ask(script: str, *args: str) -> str:
    done = proc.run((PYTHON or sys.executable, "-c", script, *args), cwd=Path("/"), timeout=240)
    return done.stdout.decode()


@needs_trl
@pytest.mark.parametrize("kind", ["sft", "dpo", "kto"])
def test_twenty_steps_of_a_tiny_model_make_the_loss_fall_and_the_adapter_loads(
    bench: Bench, kind: Kind
) -> None:
    ask(TINY, str(bench.top / "base"))
    (bench.top / "base/model.safetensors").stat()
    machine = Machine(python=PYTHON or sys.executable, device="cpu", micro_batch=2)
    made = bench.train(machine, bench.job(machine, kind, max_steps=20))
    assert (made.rows, made.steps) == (8, 20)
    assert [step for step, _, _ in bench.steps] == list(range(1, 21))
    assert made.first_loss is not None
    assert made.last_loss is not None
    # sft: 2.38 -> 2.04, step by step; the frozen head, of weights of .02, lets it fall to about 2.0 and no further
    assert made.last_loss < (0.9 if kind == "sft" else 1.0) * made.first_loss
    assert json.loads(ask(RELOAD, str(bench.top / "base"), str(made.folder)).splitlines()[-1]) > 0


@needs_trl
def test_a_row_that_would_be_cut_ends_the_training_before_it_begins(bench: Bench) -> None:
    ask(TINY, str(bench.top / "base"))
    machine = Machine(python=PYTHON or sys.executable, device="cpu")
    with pytest.raises(UsageError, match="it would be cut"):
        bench.train(machine, bench.job(machine, max_length=9))
    assert bench.steps == []
    assert bench.registered() == []
