"""What `cra` itself costs: its start, the way to the first model request, and each model call.

    python -m benchmarks.overhead --mirror FOLDER_OF_A_LARGE_REPOSITORY --work FOLDER

from the repository's root. The model side is the stand-in server, which answers at once; the tests are a script that
prints a result. `cra` runs as a process of its own, as a user starts it.
"""

import argparse
import ast
import json
import os
import resource
import shlex
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from testing.oracle.oracle import Oracle
from testing.servers.timed_server import TimedServer

from benchmarks.results import table, write_section
from clean_room_agent.app.config_values import write_config
from clean_room_agent.app.demo import load_sample, make_repository
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace

RESULTS = Path(__file__).with_name("RESULTS.md")

HELP_TARGET_MS = 150
FIRST_REQUEST_TARGET_S = 2.0
CALL_TARGET_MS = 20
TESTS = """\
import sys
sys.stderr.write("test_all (tests.All.test_all) ... ok\\n\\n" + "-" * 70 + "\\nRan 1 test in 0.001s\\n\\nOK\\n")
"""
LEAST_BYTES, MOST_BYTES = 2_000, 8_000
"""Sizes of the files that the task of the large repository changes."""


class Place(Struct, frozen=True, kw_only=True):
    """A repository with a task and the right answer to it."""

    name: str
    top: Path
    task: str
    gold: tuple[GoldFile, ...]


class Timed(Struct, frozen=True, kw_only=True):
    """One run, in seconds."""

    first_request: float
    """From Enter to the arrival of the first request, the baseline's tests taken off."""
    first_question: float
    """The same to the first request that reached the model."""
    calls: int
    per_call: float
    """What is neither server nor tests, divided by the calls."""
    after_first: float
    """The same from the first request on."""
    processor: float
    """Processor seconds of the whole run with git and the tests, which a busy machine stretches less than the clock."""


class StepOracle(Oracle):
    """Plans one step for each file, so that a run has several."""

    def plan_steps(self, prompt: str) -> str:
        """As many steps as files."""
        del prompt
        steps = [
            {
                "description": f"Change {path} as the task says.",
                "files": [{"path": path, "role": "modify"}],
                "id": f"s{number}",
                "needs": [],
                "symbols": [],
            }
            for number, path in enumerate(sorted(self.files), start=1)
        ]
        return json.dumps({"analysis": "a file a step", "steps": steps, "summary": "change the files"})


def main() -> None:
    """Measure, print, write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mirror", type=Path, required=True, help="a large repository, to be cloned")
    parser.add_argument("--name", default="sympy", help="what to call it in the table")
    parser.add_argument("--work", type=Path, required=True, help="a folder for clones; kept between runs")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tests = work / "tests_that_pass.py"
    tests.write_text(TESTS, encoding="utf-8")
    command = shlex.join([sys.executable, str(tests)])
    small = sample_place(work)
    large = large_place(options.mirror, work, options.name)
    run_cra(large.top, "index")
    start = sorted(time_help(work) for _ in range(20))
    runs = {place.name: [time_solve(place, command) for _ in range(options.runs)] for place in (small, large)}
    body = render(start, runs, time_commit(work))
    print(body)
    if not options.dry_run:
        write_section(RESULTS, "overhead", body)


CRA = (sys.executable, "-m", "clean_room_agent")


def run_cra(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ended well, run in `top`.

    Raises:
        SystemExit: it did not end well.
    """
    done = subprocess.run(
        [*CRA, *arguments],
        cwd=top,
        capture_output=True,
        text=True,
        check=False,
        env=environment(top.parent),
    )
    if done.returncode:
        sys.exit(f"{top.name}: cra {arguments[0]} ended with {done.returncode}\n{done.stderr}{done.stdout}")
    return done


def environment(work: Path) -> dict[str, str]:
    """This process's, with compiled modules kept in `work`: a user's are compiled once, too."""
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": str(work / "compiled")}


def time_help(work: Path) -> float:
    """Seconds of one `cra --help`."""
    program = Path(sys.executable).with_name("cra")
    env = environment(work)
    began = time.monotonic()
    subprocess.run([program, "--help"], check=True, capture_output=True, env=env)
    return time.monotonic() - began


def time_solve(place: Place, test_command: str) -> Timed:
    """One whole `cra solve` in `place`, whose branch is thrown away afterwards."""
    events = place.top.parent / "events.jsonl"
    with TimedServer(StepOracle(place.gold)) as server:
        configure(place.top, server.base_url, test_command)
        spent_before = processor_seconds()
        began = time.monotonic()
        done = run_cra(place.top, "solve", place.task, "--json", "--events", str(events))
        ended = time.monotonic()
        spent = processor_seconds() - spent_before
    task_id = json.loads(done.stdout)["task_id"]
    run_cra(place.top, "discard", task_id)
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    runs = [line for line in lines if line["event"] == "TestsFinished"]
    all_tests = sum(line["seconds"] for line in runs)
    baseline = next(line["seconds"] for line in runs if line["what"] == "baseline")
    came = min(visit.came for visit in server.visits)
    asked = min(visit.came for visit in server.visits if visit.answered)
    calls = sum(visit.answered for visit in server.visits)
    own = ended - began - server.busy() - all_tests
    return Timed(
        first_request=came - began - baseline,
        first_question=asked - began - baseline,
        calls=calls,
        per_call=own / calls,
        after_first=(ended - asked - server.busy() - (all_tests - baseline)) / calls,
        processor=spent,
    )


