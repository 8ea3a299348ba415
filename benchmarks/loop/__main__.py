"""The whole loop on a real, small model: histories to pairs, to an adapter, to the gate, to a server that answers with it.

    python -m benchmarks.loop WORK MIRRORS [--prompt task_analysis] [--kind pairs|shuffled] [--rows 64] [--write]

SmolLM2-135M-Instruct and llama-server come from `testing/servers/packaged_models.py`; training needs the extra `train` here. MIRRORS holds bare repositories as `OWNER+NAME/repo`. An
adapter is trained on the pairs, or, as the control that the gate must refuse, on the same pairs with their answers shuffled.
It is compared with the base on other repositories' newer commits, by the task's metric, greedily, on the server that would
serve it. That of the pairs is deployed then (with --force and that reason, where it was refused), answers a `cra retrieve`,
and is retired. Every step is a `cra` command whose end is kept in the work folder: begun again, it goes on there. Each prompt
and kind has a folder of its own below WORK, so that they can run beside one another once the first has mined for all; the
page holds what has come to its end.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct
from testing.servers.llama_server import TAG, RealServer, running
from testing.servers.packaged_models import WEAK, fetch_model, fetch_server, models_folder

from benchmarks.loop.data import TEST, TRAIN, UNTIL, loop_rows, register, shuffled
from benchmarks.loop.stages import KINDS, Settings, Stages, finding_of, folder_of, page_of
from benchmarks.real.tasks import EXCLUDED
from benchmarks.results import write_section
from clean_room_agent.app.clock import utc_now
from clean_room_agent.db.raw.record import Record
from clean_room_agent.training.train_plan import DataCriteria, Hyperparameters, TrainingPlan
from clean_room_agent.workspace import trust

RESULTS = Path(__file__).with_name("RESULTS.md")

WINDOW = 4096
RESERVED = 1024
THREADS = 1
TASK = "Cookies of a redirect are lost when the client follows it"
TITLE = "The loop on a real model"


class Loop(Struct, frozen=True, kw_only=True):
    """The work folder of one adapter and what is done in it."""

    top: Path
    """Where what was mined stands, for all of them."""
    mirrors: Path
    settings: Settings
    mining: Stages
    stages: Stages
    program: str
    weights: str

    @property
    def work(self) -> Path:
        """The adapter's own folder."""
        return folder_of(self.top, self.settings.prompt, self.settings.kind)

    @property
    def project(self) -> Path:
        """The repository whose record knows the adapter, its first."""
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
        trust(self.project / ".clean_room")

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
        manifest, target = self.top / f"{name}.toml", self.top / name
        manifest.write_text("\n".join(entries), encoding="utf-8")
        self.mining.cra(
            f"bootstrap {name}", "bootstrap", "--manifest", str(manifest), "--max-commits", str(commits),
            "--exclude", str(EXCLUDED), "--unit-commits", "20", "-o", str(target), "--work", str(self.top / "mining"), "--json",
            cwd=self.project,
        )  # fmt: skip
        return target

    def dataset(self, mined: Path, held_out: Path) -> int:
        """Its number."""
        kept = self.work / "dataset.json"
        if kept.exists():
            return int(kept.read_text(encoding="utf-8"))
        given = self.settings
        plan = TrainingPlan(
            target=given.prompt,
            base_model=TAG,
            source="synthetic",
            criteria=DataCriteria(max_tokens=2048),
            hyperparameters=Hyperparameters(
                rank=8, alpha=16, learning_rate=given.rate, epochs=given.epochs, batch_size=given.batch
            ),
        )
        rows = loop_rows(
            mined,
            held_out,
            plan,
            rows=given.rows,
            test_rows=given.test_rows,
            validation_rows=given.validation_rows,
        )
        with Record.open(self.project, clock=utc_now) as record:
            number = register(
                record, self.work / "data", plan, rows if given.kind == "pairs" else shuffled(rows)
            )
        kept.write_text(str(number), encoding="utf-8")
        return number

    def train(self, number: int) -> Path:
        """The adapter's folder; a training that was interrupted goes on."""
        folder = self.project / ".clean_room" / "adapters" / f"{self.settings.prompt}-v1"
        begun = folder.with_name(f"{folder.name}.training").exists()
        self.stages.cra(
            "train", "train", str(number), "--base", self.weights, "--cpu",
            "--micro-batch", str(self.settings.micro_batch), "--json", *(("--resume",) if begun else ()),
            cwd=self.project,
        )  # fmt: skip
        return folder

    def judge(self, folder: Path) -> None:
        """The adapter is converted and proven (`evaluate` ends there: the server has not loaded it), then compared with the
        base; that of the pairs answers, then is retired.
        """
        log, gguf = self.work / "server.log", folder / f"{folder.name}.gguf"
        with self._serving(log) as server:
            self.begin(server.base_url)
            stage = self.stages.cra("convert", "adapters", "evaluate", "1", cwd=self.project, accept=(2,))
            if not gguf.exists():
                raise SystemExit(f"{stage.name}:\n{stage.said}")
        with self._serving(log, "--lora", str(gguf), "--lora-init-without-apply") as server:
            self.begin(server.base_url)
            self.stages.cra(
                "evaluate", "adapters", "evaluate", "1", "--json", cwd=self.project, accept=(0, 1)
            )
            if self.settings.kind != "pairs":
                return
            passed = finding_of(self.stages)["status"] == "passed"
            forced = (
                () if passed else ("--force", "the gate refused it; shown as the benchmark's last stages")
            )
            self.stages.cra("deploy", "adapters", "deploy", "1", *forced, "--json", cwd=self.project)
            self.stages.cra("retrieve", "retrieve", "--json", TASK, cwd=self.project, accept=(0, 1))
            self.stages.cra("retire", "adapters", "retire", "1", "--json", cwd=self.project)

    def _serving(self, log: Path, *more: str) -> AbstractContextManager[RealServer]:
        return running(log, *more, program=self.program, model=self.weights, window=WINDOW, threads=THREADS)


