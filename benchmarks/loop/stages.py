"""The stages of the loop and their page: what each prompt's adapters came to, and what it cost.

A stage is a command, timed with the memory of its largest process, and remembered: begun again, what is done stays.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.loop.data import TEST, TRAIN, UNTIL
from benchmarks.results import table

KINDS = ("pairs", "shuffled")
"""What adapters are trained on."""
SETTINGS = "settings.json"
"""Stands in an adapter's folder when its run has come to the end."""


class Stage(Struct, frozen=True, kw_only=True):
    """A command that ended."""

    name: str
    code: int
    seconds: float
    processor_seconds: float
    peak_mb: float
    load: float
    """Processes that wanted a processor, mean of the last 5 minutes of the stage."""
    out: str
    said: str
    """On standard error, its end."""


class Stages:
    """The stages of one work folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """`environment` is added to this process's."""
        self._folder = folder
        self.environment = {**os.environ, **environment}
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the stage has ended."""
        return (self._folder / f"{name}.json").exists()

    def known(self, name: str) -> Stage:
        """The stage, of an earlier run."""
        return Stage(**json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8")))

    def cra(self, name: str, *command: str, cwd: Path, accept: tuple[int, ...] = (0,)) -> Stage:
        """The stage, from an earlier run or run now.

        Raises:
            SystemExit: it ended with another code.
        """
        kept = self._folder / f"{name}.json"
        if kept.exists():
            return self.known(name)
        stage = self._run(name, command, cwd)
        if stage.code not in accept:
            raise SystemExit(f"{name} ended with {stage.code}:\n{stage.out}\n{stage.said}")
        kept.write_text(json.dumps(asdict(stage), indent=1), encoding="utf-8")
        return stage

    def _run(self, name: str, command: tuple[str, ...], cwd: Path) -> Stage:
        out, said = self._folder / f"{name}.out", self._folder / f"{name}.err"
        begun = time.monotonic()
        with out.open("wb") as answers, said.open("wb") as talk:
            process = subprocess.Popen(
                (sys.executable, "-m", "clean_room_agent", *command),
                cwd=cwd,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=answers,
                stderr=talk,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stage = Stage(
            name=name,
            code=process.returncode,
            seconds=time.monotonic() - begun,
            processor_seconds=usage.ru_utime + usage.ru_stime,
            peak_mb=usage.ru_maxrss / 1024,
            load=os.getloadavg()[1],
            out=out.read_text(encoding="utf-8"),
            said=said.read_text(encoding="utf-8")[-2000:],
        )
        print(
            f"{name:<28}{stage.code:>4}{stage.seconds:>9.1f} s{stage.processor_seconds:>9.1f} cpu s{stage.peak_mb:>8.0f} MB",
            flush=True,
        )
        return stage


class Settings(Struct, frozen=True, kw_only=True):
    """How one adapter was trained and tested."""

    prompt: str
    kind: str
    rows: int
    test_rows: int
    validation_rows: int
    epochs: float
    batch: int
    micro_batch: int
    rate: float
    threads: int

    def keep(self, folder: Path) -> None:
        """The run has come to its end with these."""
        (folder / SETTINGS).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def folder_of(top: Path, prompt: str, kind: str) -> Path:
    """Where all of one adapter stands."""
    return top / prompt / kind


def finding_of(stages: Stages) -> dict[str, Any]:
    """What the gate found of the adapter."""
    found: dict[str, Any] = json.loads(stages.known("evaluate").out)["finding"]
    return found


def page_of(top: Path) -> str:
    """The results as Markdown: of each adapter whose run came to its end."""
    about = (
        f"SmolLM2-135M-Instruct (Q4_1) on llama-server; trained on commits before {UNTIL} of {', '.join(TRAIN)}, tested on "
        f"newer ones of {', '.join(TEST)}. `shuffled` is the control: the same rows, their answers dealt out anew."
    )
    lines = [about]
    mining = Stages(top / "stages", {})
    for prompt in sorted({path.parent.parent.name for path in top.glob(f"*/*/{SETTINGS}")}, reverse=True):
        done = [kind for kind in KINDS if (folder_of(top, prompt, kind) / SETTINGS).exists()]
        lines += _prompt(prompt, {kind: folder_of(top, prompt, kind) for kind in done})
    lines += ["### Mining", _spent([("", mining.known(f"bootstrap {name}")) for name in ("train", "test")])]
    lines.append(
        f"Load: processes that wanted one of {os.cpu_count()} processors, mean of a stage's last five minutes; other programs "
        "ran beside, before ours. Processor seconds of `evaluate` are without the server's."
    )
    return "\n\n".join(lines)


def _prompt(prompt: str, folders: Mapping[str, Path]) -> list[str]:
    """One prompt's part; `folders`: of its adapters, by kind."""
    stages = {kind: Stages(folder / "stages", {}) for kind, folder in folders.items()}
    head = (
        "trained on",
        "gate",
        "examples",
        "AUC",
        "metric",
        "gain, 95 %",
        "better / worse",
        "p",
        "does not hold",
    )
    lines = [
        f"### `{prompt}`",
        table(head, [(kind, *_found(finding_of(each))) for kind, each in stages.items()]),
    ]
    for kind, folder in folders.items():
        settings = Settings(**_read(folder / SETTINGS))
        adapter = folder / f"project/.clean_room/adapters/{prompt}-v1"
        trained, proof = _read(adapter / "cra.json")["result"], _read(adapter / "conversion.json")
        lines.append(
            f"`{kind}`: {trained['rows']} rows, {trained['tokens']:,} tokens, {trained['steps']} steps of {settings.batch}, rank 8, "
            f"rate {settings.rate:g}; {trained['tokens'] * settings.epochs / trained['seconds']:.0f} tokens a second on "
            f"{settings.threads} thread{'s' * (settings.threads > 1)}, loss {trained['first_loss']:.3f} -> "
            f"{trained['last_loss']:.3f}. Converted, its logits differ from PEFT's by at most {proof['difference']:.4f}, where "
            f"the adapter changes them by up to {proof['effect']:.2f}."
        )
    names = ("train", "convert", "evaluate", "deploy", "retrieve", "retire")
    spent = [(kind, each.known(name)) for name in names for kind, each in stages.items() if each.has(name)]
    return [*lines, _spent(spent)]