def processor_seconds() -> float:
    """What the processes that ended so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def configure(top: Path, base_url: str, test_command: str) -> None:
    """A whole configuration for the stand-in server."""
    values: dict[str, dict[str, Any]] = {
        "models": {"base_url": base_url, "coding": "coder:3b", "reasoning": "thinker:4b"},
        "budget": {"context_window": 16_384, "reserved_tokens": 4_096},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2, "route": "planned"},
        "testing": {"test_command": test_command},
        "sandbox": {"mode": "none"},
    }
    write_config(Workspace(repo=top), values)


def sample_place(work: Path) -> Place:
    """The project of `cra demo`, made where it is missing."""
    sample = load_sample()
    top = work / sample.name
    if not top.exists():
        make_repository(sample, work)
    return place_of(top, "demo")


def large_place(mirror: Path, work: Path, name: str) -> Place:
    """A clone of the large repository, made where it is missing."""
    top = work / name
    if not top.exists():
        subprocess.run(["git", "clone", "-q", str(mirror.resolve()), str(top)], check=True)
    return place_of(top, name)


def place_of(top: Path, name: str) -> Place:
    """A task that changes two Python files: the first two, by path, of a usual size, or just the first two."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=top, capture_output=True, text=True, check=True
    )
    paths = [path for path in sorted(listed.stdout.split("\0")) if path and "test" not in path]
    written = [path for path in paths if "def " in (top / path).read_text(encoding="utf-8")]
    usual = [path for path in written if LEAST_BYTES <= (top / path).stat().st_size <= MOST_BYTES]
    chosen = (usual if len(usual) > 1 else written)[:2]
    gold = []
    for path in chosen:
        before = (top / path).read_text(encoding="utf-8")
        gold.append(GoldFile(path=path, before=before, after=with_comment(before)))
    return Place(
        name=name,
        top=top,
        task=f"Say in the first function of {' and of '.join(chosen)} that it was read",
        gold=tuple(gold),
    )


def with_comment(text: str) -> str:
    """The text of a Python file with a comment before the last statement of its first function."""
    function = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    last = function.body[-1]
    lines = text.split("\n")
    lines.insert(last.lineno - 1, " " * last.col_offset + "# Read and found right.")
    return "\n".join(lines)


def time_commit(work: Path, count: int = 100) -> float:
    """Median seconds of one synced SQLite commit of a row of a usual call's size."""
    path = work / "commit.sqlite"
    path.unlink(missing_ok=True)
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = FULL")
    conn.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, text TEXT)")
    text = "x" * 8_000
    durations = []
    for _ in range(count):
        began = time.monotonic()
        conn.execute("INSERT INTO calls (text) VALUES (?)", (text,))
        durations.append(time.monotonic() - began)
    conn.close()
    path.unlink()
    return statistics.median(durations)


def render(start: list[float], runs: dict[str, list[Timed]], commit: float) -> str:
    """The section."""
    rows = [
        ("`cra --help`, median of 20", f"{statistics.median(start) * 1000:.0f} ms", f"{HELP_TARGET_MS} ms")
    ]
    for name, timed in runs.items():
        target = f"{FIRST_REQUEST_TARGET_S:g} s"
        for what, value in (
            ("first request (the window's probe)", lambda run: run.first_request),
            ("first question to a model", lambda run: run.first_question),
        ):
            rows.append(
                (f"{name}: Enter to the {what}, tests not counted", _spread(timed, value, 1, "s"), target)
            )
    rows.append(("a synced SQLite commit on this disk, 8 KB", f"{commit * 1000:.1f} ms", ""))
    for name, timed in runs.items():
        calls = timed[0].calls
        rows.append(
            (
                f"{name}: a call's share of a run of {calls} calls, server and tests taken off",
                _spread(timed, lambda run: run.per_call, 1000, "ms"),
                "",
            )
        )
        rows.append(
            (
                f"{name}: the same, from the first question on",
                _spread(timed, lambda run: run.after_first, 1000, "ms"),
                f"commit + {CALL_TARGET_MS} ms",
            )
        )
    for name, timed in runs.items():
        what = f"{name}: processor time of the whole run, git and tests in it"
        rows.append((what, _spread(timed, lambda run: run.processor, 1, "s"), ""))
    load = f"Load of the machine at the end, over {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}."
    said = table(("measured", "median (least)", "target"), rows)
    return f"{said}\n\n{load}"


def _spread(timed: list[Timed], value: Callable[[Timed], float], scale: float, unit: str) -> str:
    values = [value(run) * scale for run in timed]
    digits = 2 if unit == "s" else 1
    return f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f})"


if __name__ == "__main__":
    main()
