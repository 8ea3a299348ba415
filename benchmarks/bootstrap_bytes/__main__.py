"""Are the prompts of bootstrapped pairs those of live runs, byte for byte, and do their edits replay?

python -m benchmarks.bootstrap_bytes WORK MIRROR... [--rows 500] [--spacing 7] [--write]

For commits of the mirrors (bare repositories), pairs are made by `cra bootstrap`'s own units; then `cra solve` runs in a clone
at the commit's parent, cold, with a model server that answers as the pairs do. Every pair that came from the run's own
questions must be among what the run sent, with the same bytes.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from testing import repositories
from testing.histories import mined, plain_making
from testing.runs.solving import PROBE, project_at
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from benchmarks.results import table, write_section
from clean_room_agent.training.shards import cut_units, make_shard, read_shard

RESULTS = Path(__file__).with_name("RESULTS.md")

Row = dict[str, str]
UNSEEN = "plan: the prompt names not all files"
TITLE = "Prompts of training pairs against those of runs"


def sent_by_a_run(mirror: Path, folder: Path, task: str, rows: list[Row]) -> set[tuple[str, str]]:
    """(system text, prompt) of each call of `cra solve` at the parent."""
    answers = {(row["system"], row["prompt"]): row["answer"] for row in rows}
    sent: set[tuple[str, str]] = set()

    def answer(call: ChatCall) -> str:
        if call.prompt.startswith(PROBE):
            return "x"
        sent.add((call.system, call.prompt))
        return answers.get((call.system, call.prompt), "no")

    top = folder / "tree"
    repositories.git(folder, "clone", "-q", "--no-checkout", str(mirror), str(top))
    repositories.git(top, "checkout", "-q", "-B", "main", rows[0]["commit"])
    project = project_at(top, {}, {}, task=task, test_command="true")
    with OllamaServer(answer) as server:
        project.solve(server, judgments={"route": "each"}, solve={"max_attempts": 1})
    return sent


def main() -> int:
    """0 where all are equal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors", type=Path, nargs="+")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--spacing", type=int, default=7, help="every so manieth commit, from the newest")
    parser.add_argument("--write", action="store_true", help="into the results")
    given = parser.parse_args()
    equal: Counter[str] = Counter()
    other: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    chosen = {mirror: list(reversed(mined(mirror)[0]))[:: given.spacing] for mirror in given.mirrors}
    number = 0
    while equal.total() < given.rows and any(chosen.values()):
        for mirror in given.mirrors:
            if not chosen[mirror]:
                continue
            number += 1
            commit = chosen[mirror].pop(0)
            folder = given.work / str(number)
            folder.mkdir(parents=True)
            (unit,) = cut_units(mirror.parent.name, mirror, [commit])
            shard = read_shard(make_shard(folder, unit, plain_making()))
            drops.update(shard.counts)
            rows = [row for row in shard.rows if row["found_by"] in {"", "ranking"}]
            # Without its answer the run ends where a plan is no pair.
            if not rows or commit.names_gold or UNSEEN in shard.counts:
                continue
            sent = sent_by_a_run(mirror, folder, commit.task, rows)
            for row in rows:
                same = (row["system"], row["prompt"]) in sent
                (equal if same else other)[row["stage"]] += 1
                if not same:
                    sys.stderr.write(f"differs: {unit.repo} {commit.hash} {row['stage']} {row['item']}\n")
            sys.stderr.write(f"{number} commits, {equal.total()} rows equal, {other.total()} others\n")
    page = _page(equal, other, drops, [mirror.parent.name.replace("+", "/") for mirror in given.mirrors])
    print(page)
    if given.write:
        write_section(RESULTS, TITLE, page)
    return 1 if other else 0


def _page(equal: Counter[str], other: Counter[str], drops: Counter[str], repositories: list[str]) -> str:
    stages = sorted({*equal, *other})
    edits = equal["implement"] + other["implement"]
    bad = drops["implement: the edits do not replay"]
    rows = [(stage, equal[stage] + other[stage], equal[stage]) for stage in stages]
    rows.append(("all", equal.total() + other.total(), equal.total()))
    about = (
        f"Pairs of {drops['commits']} commits of {', '.join(repositories)}, made by `cra bootstrap`'s units, beside what "
        "`cra solve` sent in a clone at the commit's parent."
    )
    replayed = f"Edits that replay: {edits} of {edits + bad} that could be written; the others were dropped. Left out of pairs:"
    left_out = [
        (reason, count) for reason, count in sorted(drops.items()) if reason not in {"commits", "pairs"}
    ]
    return "\n\n".join(
        (
            about,
            table(("prompt", "pairs", "sent by the run with the same bytes"), rows),
            replayed,
            table(("reason", "pairs or commits"), left_out),
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