def main() -> None:
    """Prints the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--commits", type=int, default=100, help="of each repository that is trained on")
    parser.add_argument("--test-commits", type=int, default=130, help="of each that is held out")
    parser.add_argument("--prompt", default="scope_judgment")
    parser.add_argument("--kind", choices=KINDS, default="pairs")
    parser.add_argument("--rows", type=int, default=512, help="trained on")
    parser.add_argument("--test-rows", type=int, default=210)
    parser.add_argument(
        "--validation-rows", type=int, default=120, help="where verdicts have their thresholds set"
    )
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument(
        "--threads", type=int, default=1, help="of the trainer; on a busy machine two are slower than one"
    )
    parser.add_argument("--write", action="store_true", help="into the results")
    given = parser.parse_args()
    top = given.work.absolute()
    program, weights = str(fetch_server(models_folder())), str(fetch_model(WEAK, models_folder()))
    settings = Settings(**{name: getattr(given, name) for name in Settings.__struct_fields__})
    shared = {
        "XDG_CACHE_HOME": str(top / "cache"), "COLUMNS": "200", "OMP_NUM_THREADS": str(settings.threads)
    }  # fmt: skip
    loop = Loop(
        top=top,
        mirrors=given.mirrors,
        settings=settings,
        mining=Stages(top / "stages", shared),
        stages=Stages(folder_of(top, settings.prompt, settings.kind) / "stages", shared),
        program=program,
        weights=weights,
    )
    loop.begin("http://127.0.0.1:9")
    mined = loop.mine("train", TRAIN, UNTIL, given.commits)
    folder = loop.train(loop.dataset(mined, loop.mine("test", TEST, "", given.test_commits)))
    loop.judge(folder)
    settings.keep(loop.work)
    page = page_of(top)
    sys.stdout.write(page + "\n")
    if given.write:
        write_section(RESULTS, TITLE, page)


if __name__ == "__main__":
    main()
