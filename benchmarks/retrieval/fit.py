"""Whether weights fitted to a repository's own past rank its next commits better than those that `cra` comes with.

python -m benchmarks.retrieval.fit CHECKOUT [CHECKOUT ...] [--write]

Each checkout is an indexed repository with its history. The messages of its newest commits are the tasks, the source
files that they changed the answers; what is counted of the past ends before each block of them. (Contents are today's:
that flatters words a little, for both.) The weights are fitted to the older two thirds by coordinate ascent and
measured on the newest third.
"""

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.results import write_section
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated.files import list_files
from clean_room_agent.db.curated.history import SaidCommit, list_said, read_message
from clean_room_agent.db.rows import Connection
from clean_room_agent.paths import kind_of
from clean_room_agent.query.ranking import KIND_WEIGHTS, WEIGHTS, Ranking
from clean_room_agent.query.search import SearchQuery
from clean_room_agent.retrieval.mentions import find_mentions

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Weights fitted to a repository's own history"
BLOCK = 40
BLOCKS = 5
MAX_FILES = 5
SHORTEST_MESSAGE = 12
FEWEST_TASKS = 20
KEPT = 150
"""Files of a task that are kept, best first by the weights as they are."""
STEPS = (2.0, 0.5, 1.4, 1 / 1.4)
LEAST_GAIN = 0.001
FIRST = 10

Shares = tuple[float, ...]
"""Of each signal, in the order of `WEIGHTS`, times what the file's kind counts."""


class Task(Struct, frozen=True, kw_only=True):
    """A past commit as a task."""

    shares: Mapping[int, Shares]
    """By file id."""
    changed: tuple[int, ...]


class Fit(Struct, frozen=True, kw_only=True):
    """What fitting did on one repository."""

    name: str
    tasks: int
    before: float
    """Of the newest third, with the weights as they are."""
    after: float
    weights: Mapping[str, float]


def read_tasks(conn: Connection) -> list[Task]:
    """The newest commits as tasks, the newest first."""
    sources = {file.id for file in list_files(conn) if kind_of(file.path) == "code"}
    kinds = {file.id: KIND_WEIGHTS[kind_of(file.path)] for file in list_files(conn)}
    said = list(list_said(conn))
    tasks = []
    for start in range(0, min(BLOCK * BLOCKS, len(said)), BLOCK):
        ranking = Ranking(conn, skip_newest=start + BLOCK)
        for commit in said[start : start + BLOCK]:
            task = _task(conn, ranking, commit, sources, kinds)
            if task is not None:
                tasks.append(task)
    return tasks


def _task(
    conn: Connection, ranking: Ranking, commit: SaidCommit, sources: set[int], kinds: Mapping[int, float]
) -> Task | None:
    changed = tuple(file_id for file_id in commit.file_ids if file_id in sources)
    message = read_message(conn, commit.id)[1]
    if not 1 <= len(changed) <= MAX_FILES or len(message) < SHORTEST_MESSAGE:
        return None
    found = ranking.find(SearchQuery(text=message, names=find_mentions(message).identifiers))
    files = {file_id for signal in found for file_id in signal.values}
    shares = {
        file_id: tuple(signal.share(file_id) * kinds[file_id] for signal in found)
        for file_id in sorted(files)
        if file_id in kinds
    }
    usual = tuple(WEIGHTS.values())
    best = sorted(shares, key=lambda file_id: -score(shares[file_id], usual))[:KEPT]
    return Task(shares={file_id: shares[file_id] for file_id in best}, changed=changed)


def score(shares: Shares, weights: Sequence[float]) -> float:
    """What the ranking gives a file."""
    return sum(share * weight for share, weight in zip(shares, weights, strict=True))


def quality(tasks: Sequence[Task], weights: Sequence[float]) -> float:
    """The mean of reciprocal rank and recall among the first ten, over the tasks."""
    total = 0.0
    for task in tasks:
        scores = {file_id: score(shares, weights) for file_id, shares in task.shares.items()}
        ranks = [
            sum(other > scores[file_id] for other in scores.values()) + 1 if file_id in scores else KEPT * 10
            for file_id in task.changed
        ]
        total += 1 / min(ranks) + sum(rank <= FIRST for rank in ranks) / len(ranks)
    return total / (2 * max(len(tasks), 1))


def ascend(tasks: Sequence[Task], start: Sequence[float]) -> list[float]:
    """Weights that no single step betters by more than `LEAST_GAIN`, each tried once."""
    weights, best = list(start), quality(tasks, start)
    for step in STEPS:
        for place in range(len(weights)):
            tried = [*weights[:place], weights[place] * step, *weights[place + 1 :]]
            found = quality(tasks, tried)
            if found > best + LEAST_GAIN:
                weights, best = tried, found
    return weights


def fit(checkout: Path) -> Fit | None:
    """The fit for one repository; None where its past has too few tasks."""
    with contextlib.closing(get_connection("curated", repo_path=checkout, read_only=True)) as conn:
        tasks = read_tasks(conn)
    if len(tasks) < FEWEST_TASKS:
        return None
    third = len(tasks) // 3
    usual = tuple(WEIGHTS.values())
    fitted = ascend(tasks[third:], usual)
    return Fit(
        name=f"{checkout.parent.name} {checkout.name}",
        tasks=len(tasks),
        before=quality(tasks[:third], usual),
        after=quality(tasks[:third], fitted),
        weights={name: weight / old for (name, old), weight in zip(WEIGHTS.items(), fitted, strict=True)},
    )


def text_of(fits: Sequence[Fit]) -> str:
    """The section of the results."""
    lines = [
        "| repository | tasks | weights as they are | fitted | what the fit multiplied |",
        "|---|---|---|---|---|",
    ]
    for one in fits:
        changed = ", ".join(
            f"{name} {by:.2g}" for name, by in one.weights.items() if abs(by - 1) > LEAST_GAIN
        )
        lines.append(
            f"| {one.name} | {one.tasks} | {one.before:.3f} | {one.after:.3f} | {changed or 'nothing'} |"
        )
    count = len(fits)
    before, after = (
        sum(values) / count for values in zip(*((one.before, one.after) for one in fits), strict=True)
    )
    better = sum(one.after > one.before for one in fits)
    lines += [
        "",
        (
            f"Mean of {count}: {before:.4f} as they are, {after:.4f} fitted; better in {better} of {count}. "
            "(Mean of reciprocal rank and recall among the first ten, on the newest third of each.)"
        ),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", type=Path, nargs="+", help="indexed repositories")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    arguments = parser.parse_args()
    fits = []
    for checkout in arguments.checkouts:
        found = fit(checkout.resolve())
        if found is None:
            print(f"{checkout}: too few commits", file=sys.stderr)
        else:
            fits.append(found)
            print(f"{found.name}: {found.before:.3f} -> {found.after:.3f}", flush=True)
    if not fits:
        return 1
    print(text_of(fits))
    if arguments.write:
        write_section(RESULTS, TITLE, text_of(fits))
    return 0


if __name__ == "__main__":
    sys.exit(main())
