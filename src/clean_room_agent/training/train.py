"""`cra train`: trains an adapter on a dataset, with TRL in a separate process, and registers it.

```
<adapters>/<prompt>-v<n>.training/    job.json, the trainer's checkpoints, and adapter/ when it is done
<adapters>/<prompt>-v<n>/             the adapter, with cra.json: what it was trained on and how it went
```

The second folder is the first one's `adapter/`, renamed when it is complete. An interrupted training continues from its
last checkpoint (`resume`), if it is the same job.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from clean_room_agent import proc
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import ADAPTER_REGISTRY, AdapterRow, DatasetRow
from clean_room_agent.errors import CommandError, CraError, UsageError
from clean_room_agent.file_contents import atomic_write, sync_file, sync_folder
from clean_room_agent.llm.transports.lora import digest_of
from clean_room_agent.llm.transports.openai import TEMPLATE_KWARGS
from clean_room_agent.proc import inherited_environment
from clean_room_agent.safe_open import open_named
from clean_room_agent.training.dataset import PREFIXES, Kind
from clean_room_agent.training.train_plan import TrainingPlan
from clean_room_agent.training.trl_process import LIBRARY_MISSING, ROW_CANNOT

SCRIPT = Path(__file__).with_name("trl_process.py")
LEAST_AT_ONCE: Mapping[Kind, int] = {"sft": 1, "dpo": 1, "kto": 2}
"""Rows at a time on one device; TRL's KTO takes its estimate of the divergence from other rows beside each."""
EXTRA_HINT = (
    "install the extra: pip install 'clean-room-agent[train]', or name a Python that has it with --python"
)
Dtype = Literal["float32", "bfloat16"]


class TrainingJob(Struct, frozen=True, kw_only=True):
    """One training, as the trainer process gets it (`job.json`)."""

    base: str
    """A folder of transformers, or a GGUF file."""
    work: str
    kind: Kind
    rows: str
    """The file of rows."""
    template_options: Mapping[str, Any]
    """The arguments with which the base's chat template is rendered."""
    max_length: int
    """Tokens of a row; a longer one is refused."""
    rank: int
    alpha: int
    learning_rate: float
    epochs: float
    max_steps: int
    """0: as many as the epochs make."""
    micro_batch: int
    """Rows at a time on one device."""
    accumulate: int
    """Micro-batches of one update."""
    warmup_share: float
    seed: int
    dtype: Dtype
    device: Literal["auto", "cpu"]
    gradient_checkpointing: bool


class Machine(Struct, frozen=True, kw_only=True):
    """The machine that the training runs on."""

    python: str = sys.executable
    processes: int = 1
    """More than one are started by accelerate."""
    accelerate_config: Path | None = None
    """A file written by `accelerate config`: FSDP, several machines."""
    dtype: Dtype = "float32"
    device: Literal["auto", "cpu"] = "auto"
    micro_batch: int = 1
    gradient_checkpointing: bool = False


class Trained(Struct, frozen=True, kw_only=True):
    """A trained adapter."""

    adapter: AdapterRow
    folder: Path
    rows: int
    tokens: int
    steps: int
    seconds: float
    first_loss: float | None
    last_loss: float | None


def job_for(
    plan: TrainingPlan,
    dataset: Path,
    base: Path,
    work: Path,
    machine: Machine,
    *,
    kind: Kind = "sft",
    max_length: int | None = None,
    max_steps: int = 0,
    seed: int = 0,
) -> TrainingJob:
    """The training of the plan on this machine.

    Raises:
        UsageError: the dataset has no such rows, the base is not there, or the batch cannot be divided or is too
            small for the kind.
    """
    rows = dataset / plan.target / f"{PREFIXES[kind]}train.jsonl"
    if not rows.is_file():
        raise UsageError(f"there is no {rows}", hint="`cra curate-data` or `cra bootstrap` makes datasets")
    if not base.exists():
        raise UsageError(
            f"there is no base model at {base}", hint="a folder that transformers can load, or a GGUF file"
        )
    if machine.micro_batch < LEAST_AT_ONCE[kind]:
        raise UsageError(
            f"--kind {kind} needs {LEAST_AT_ONCE[kind]} rows at a time or more: it compares those of one batch",
            hint=f"--micro-batch {LEAST_AT_ONCE[kind]}",
        )
    at_once = machine.micro_batch * machine.processes
    wanted = plan.hyperparameters
    if wanted.batch_size % at_once:
        raise UsageError(
            f"a batch of {wanted.batch_size} cannot be divided among {machine.processes} processes with "
            f"{machine.micro_batch} rows each",
            hint="choose --micro-batch so that it can",
        )
    return TrainingJob(
        base=str(base.resolve()),
        work=str(work),
        kind=kind,
        rows=str(rows.resolve()),
        template_options=TEMPLATE_KWARGS,
        max_length=max_length or plan.criteria.max_tokens,
        rank=wanted.rank,
        alpha=wanted.alpha,
        learning_rate=wanted.learning_rate,
        epochs=wanted.epochs,
        max_steps=max_steps,
        micro_batch=machine.micro_batch,
        accumulate=wanted.batch_size // at_once,
        warmup_share=wanted.warmup_share,
        seed=seed,
        dtype=machine.dtype,
        device=machine.device,
        gradient_checkpointing=machine.gradient_checkpointing,
    )


