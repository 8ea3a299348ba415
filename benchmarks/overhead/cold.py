"""How long a user waits for the first edit prompt, in a repository without an index and in one with it.

    python -m benchmarks.overhead.cold --mirror FOLDER --work FOLDER [--tests 8] [--load 0] [--rounds 3] [--before CHECKOUT]

from the repository's root. The tests are a script that computes for so many seconds on one processor, as a suite does, and
then prints a result; the model is the stand-in server, which takes `--load` seconds to load a model and then answers at once.
With `--before`, another checkout of the program is measured in turn with this one.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from testing.oracle.oracle import Oracle
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from benchmarks.overhead.__main__ import RESULTS, Place, StepOracle, configure, large_place
from benchmarks.results import table, write_section
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.workspace import Workspace

TITLE = "overhead: Enter to the first edit prompt"
TESTS = """\
import sys, time
end = time.process_time() + {seconds}
while time.process_time() < end:
    pass
sys.stderr.write("test_all (tests.All.test_all) ... ok\\n\\n" + "-" * 70 + "\\nRan 1 test in 0.001s\\n\\nOK\\n")
"""


class Waited(Struct, frozen=True, kw_only=True):
    """Seconds from Enter to the first request of its kind."""

    question: float
    edit: float


class Clock:
    """The oracle, which notes when it was first asked, and when for edits."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.asked: dict[str, float] = {}

    def __call__(self, call: ChatCall) -> Answer | str:
        """The oracle's answer."""
        now = time.monotonic()
        self.asked.setdefault("question", now)
        if call.title == IMPLEMENT.title:
            self.asked.setdefault("edit", now)
        return self._oracle(call)


def wait_for_edit(place: Place, program: Path, tests: str, *, cold: bool, load: float) -> Waited:
    """One whole `cra solve` of the checkout `program`.

    Raises:
        SystemExit: it did not end well.
    """
    clock = Clock(StepOracle(place.gold))
    if cold:
        for path in Workspace(repo=place.top).folder.glob("curated.sqlite*"):
            path.unlink()
    env = os.environ | {
        "PYTHONPATH": str(program / "src"),
        "PYTHONPYCACHEPREFIX": str(place.top.parent / "compiled"),
    }
    with OllamaServer(clock, load_seconds=load) as server:
        configure(place.top, server.base_url, tests)
        began = time.monotonic()
        command = (sys.executable, "-m", "clean_room_agent", "solve", place.task)
        done = subprocess.run(command, cwd=place.top, capture_output=True, text=True, check=False, env=env)
    if done.returncode or "edit" not in clock.asked:
        sys.exit(f"cra of {program} ended with {done.returncode}\n{done.stderr}")
    return Waited(
        question=clock.asked["question"] - began,
        edit=clock.asked["edit"] - began,
    )


def main() -> None:
    """Measure, print, write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mirror", type=Path, required=True, help="a large repository, to be cloned")
    parser.add_argument("--name", default="sympy", help="what to call it in the table")
    parser.add_argument("--work", type=Path, required=True, help="a folder for clones; kept between runs")
    parser.add_argument("--tests", type=float, default=8.0, help="processor seconds of the tests")
    parser.add_argument(
        "--load", type=float, default=0.0, help="seconds that the server takes to load a model"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout, to be measured in turn with this one")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    script = work / "tests_that_compute.py"
    script.write_text(TESTS.format(seconds=options.tests), encoding="utf-8")
    tests = shlex.join([sys.executable, str(script)])
    programs = {"now": Path.cwd()} | ({"before": options.before.resolve()} if options.before else {})
    # A clone for each build: a newer one may have migrated what an older one cannot read.
    places = {name: large_place(options.mirror, work / name, options.name) for name in programs}
    for name, program in programs.items():
        wait_for_edit(places[name], program, tests, cold=False, load=0.0)
    rows = []
    for cold in (True, False):
        found: dict[str, list[Waited]] = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, program in programs.items():
                found[name].append(wait_for_edit(places[name], program, tests, cold=cold, load=options.load))
        rows += [
            (
                f"{options.name}, {'no index yet' if cold else 'nothing changed'}, {name}",
                _spread(each.question for each in waits),
                _spread(each.edit for each in waits),
            )
            for name, waits in reversed(found.items())
        ]
    said = (
        f"Seconds from Enter, medians (least) of {options.rounds} rounds; the tests before compute for {options.tests:g} seconds, "
        f"and the server takes {options.load:g} to load a model. "
        f"Load of the machine at the end, over {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}."
    )
    body = f"{said}\n\n{table(('repository', 'first question', 'first edit prompt'), rows)}"
    print(body)
    if not options.dry_run:
        write_section(RESULTS, TITLE, body)


def _spread(seconds: Iterable[float]) -> str:
    found = sorted(seconds)
    return f"{statistics.median(found):.1f} ({found[0]:.1f})"


if __name__ == "__main__":
    main()
