"""A real, weak model in the chair: what it answers, prompt by prompt, and how each command ends.

    python -m benchmarks.weak WORK [--cra PROGRAM] [--tasks N] [--write NAME]

SmolLM2 with 135 million parameters, on a real llama-server (`testing/servers/packaged_models.py`). For each task (`errands.py`: a small
project with one fault in a function that the task names) a new repository is made, and `init`, `check`, `retrieve`,
`plan` and `solve` are run in it as a user would; `enrich` once. No such model solves anything: what counts is that each
command ends soon, after having tried what it is for, and says truly why. `--cra` measures another build. `--write` puts
the tables into the results, as the column NAME.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from testing.servers.llama_server import RealServer
from testing.servers.packaged_models import WEAK, models_folder, serving

from benchmarks.results import table, write_section
from benchmarks.weak.errands import ERRANDS, Errand, plant
from benchmarks.weak.recorded import Answer, answers_of, attempts_of, kinds, median_seconds, share

RESULTS = Path(__file__).with_name("RESULTS.md")

WINDOW = 8192
RESERVED = 2048
THREADS = 1
"""Of the server: more wait for each other in a loop, and stand still where the cores are busy."""
TOO_LONG = 3600
"""Seconds after which a command is given up."""
TITLE = "A weak model in the chair"
KIND_HEAD = (
    "prompt",
    "calls",
    "cut off",
    "closed",
    "parroted",
    "unreadable",
    "repaired",
    "lost",
    "tokens",
    "s",
)
ENDED = {0: "complete", 1: "failed", 4: "partial", 5: "unproven"}


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    errand: str
    command: str
    code: int | None
    """None: given up."""
    seconds: float
    last: str
    """Its last line."""
    shown: str
    """What it printed on standard output."""


def commands(errand: Errand, server: RealServer, *, first: bool) -> Iterator[tuple[str, ...]]:
    """What is run in the errand's repository, in order."""
    tests = shlex.join((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"))
    models = ("--coding", WEAK, "--reasoning", WEAK, "--test-command", tests)
    window = ("--context-window", str(WINDOW), "--reserved-tokens", str(RESERVED))
    yield ("init", "-y", "--provider", "openai", "--base-url", server.base_url, *models, *window)
    if first:
        yield ("check",)
    yield ("retrieve", "--format", "prompt", errand.words)
    yield ("plan", errand.words)
    yield ("solve", errand.words)
    if first:
        yield ("enrich",)


def run(program: Sequence[str], command: Sequence[str], errand: Errand, folder: Path, cache: Path) -> Ended:
    """One command, in the folder."""
    begun = time.monotonic()
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache), "COLUMNS": "200"}
    try:
        done = subprocess.run(
            (*program, *command),
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TOO_LONG,
            check=False,
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = None, "", "given up"
    lines = [line.strip() for line in (out + "\n" + err).splitlines() if line.strip()]
    ended = Ended(
        errand=errand.name,
        command=command[0],
        code=code,
        seconds=time.monotonic() - begun,
        last=lines[-1] if lines else "",
        shown=out,
    )
    (folder.parent / f"{errand.name}-{command[0]}.txt").write_text(
        f"{out}\n--- stderr\n{err}", encoding="utf-8"
    )
    print(f"{errand.name:<10}{ended.command:<10}{code!s:>5}{ended.seconds:>8.1f} s  {ended.last}", flush=True)
    return ended


def measured(
    work: Path, program: Sequence[str], tasks: int
) -> tuple[list[Ended], list[Answer], Counter[str]]:
    """Every command's end, every recorded answer, and what became of attempts at steps."""
    place = work / "runs"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    ends: list[Ended] = []
    answers: list[Answer] = []
    attempts: Counter[str] = Counter()
    with serving(WEAK, models_folder(), window=WINDOW, threads=THREADS) as server:
        for number, errand in enumerate(ERRANDS[:tasks]):
            folder = plant(errand, place / errand.name)
            asked = commands(errand, server, first=number == 0)
            ends += [run(program, command, errand, folder, work / "cache") for command in asked]
            record = folder / ".clean_room" / "raw.sqlite"
            answers += answers_of(record)
            attempts += attempts_of(record)
    return ends, answers, attempts


def page(ends: Sequence[Ended], answers: Sequence[Answer], attempts: Counter[str]) -> str:
    """The tables."""
    rows = kinds(answers)
    kind_rows = [
        (
            f"{row.prompt}{'' if row.held else ' (free)'}",
            row.calls,
            row.cut,
            row.closed,
            row.parroted,
            row.unreadable,
            row.repaired,
            f"{row.lost} of {row.questions}",
            row.tokens,
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    cut = sum(row.cut for row in rows)
    total = f"{cut} of {len(answers)} answers ran to their limit ({share(cut, len(answers))})"
    functions = {errand.name: errand.function for errand in ERRANDS}
    shown = [functions[end.errand] in end.shown for end in ends if end.command == "retrieve"]
    facts = [
        f"- {total}; they have {share(*_tokens(answers))} of the generated tokens.",
        f"- `cra retrieve` shows the function that its task names: {sum(shown)} of {len(shown)}.",
        f"- Attempts at steps: {', '.join(f'{count} {name}' for name, count in sorted(attempts.items())) or 'none'}.",
    ]
    head = ("task", "command", "exit", "s", "last line")
    end_rows = [
        (end.errand, f"`{end.command}`", end.code, f"{end.seconds:.1f}", end.last.replace("|", "\\|")[:110])
        for end in ends
        if end.command != "init"
    ]
    solves = [end.seconds for end in ends if end.command == "solve"]
    facts.append(f"- Median seconds of a `cra solve`: {median_seconds(solves)}.")
    return "\n\n".join(("\n".join(facts), table(KIND_HEAD, kind_rows), table(head, end_rows)))


def _tokens(answers: Sequence[Answer]) -> tuple[int, int]:
    return sum(one.tokens for one in answers if one.cut), sum(one.tokens for one in answers)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path, help="folder for the repositories, outside this one")
    parser.add_argument("--cra", default=f"{sys.executable} -m clean_room_agent", metavar="PROGRAM")
    parser.add_argument("--tasks", type=int, default=len(ERRANDS), help="only the first N")
    parser.add_argument("--write", default="", metavar="NAME", help="into the results, under this name")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    text = page(*measured(work, shlex.split(arguments.cra), arguments.tasks))
    print(text)
    if arguments.write:
        write_section(RESULTS, f"{TITLE}: {arguments.write}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
