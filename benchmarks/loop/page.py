"""The page of the loop: what each prompt's adapters came to, and what it cost."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.loop.data import TEST, TRAIN, UNTIL
from benchmarks.loop.stages import Stage, Stages
from benchmarks.results import table

KINDS = ("pairs", "shuffled")
"""What adapters are trained on."""
SETTINGS = "settings.json"
"""Stands in an adapter's folder when its run has come to the end."""


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
