"""`cra index` killed by SIGKILL at random moments: what is left behind, and whether the next run mends it.

    python -m benchmarks.killed_index REPOSITORY --work FOLDER [--kills 200] [--seed 1] [--write]

from the repository's root. REPOSITORY is cloned. Each run begins from a known state of the database and is killed at a
moment that is drawn evenly from its usual duration: the process alone, or its whole group. Then every database must be
whole, hold all of the old state or all of the new one, nothing may go on running, and the next `cra index` must finish
with the rows of a fresh build and leave no file of the killed one behind.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from testing.faults.index_kills import Bench, Tally, kill_some, make_cases
from testing.processes import environment

from benchmarks.index.copies import clone
from benchmarks.results import table, write_section

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Index: killed at random moments"
COMMITS = 10
"""Between the two states of an update after commits."""
COLUMNS = ("killed", "ended before", "absent", "old", "new", "mixture")


def main() -> int:
    """Kill, look, print, write the section where that is asked for; 1 after a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the clone; kept between runs")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    options = parser.parse_args()
    work = options.work.resolve() / "killed"
    top = clone(options.repository, work / options.repository.resolve().name)
    bench = Bench(top=top, work=work, env=environment(work))
    began = time.monotonic()
    tallies = kill_some(bench, make_cases(bench, commits=COMMITS), kills=options.kills, seed=options.seed)
    minutes = (time.monotonic() - began) / 60
    body = render(tallies, f"{top.name}, seed {options.seed}, {minutes:.0f} minutes")
    print(body)
    if options.write:
        write_section(RESULTS, SECTION, body)
    return 1 if any(tally.faults for tally in tallies.values()) else 0


def render(tallies: Mapping[str, Tally], conditions: str) -> str:
    """The section's text."""
    rows = [
        (
            name,
            tally.seen["killed"] + tally.seen["ended before"],
            *(tally.seen[key] for key in COLUMNS),
            f"{tally.longest_linger:.2f}",
            len(tally.faults),
        )
        for name, tally in tallies.items()
    ]
    totals = [sum(tally.seen[key] for tally in tallies.values()) for key in COLUMNS]
    longest = max(tally.longest_linger for tally in tallies.values())
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    rows.append(("all", totals[0] + totals[1], *totals, f"{longest:.2f}", len(faults)))
    head = ("run", "runs", *COLUMNS, "longest rest, s", "faults")
    explained = (
        f"{conditions}. SIGKILL to the process or to its whole group, at a moment drawn evenly from the usual "
        f"duration. Then: the state found; seconds until no process of the run was left; and what was wrong, which "
        f"includes a next run that fails, gives other rows than a fresh build, or leaves files behind."
    )
    return "\n\n".join(
        [explained, table(head, rows), *(["\n".join(f"- {fault}" for fault in faults)] if faults else [])]
    )


if __name__ == "__main__":
    sys.exit(main())
