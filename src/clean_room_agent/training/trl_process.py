"""The trainer process: rows in, an adapter out. Run as a script without this package; only its exit codes are imported.

python trl_process.py SETTINGS.json: SETTINGS are those of `train.TrainingJob`. On standard output, a line of JSON for each
event, after `@`: `{"event": "tokenised" | "step" | "done", ...}`; all other lines are output of libraries. It exits
with 3 if a row does not fit, and with 4 if a library is missing; the last line of standard error says why.

Every row is rendered as the server will render it: the prompt as it is asked (`add_generation_prompt`, the same
template options), then the answer, then what the template puts behind an answer. So rows are tokenised here, before the
model is loaded, and a row that would be truncated ends the run: trainers truncate silently.
"""

import ctypes
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

ROW_CANNOT, LIBRARY_MISSING = 3, 4
PR_SET_PDEATHSIG = 1
Chat = list[dict[str, str]]
FILL, GAP = "fill", "<<GAP>>"
"""What rows of gaps are called, and what stands in their prompts for the text that is asked for (see `llm/filling.py`)."""
MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
)
"""What models have before a gap's text, behind it, and at the end: Qwen2.5-Coder and others, StarCoder, DeepSeek-Coder."""
FRONT = (("<|repo_name|>", "myproject\n"), ("<|file_sep|>", "filename\n"))
"""What llama-server's /infill puts in front for models that have these marks."""
END = "<|endoftext|>"


def tell(event: str, **facts: Any) -> None:
    """Print one event, at once; of several processes, only the first does."""
    if int(os.environ.get("RANK", "0")) == 0:
        sys.stdout.write("@" + json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()


def give_up(code: int, why: str) -> NoReturn:
    """Print why, and exit with this code."""
    sys.stderr.write(f"\n{why}\n")
    sys.stderr.flush()
    raise SystemExit(code)


class Rendering:
    """Renders rows with the base's chat template."""

    def __init__(self, tokenizer: Any, options: dict[str, Any]) -> None:
        self._tokenizer = tokenizer
        self._options = options
        # The tokenizer makes it anew at each call, in a tenth of a second.
        self._vocabulary: dict[str, int] = tokenizer.get_vocab()

    def halves(self, prompt: Chat, completion: Chat) -> tuple[list[int], list[int]]:
        """The tokens of the prompt, and of the answer including its end."""
        asked = self._render_chat(prompt, add_generation_prompt=True)
        whole = self._render_chat(prompt + completion, add_generation_prompt=False)
        answer = completion[-1]["content"]
        place = whole.rfind(answer)
        if place < 0:
            # Some templates trim answers.
            answer = answer.strip()
            place = whole.rfind(answer)
        behind = whole[place + len(answer) :] if place >= 0 else (self._tokenizer.eos_token or "")
        before = self._token_ids(asked)
        both = self._token_ids(asked + answer + behind)
        if both[: len(before)] != before:
            return before, self._token_ids(answer + behind)
        return before, both[len(before) :]

    def gap(self, prompt: Chat, completion: Chat) -> tuple[list[int], list[int]]:
        """The tokens of a gap as servers make them of what is around it, and of its text including its end."""
        asked = [
            id_
            for at, text in enumerate(self._gap_pieces(prompt))
            for id_ in ([self._vocabulary[text]] if at % 2 == 0 else self._token_ids(text))
        ]
        return asked, [*self._token_ids(completion[-1]["content"]), self._vocabulary[self.gap_end]]

    def gap_text(self, prompt: Chat) -> str:
        """A gap as one text with its marks, for trainers that make the tokens themselves."""
        return "".join(self._gap_pieces(prompt))

    @property
    def gap_end(self) -> str:
        """What ends the text of a gap."""
        end: str = END if END in self._vocabulary else self._tokenizer.eos_token
        return end

    def has_mark(self, prompt: Chat, completion: Chat) -> bool:
        """Whether a mark of a gap stands in what is around it or in its text, which a tokenizer would take for one."""
        marks = {*self._gap_pieces(prompt)[::2], self.gap_end}
        return any(mark in chat[-1]["content"] for mark in marks for chat in (prompt, completion))

    def _gap_pieces(self, prompt: Chat) -> list[str]:
        """A mark, a text, and so on, up to the last mark."""
        known = self._vocabulary
        marks = next((marks for marks in MARKS if all(mark in known for mark in marks)), None)
        if marks is None:
            give_up(
                ROW_CANNOT, "the base has no marks for gaps that are known here: it cannot learn to fill them"
            )
        before, _, behind = prompt[-1]["content"].partition(GAP)
        front = [piece for mark, text in FRONT if mark in known for piece in (mark, text)]
        first, second, last = marks
        return [*front, first, before, second, behind, last]

    def _render_chat(self, chat: Chat, *, add_generation_prompt: bool) -> str:
        text: str = self._tokenizer.apply_chat_template(
            chat, tokenize=False, add_generation_prompt=add_generation_prompt, **self._options
        )
        return text

    def _token_ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if it does not exist."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        if path.exists()
        else []
    )


