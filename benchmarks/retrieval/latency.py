"""How soon an indexed repository answers: processes of their own, each from its start."""

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from testing.processes import environment, spend

from benchmarks.commits.checkouts import git
from benchmarks.results import table
from benchmarks.retrieval.checkouts import checkout, indexed, source_files
from benchmarks.retrieval.metrics import percentile

ROUNDS = 3

Pair = tuple[float, float]
"""Milliseconds by the clock, and of processor time."""


class Started(BaseModel):
    """What one process says of itself."""

    imports: Pair
    first: Pair
    further: tuple[Pair, ...]


def measure_latency(work: Path, source: Path, texts: Sequence[str]) -> str:
    """A table for the repository checked out at `source`, of which an own checkout is made and indexed below `work`.

    Every round starts two processes: one ranks for the first text alone, one goes on to all of them.
    """
    commit = git(source, "rev-parse", "HEAD")
    top = indexed(checkout(source, commit, work / "latency" / f"{source.resolve().name}-{commit[:10]}"))
    written = work / "latency" / "texts.json"
    written.write_text(json.dumps(list(texts)), encoding="utf-8")
    command = (sys.executable, "-m", "benchmarks.retrieval.start", top, written)
    env = environment(work)
    whole: list[Pair] = []
    started: list[Started] = []
    # The round before the first compiles the modules and reads the files.
    for place in range(ROUNDS + 1):
        spent = spend((*command, "1"), cwd=Path.cwd(), env=env)
        said = spend((*command, str(len(texts))), cwd=Path.cwd(), env=env).said
        if place:
            whole.append((spent.wall * 1000, spent.processor * 1000))
            started.append(Started.model_validate_json(said))
    further = [pair for one in started for pair in one.further]
    rows = (
        ("a process that answers once, whole", _median(whole)),
        ("of it: imports", _median([one.imports for one in started])),
        ("of it: index opened, first ranking", _median([one.first for one in started])),
        ("further rankings: median", _median(further)),
        ("further rankings: 95th percentile", _at(further, 0.95)),
        ("further rankings: slowest", _at(further, 1.0)),
    )
    shown = table(("", "ms", "CPU ms"), [(name, f"{wall:,.0f}", f"{cpu:,.0f}") for name, (wall, cpu) in rows])
    commits = int(git(top, "rev-list", "--count", "HEAD"))
    return (
        f"{source.resolve().name}: {len(source_files(top)):,} source files, {commits:,} commits, {len(texts)} tasks, "
        f"{ROUNDS} rounds.\n\n{shown}"
    )


def _median(pairs: Sequence[Pair]) -> Pair:
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _at(pairs: Sequence[Pair], share: float) -> Pair:
    return percentile([pair[0] for pair in pairs], share), percentile([pair[1] for pair in pairs], share)