def _found(finding: Mapping[str, Any]) -> tuple[object, ...]:
    gain, verdicts = finding["gain"], finding["verdicts"]
    told = (
        (f"{verdicts['base_auc']:.3f} -> {verdicts['candidate_auc']:.3f}",
         f"{verdicts['base_balanced']:.3f} -> {verdicts['candidate_balanced']:.3f}")
        if verdicts
        else ("", f"{finding['base_mean']:.3f} -> {finding['candidate_mean']:.3f}")
    )  # fmt: skip
    better = [flip["better"] for flip in finding["flips"]]
    return (
        finding["status"], finding["examples"], *told,
        f"{gain[0]:+.3f} ({gain[1]:+.3f} to {gain[2]:+.3f})",
        f"{sum(better)} / {len(better) - sum(better)}", f"{finding['p']:.4f}",
        "; ".join(each["name"] for each in finding["checks"] if not each["holds"]),
    )  # fmt: skip


def _spent(stages: Sequence[tuple[str, Stage]]) -> str:
    rows = [
        (f"{each.name} {kind}".strip(), f"{each.seconds:,.0f}", f"{each.processor_seconds:,.0f}", f"{each.peak_mb:,.0f}",
         f"{each.load:.1f}")
        for kind, each in stages
    ]  # fmt: skip
    return table(("stage", "s", "processor s", "peak MB of the largest process", "load"), rows)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
