"""The page of the loop: what each prompt's adapters came to, and what it cost."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.loop.data import TEST, TRAIN, UNTIL
from benchmarks.loop.stages import Stage, Stages
from benchmarks.report import table

KINDS = ("pairs", "shuffled")
"""The adapters, in the order of their numbers."""
SETTINGS = "settings.json"
"""Stands in a prompt's folder when its run has come to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one prompt's adapters were trained and tested."""

    prompt: str
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


def finding_of(stages: Stages, kind: str) -> dict[str, Any]:
    """What the gate found of an adapter."""
    found: dict[str, Any] = json.loads(stages.known(f"evaluate {kind}").out)["finding"]
    return found


def page_of(top: Path) -> str:
    """The results as Markdown: of each prompt whose run came to its end."""
    lines = [_about()]
    mining = Stages(top / "stages", {})
    for path in sorted(top.glob(f"*/{SETTINGS}"), reverse=True):
        lines += _prompt(path.parent, Settings(**json.loads(path.read_text(encoding="utf-8"))))
    lines += ["### Mining", _spent([mining.known(f"bootstrap {name}") for name in ("train", "test")])]
    lines.append(
        f"Load: processes that wanted one of {os.cpu_count()} processors, mean of a stage's last five minutes; other programs "
        "ran beside, before ours. Processor seconds of `evaluate` are without the server's."
    )
    return "\n\n".join(lines)


def _about() -> str:
    return (
        f"SmolLM2-135M-Instruct (Q4_1) on llama-server; trained on commits before {UNTIL} of {', '.join(TRAIN)}, tested on "
        f"newer ones of {', '.join(TEST)}. `shuffled` is the control: the same rows, their answers dealt out anew."
    )


def _prompt(folder: Path, settings: Settings) -> list[str]:
    """One prompt's part."""
    stages = Stages(folder / "stages", {})
    adapters = [
        folder / f"project/.clean_room/adapters/{settings.prompt}-v{place}"
        for place in range(1, len(KINDS) + 1)
    ]
    proofs = [_read(each / "conversion.json") for each in adapters]
    trained = [_read(each / "cra.json")["result"] for each in adapters]
    names = [f"{what} {kind}" for what in ("train", "convert", "evaluate") for kind in KINDS]
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
    return [
        f"### `{settings.prompt}`",
        table(head, [(kind, *_found(finding_of(stages, kind))) for kind in KINDS]),
        f"Rank 8, rate {settings.rate:g}, batch {settings.batch}, {settings.epochs:g} epochs. Training: "
        + "; ".join(
            f"{kind} {each['rows']} rows, {each['tokens']:,} tokens, {each['steps']} steps, "
            f"{each['tokens'] * settings.epochs / each['seconds']:.0f} tokens a second on {settings.threads} "
            f"thread{'s' * (settings.threads > 1)}, loss {each['first_loss']:.3f} -> {each['last_loss']:.3f}"
            for kind, each in zip(KINDS, trained, strict=True)
        )
        + ".",
        "Largest difference of a logit between the converted adapter and PEFT's, and what the adapter changes: "
        + "; ".join(
            f"{kind} {proof['difference']:.4f} of {proof['effect']:.2f}"
            for kind, proof in zip(KINDS, proofs, strict=True)
        )
        + ".",
        _spent([stages.known(name) for name in (*names, "deploy", "retrieve", "retire")]),
    ]


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


def _spent(stages: list[Stage]) -> str:
    rows = [
        (
            each.name,
            f"{each.seconds:,.0f}",
            f"{each.processor_seconds:,.0f}",
            f"{each.peak_mb:,.0f}",
            f"{each.load:.1f}",
        )
        for each in stages
    ]
    return table(("stage", "s", "processor s", "peak MB of the largest process", "load"), rows)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