def tokenised(rows: list[dict[str, Any]], rendering: Rendering, job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows as tokens, none of them truncated."""
    found = []
    answers = ("chosen", "rejected") if job["kind"] == "dpo" else ("completion",)
    tokens = 0
    for row in rows:
        render = rendering.gap if row["stage"] == FILL else rendering.halves
        for name in answers:
            before, behind = render(row["prompt"], row[name])
            length = len(before) + len(behind)
            if not behind or length > job["max_length"]:
                give_up(
                    ROW_CANNOT,
                    f"row {row['id']} of train has {length} tokens, of which {len(behind)} are its answer; "
                    f"max_length is {job['max_length']}: it would be truncated",
                )
            if row["stage"] == FILL and rendering.has_mark(row["prompt"], row[name]):
                give_up(ROW_CANNOT, f"row {row['id']} of train has a mark of the base in its own text")
            tokens += length
        found.append({"input_ids": before + behind, "labels": [-100] * len(before) + behind})
    tell("tokenised", what="train", rows=len(found), tokens=tokens)
    return found


def kept(rows: list[dict[str, Any]], rendering: Rendering, job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows in the form that TRL tokenises itself: pairs and labelled answers. Gaps are texts, and end as gaps do."""
    answers = ("chosen", "rejected") if job["kind"] == "dpo" else ("completion",)
    found = []
    for row in rows:
        label = {} if job["kind"] == "dpo" else {"label": row["label"]}
        if row["stage"] == FILL:
            texts = {name: row[name][-1]["content"] + rendering.gap_end for name in answers}
            found.append({"prompt": rendering.gap_text(row["prompt"]), **texts, **label})
        else:
            chats = {name: row[name] for name in ("prompt", *answers)}
            found.append({**chats, **label, "chat_template_kwargs": job["template_options"]})
    return found


def load_base(job: dict[str, Any]) -> Any:
    """The model, from a folder of transformers or from one GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM

    base = Path(job["base"])
    where = {"pretrained_model_name_or_path": str(base)}
    if base.is_file():
        where = {"pretrained_model_name_or_path": str(base.parent), "gguf_file": base.name}
    kind = torch.bfloat16 if job["dtype"] == "bfloat16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=kind, local_files_only=True)
    if base.is_file():
        # It was dequantised while it was loaded; as long as it says otherwise, it cannot be trained or saved.
        for holder, name in ((model, "hf_quantizer"), (model.config, "quantization_config")):
            if hasattr(holder, name):
                delattr(holder, name)
        model.is_quantized = False
    return model


def options(job: dict[str, Any], steps: int) -> dict[str, Any]:
    """The arguments common to all of TRL's trainers."""
    every = max(steps // 10, 1)
    return {
        "output_dir": job["work"],
        "max_length": job["max_length"],
        "per_device_train_batch_size": job["micro_batch"],
        "gradient_accumulation_steps": job["accumulate"],
        "learning_rate": job["learning_rate"],
        "lr_scheduler_type": "cosine",
        "warmup_steps": math.ceil(job["warmup_share"] * steps),
        "max_steps": steps,
        "bf16": job["dtype"] == "bfloat16",
        "use_cpu": job["device"] == "cpu",
        "seed": job["seed"],
        "data_seed": job["seed"],
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 2,
        "report_to": [],
        "disable_tqdm": True,
        "gradient_checkpointing": job["gradient_checkpointing"],
    }


def trainer_of(job: dict[str, Any], rows: Any, model: Any, tokenizer: Any, steps: int) -> Any:
    """TRL's trainer for the kind of rows."""
    import trl
    from peft import LoraConfig
    from transformers import TrainerCallback

    class StepReporter(TrainerCallback):  # type: ignore[misc]
        """Tells each step."""

        def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_more: Any) -> None:
            if logs and "loss" in logs:
                tell("step", step=state.global_step, total=state.max_steps, loss=logs["loss"])

    name = {"sft": "SFT", "dpo": "DPO", "kto": "KTO"}[job["kind"]]
    more = {"packing": False, "shuffle_dataset": True} if job["kind"] == "sft" else {}
    return getattr(trl, f"{name}Trainer")(
        model=model,
        args=getattr(trl, f"{name}Config")(**options(job, steps), **more),
        train_dataset=rows,
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=job["rank"], lora_alpha=job["alpha"], target_modules="all-linear", task_type="CAUSAL_LM"
        ),
        callbacks=[StepReporter()],
    )


