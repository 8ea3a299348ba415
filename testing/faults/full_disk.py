"""A disk that is full at a random write: whole runs of `cra` on a file system in memory that has little room left.

bubblewrap mounts it, of a bounded size, for one process alone; a file fills it up to a random rest. A run that meets the
end says so once, nothing acknowledged is lost, and after room was made the run goes on, or a new one succeeds.

    python -m testing.faults.full_disk FOLDER TRIALS SEED

is that process.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import asdict

from clean_room_agent.db.connection import read_record
from clean_room_agent.workspace import Workspace
from testing.faults.acknowledged import acknowledging, count_rows
from testing.faults.figures import Effort, Figure
from testing.record_faults import record_faults
from testing.runs.solving import Project, Script, make_project
from testing.servers.ollama_server import OllamaServer

TRIALS: dict[Effort, int] = {"full": 60, "short": 2}
SEED = 70
SIZE = 64 << 20
PAGE = 4096
ROOT = Path(__file__).parents[2]
SAYS_SO = ("No space left", "disk is full", "free some space")
DOCUMENTED = frozenset({1, 2, 3, 4})


class Outcome(Struct, kw_only=True):
    """What came of the trials."""

    trials: int = 0
    met: int = 0
    """Runs that met the end of the disk."""
    promised: int = 0
    lost: int = 0
    damaged: int = 0
    unclear: int = 0
    stuck: int = 0
    first: dict[str, str] = field(default_factory=dict)

    def found(self, kind: str, count: int, words: str) -> None:
        """`count` more of a kind."""
        if count:
            setattr(self, kind, getattr(self, kind) + count)
            self.first.setdefault(kind, words)


def has_bubblewrap() -> bool:
    """Whether this machine can mount a small file system for one process."""
    if shutil.which("bwrap") is None:
        return False
    tried = subprocess.run((*mounted(Path("/mnt")), "true"), capture_output=True, check=False)
    return tried.returncode == 0


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """What the runs on a full disk lost, damaged or left unsaid."""
    if not has_bubblewrap():
        raise SystemExit("a full disk needs bubblewrap: apt install bubblewrap")
    folder = work / "small"
    folder.mkdir()
    inside = (
        sys.executable,
        "-m",
        "testing.faults.full_disk",
        str(folder),
        str(TRIALS[effort]),
        str(SEED),
    )
    done = subprocess.run(
        (*mounted(folder), *inside), cwd=ROOT, capture_output=True, text=True, check=False, timeout=3000
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = Outcome(**json.loads(done.stdout))
    for kind, words in found.first.items():
        print(f"full disk: {kind}: {words}", file=sys.stderr)
    return (
        Figure(
            name="runs that met a full disk",
            tried=found.trials,
            found=found.met,
            target="more than half",
            met=found.met * 2 > found.trials,
        ),
        _figure("acknowledged rows lost on a full disk", found.promised, found.lost),
        _figure("records that a full disk damaged", found.trials, found.damaged),
        _figure("runs that did not say once and clearly that the disk is full", found.met, found.unclear),
        _figure("runs that did not go on after room was made", found.met, found.stuck),
    )


def _figure(name: str, tried: int, found: int) -> Figure:
    return Figure(name=name, tried=tried, found=found, target="0", met=found == 0)


def mounted(folder: Path) -> tuple[str, ...]:
    return ("bwrap", "--dev-bind", "/", "/", "--size", str(SIZE), "--tmpfs", str(folder), "--die-with-parent")


def try_all(folder: Path, trials: int, seed: int) -> Outcome:
    """The trials, in a folder that is a small file system of its own."""
    rng = random.Random(seed)
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")
    project = make_project(folder)
    outcome = Outcome()
    promised: dict[str, int] = {}

    def note(rows: Mapping[str, int]) -> None:
        promised.update({name: max(count, promised.get(name, 0)) for name, count in rows.items()})

    with acknowledging(note), OllamaServer(Script(project.oracle)) as server:
        project.configure(server.base_url)
        before = _free(folder)
        code, _, err = project.run_here("solve", project.task)
        if code:
            raise SystemExit(f"the run without bounds failed: {err}")
        needed = before - _free(folder)
        for number in range(trials):
            # Opening takes the first part of the room: half of the trials are about that.
            room = rng.randrange(0, needed if number % 2 else needed // 8, PAGE)
            _try_one(outcome, project, folder, room, f"seed {seed}, trial {number}, {room} bytes free")
            _look(outcome, project, promised, f"seed {seed}, trial {number}, {room} bytes free")
    return outcome


def _try_one(outcome: Outcome, project: Project, folder: Path, room: int, where: str) -> None:
    outcome.trials += 1
    known = set(_runs(project))
    fill(folder, room)
    code, _, err = project.run_here("solve", project.task)
    (folder / "filler").unlink()
    if code == 0:
        return
    outcome.met += 1
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    clear = len(said) == 1 and any(words in err for words in SAYS_SO) and "a bug" not in err
    outcome.found("unclear", not (clear and code in DOCUMENTED), f"{where}: exit code {code}: {err[-600:]}")
    begun = {task: status for task, status in _runs(project).items() if task not in known}
    waiting = [task for task, status in begun.items() if status in {"interrupted", "running"}]
    again = ("--resume", waiting[0]) if waiting else (project.task,)
    code, _, err = project.run_here("solve", *again)
    outcome.found("stuck", code != 0, f"{where}: {again[0]}: exit code {code}: {err[-600:]}")


def _look(outcome: Outcome, project: Project, promised: Mapping[str, int], where: str) -> None:
    outcome.promised = sum(promised.values())
    with read_record(project.top) as conn:
        faults, rows = record_faults(conn), count_rows(conn)
    missing = sum(max(0, count - rows[name]) for name, count in promised.items())
    outcome.found("lost", missing, where)
    outcome.found("damaged", bool(faults), f"{where}: {faults[:3]}")


def _runs(project: Project) -> dict[str, str]:
    """Status by task, of all runs; none where there is no record."""
    if not Workspace(repo=project.top).raw.exists():
        return {}
    return {
        run["task_id"]: run["status"]
        for run in json.loads(project.run_here("runs", "--limit", "999", "--json")[1])
    }


def fill(folder: Path, room: int) -> None:
    """So many bytes are free."""
    with (folder / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, max(_free(folder) - room, PAGE))


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


if __name__ == "__main__":
    print(json.dumps(asdict(try_all(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))))