def train(
    record: Record,
    dataset: DatasetRow,
    plan: TrainingPlan,
    job: TrainingJob,
    folder: Path,
    machine: Machine,
    *,
    model_tag: str,
    resume: bool,
    progress: Callable[[int, int, float], None],
) -> Trained:
    """Train the adapter, move it to the folder, and register it. `progress` is called with steps done, all steps, and
    the loss.

    Raises:
        UsageError: the folder is taken, another job was interrupted there, a row would be truncated, or a library is
            missing.
        CommandError: the trainer failed.
    """
    work = Path(job.work)
    _prepare_folders(job, folder, work, resume=resume)
    done = _run_trainer(job, work, machine, progress)
    with open_named(Path(job.rows)) as file:
        expected = sum(1 for _ in file)
    if done["rows"] != expected:
        raise CraError(f"{expected} rows came in and {done['rows']} were trained; nothing was kept")
    row = AdapterRow(
        dataset_id=dataset.id,
        stage_name=plan.target,
        base_model=plan.base_model,
        model_tag=model_tag,
        training_loss=done["last_loss"],
        trained_at=record.now(),
        adapter_path=str(folder),
        base_digest=base_digest(Path(job.base)),
    )
    about = {
        "prompt": plan.target,
        "base_model": plan.base_model,
        "base_digest": row.base_digest,
        "model_tag": model_tag,
        "dataset": dataset.dataset_path,
        "rows_digest": digest_of(Path(job.rows)),
        "job": asdict(job),
        "result": done,
    }
    atomic_write(work / "adapter/cra.json", json.dumps(about, indent=2, sort_keys=True) + "\n")
    for path in (work / "adapter").iterdir():
        sync_file(path)
    (work / "adapter").rename(folder)
    sync_folder(folder.parent)
    adapter_id = record.write(ADAPTER_REGISTRY.insert, row)
    shutil.rmtree(work)
    told = ("rows", "tokens", "steps", "seconds", "first_loss", "last_loss")
    return Trained(adapter=replace(row, id=adapter_id), folder=folder, **{name: done[name] for name in told})


def base_digest(base: Path) -> str:
    """SHA-256 of the weights: of the GGUF file, or of all weight files of a folder with their names."""
    if base.is_file():
        return digest_of(base)
    whole = hashlib.sha256()
    for path in sorted(base.glob("*.safetensors")) or sorted(base.glob("*.bin")):
        whole.update(f"{path.name} {digest_of(path)}\n".encode())
    return whole.hexdigest()


def _prepare_folders(job: TrainingJob, folder: Path, work: Path, *, resume: bool) -> None:
    if folder.exists() and not (resume and work.exists()):
        raise UsageError(f"{folder} already exists", hint="name another folder with -o")
    told = json.dumps(asdict(job), indent=2, sort_keys=True) + "\n"
    settings = work / "job.json"
    if work.exists() and not resume:
        raise UsageError(
            f"there is an interrupted training in {work}", hint="continue with --resume, or remove the folder"
        )
    if resume and not settings.exists():
        raise UsageError(f"there is no interrupted training in {work}", hint="begin one without --resume")
    if resume and settings.read_text(encoding="utf-8") != told:
        raise UsageError(
            f"{settings} describes another job", hint="give the same dataset, base and flags as before"
        )
    work.mkdir(parents=True, exist_ok=True)
    atomic_write(settings, told)
    if folder.exists():
        shutil.rmtree(folder)  # renamed, and then the process died before the registry knew it


def _run_trainer(
    job: TrainingJob, work: Path, machine: Machine, progress: Callable[[int, int, float], None]
) -> dict[str, Any]:
    """What the trainer reports at its end, with the number of tokens."""
    command: tuple[str, ...] = (machine.python, str(SCRIPT), str(work / "job.json"))
    if machine.processes > 1 or machine.accelerate_config is not None:
        told = ("--config_file", str(machine.accelerate_config)) if machine.accelerate_config else ()
        launch = ("-m", "accelerate.commands.launch", "--num_processes", str(machine.processes), *told)
        command = (machine.python, *launch, *command[1:])
    env = inherited_environment(without="HF_") | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(work / "cache"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if job.device == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    done: dict[str, Any] = {}
    tokens = 0
    try:
        for line in proc.stream(command, cwd=work, env=env):
            event = json.loads(line[1:]) if line.startswith(b'@{"event"') else {}
            if event.get("event") == "tokenised":
                tokens = event["tokens"]
            elif event.get("event") == "step":
                progress(event["step"], event["total"], event["loss"])
            elif event.get("event") == "done":
                done = event
    except CommandError as exc:
        last = exc.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if exc.returncode == ROW_CANNOT:
            shutil.rmtree(work, ignore_errors=True)
            raise UsageError(
                last, hint="raise --max-length, or lower max_tokens in the plan and curate again"
            ) from exc
        if exc.returncode == LIBRARY_MISSING:
            shutil.rmtree(work, ignore_errors=True)
            raise UsageError(f"cannot train: {last} for {machine.python}", hint=EXTRA_HINT) from exc
        raise CommandError(
            f"the trainer failed: {last[:500]}",
            hint="if it ran out of memory: --micro-batch 1, --max-length; then --resume continues",
            command=exc.command,
            returncode=exc.returncode,
            stdout=exc.stdout,
            stderr=exc.stderr,
        ) from exc
    if not done:
        raise CraError(
            "the trainer ended without a result", hint="--resume continues from its last checkpoint"
        )
    return done | {"tokens": tokens}


def native_bfloat16() -> bool:
    """Whether this machine's processor supports bfloat16 natively; without that it is slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