def steps_of(job: dict[str, Any], rows: int) -> int:
    """The number of updates in the whole training."""
    if job["max_steps"]:
        return int(job["max_steps"])
    batch: int = job["micro_batch"] * job["accumulate"] * int(os.environ.get("WORLD_SIZE", "1"))
    return max(math.ceil(rows * float(job["epochs"]) / batch), 1)


def main() -> None:
    """Trains as the settings say."""
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if (
        sys.platform == "linux"
    ):  # a training that nobody waits for would be in the way of the one that continues it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # A script's own folder is looked through first, and modules of this package must not stand in for others.
    here = Path(__file__).resolve().parent
    sys.path[:] = [each for each in sys.path if Path(each).resolve() != here]
    try:
        import datasets
        import peft  # noqa: F401
        import torch
        import trl  # noqa: F401
        from transformers import AutoTokenizer
    except ImportError as exc:
        give_up(LIBRARY_MISSING, f"{exc.name or exc} is not installed")
    torch.manual_seed(job["seed"])
    base = Path(job["base"])
    place = {"gguf_file": base.name} if base.is_file() else {}
    tokenizer = AutoTokenizer.from_pretrained(
        str(base.parent if place else base), local_files_only=True, **place
    )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    rendering = Rendering(tokenizer, job["template_options"])
    raw = read_rows(Path(job["rows"]))
    whole = tokenised(raw, rendering, job)
    rows = datasets.Dataset.from_list(whole if job["kind"] == "sft" else kept(raw, rendering, job))
    if any(row["stage"] == FILL for row in raw):
        tokenizer.eos_token = rendering.gap_end  # else TRL puts the end of a chat behind it
    model = load_base(job)
    steps = steps_of(job, len(raw))
    trainer = trainer_of(job, rows, model, tokenizer, steps)
    if trainer.train_dataset.num_rows != len(raw):
        give_up(ROW_CANNOT, f"{len(raw)} rows came in and the trainer kept {trainer.train_dataset.num_rows}")
    begun = time.monotonic()
    done = sorted(Path(job["work"]).glob("checkpoint-*"), key=lambda each: int(each.name.rpartition("-")[2]))
    trainer.train(resume_from_checkpoint=str(done[-1]) if done else None)
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    trainer.save_model(str(Path(job["work"]) / "adapter"))
    tell(
        "done",
        rows=trainer.train_dataset.num_rows,
        steps=trainer.state.global_step,
        resumed_from=done[-1].name if done else "",
        seconds=time.monotonic() - begun,
        first_loss=losses[0] if losses else None,
        last_loss=sum(losses[-tail:]) / tail
        if (tail := min(len(losses), max(len(losses) // 10, 1)))
        else None,
    )


if __name__ == "__main__":
    main()
