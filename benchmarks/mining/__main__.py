"""How fast histories are mined, how that grows, and whether the same rows come out whoever makes the parts.

    python -m benchmarks.mining WORK MIRROR... [--commits 48] [--write]

Filtering: all commits of each mirror (bare repositories), and of its older quarter, in this process. Pairs: `cra bootstrap`
over the newest commits that are fit, and over a quarter of them, in one process; then all of them in two processes, in two
shares after one another (`--shard 1/2` and `2/2`), and, where Ray is installed, by a local cluster of two workers of which
one is killed when the first unit stands. Ends with 1 where a digest of the rows differs.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.loop.stages import Stage, Stages
from benchmarks.results import table, write_section
from clean_room_agent.git.changes import stream_changes
from clean_room_agent.training.mining import mine

RESULTS = Path(__file__).with_name("RESULTS.md")

UNIT = 4
BUDGET = ("--context-window", "16384", "--reserved-tokens", "4096", "--unit-commits", str(UNIT))
TITLE = "Mining histories"


def main() -> int:
    """0 where all digests are equal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors", type=Path, nargs="+")
    parser.add_argument("--commits", type=int, default=48, help="of each repository, for pairs")
    parser.add_argument("--write", action="store_true", help="into the results")
    given = parser.parse_args()
    work = given.work.absolute()
    mirrors = [each.absolute() for each in given.mirrors]
    filtered = [_filtered(each) for each in mirrors]
    made = _pairs(work, mirrors, given.commits)
    digests = {name: _digest(work / name) for name, _ in made if name != QUARTER}
    same = len(set(digests.values())) == 1
    page = _page(filtered, made, same=same, repositories=[each.parent.name for each in mirrors])
    print(page)
    if given.write:
        write_section(RESULTS, TITLE, page)
    return 0 if same else 1


QUARTER, ONE, TWO, SHARES, CLUSTER = "quarter", "one process", "two processes", "two shares", "cluster"


def _filtered(mirror: Path) -> tuple[object, ...]:
    """A row: commits and commits a second of processor time, of the older quarter and of all."""
    listed = subprocess.run(
        ("git", "-C", str(mirror), "rev-list", "--reverse", "HEAD"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    row: list[object] = [mirror.parent.name.replace("+", "/")]
    for head in (listed[len(listed) // 4 - 1], listed[-1]):
        refused: Counter[str] = Counter()
        usage, begun = os.times(), time.monotonic()
        kept = sum(1 for _ in mine(stream_changes(mirror, head), refused))
        seconds, spent = time.monotonic() - begun, os.times()
        of_processor = sum(spent[:4]) - sum(usage[:4])
        seen = kept + refused.total()
        row += [f"{seen:,}", f"{kept:,}", f"{seen / of_processor:,.0f}", f"{seen / seconds:,.0f}"]
    return tuple(row)


def _pairs(work: Path, mirrors: Sequence[Path], commits: int) -> list[tuple[str, list[Stage]]]:
    """Each way of making pairs, with its stages."""
    home = work / "home"
    if not home.exists():
        subprocess.run(("git", "init", "-q", str(home)), check=True)
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(("git", *author, "commit", "-q", "--allow-empty", "-m", "a"), cwd=home, check=True)
    stages = Stages(work / "stages", {"COLUMNS": "100"})

    def run(name: str, *more: str, share: str = "") -> Stage:
        place = ("-o", str(work / name), "--work", str(work / f"{name} work"))
        count = ("--max-commits", str(commits // 4 if name == QUARTER else commits))
        command = ("bootstrap", *map(str, mirrors), *BUDGET, *place, *count, "--json", *more)
        return stages.cra(f"{name}{share}", *command, cwd=home)

    found = [
        (QUARTER, [run(QUARTER, "--jobs", "1")]),
        (ONE, [run(ONE, "--jobs", "1")]),
        (TWO, [run(TWO, "--jobs", "2")]),
        (SHARES, [run(SHARES, "--jobs", "1", "--shard", f"{n}/2", share=f" {n}") for n in (1, 2)]),
    ]
    if importlib.util.find_spec("ray") is not None:
        found.append((CLUSTER, [_on_cluster(work, stages, lambda: run(CLUSTER, "--engine", "ray"))]))
    return found


def _on_cluster(work: Path, stages: Stages, run: Callable[[], Stage]) -> Stage:
    """By two workers, one of which is killed."""
    script = (sys.executable, "-m", "testing.ray_cluster", str(work / f"{CLUSTER} work" / "shards"))
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        stages.environment["RAY_ADDRESS"] = cluster.stdout.readline().strip()
        stage = run()
        killed = cluster.stdout.readline()
        cluster.communicate()
    if killed != "killed\n":
        raise SystemExit("no worker was killed")
    return stage


def _digest(folder: Path) -> str:
    """Of all rows."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*.jsonl")):
        whole.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return whole.hexdigest()


def _page(
    filtered: Sequence[tuple[object, ...]],
    made: Sequence[tuple[str, list[Stage]]],
    *,
    same: bool,
    repositories: Sequence[str],
) -> str:
    rows = []
    for name, stages in made:
        found = json.loads(stages[-1].out)
        seconds, spent = sum(each.seconds for each in stages), sum(each.processor_seconds for each in stages)
        rows.append((
            name, found["commits_used"], found["pairs"], f"{seconds:,.0f}", f"{spent:,.0f}",
            f"{found['pairs'] / seconds:.1f}", f"{found['pairs'] / spent:.1f}" if name != CLUSTER else "",
            f"{max(each.peak_mb for each in stages):,.0f}", f"{stages[-1].load:.1f}",
        ))  # fmt: skip
    looked_at = (
        "Commits that the filters looked at, of the older quarter of a history and of all; rates are commits a second, of "
        "processor time (git's included) and by the clock."
    )
    built = (
        f"Pairs of the newest commits of {', '.join(repositories).replace('+', '/')}, from the first command to a dataset "
        f"without repeats; units of {UNIT} commits. Of the cluster, processor time is that of the command alone."
    )
    told = (
        f"The rows of all ways but the quarter: {'the same, byte for byte' if same else 'NOT the same'}. Load: processes that "
        f"wanted one of {os.cpu_count()} processors, mean of five minutes; other programs ran beside, before ours."
    )
    rates = ("kept", "a processor second", "a second")
    made_by = (
        "made by",
        "commits",
        "pairs",
        "s",
        "processor s",
        "pairs a second",
        "pairs a processor second",
        "peak MB",
        "load",
    )
    return "\n\n".join(
        (
            looked_at,
            table(("history", "x1", *rates, "x4", *rates), filtered),
            built,
            table(made_by, rows),
            told,
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
