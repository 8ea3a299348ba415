"""How well tasks from real commits find the files that they changed: ours, BM25 and aider's repository map.

    python -m benchmarks.retrieval TASKS.jsonl [MORE.jsonl ...] --mirror '/mirrors/{owner}+{name}' --work FOLDER
        [--held-out TASKS.jsonl ...] [--peers PYTHON_WITH_AIDER] [--only OWNER/NAME] [--jobs N]
        [--notes NOTES.md] [--write]

from the repository's root. A line of a task file is a JSON object: `id`, `repo`, `snapshot_commit`, `commit`, `task`
(words) and `gold_files`; `benchmarks.retrieval.tasks` makes such files. Each snapshot is checked out below FOLDER and
indexed once. What each ranking answered is kept there (`runs/RANKING.jsonl`: `id`, `ranked_files`).
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from msgspec import Struct

from benchmarks.results import write_section
from benchmarks.retrieval.checkouts import lacking, snapshot, source_files
from benchmarks.retrieval.metrics import score_of
from benchmarks.retrieval.rankings import Answer, aider_version, ask_aider, ask_bm25, ask_ours
from benchmarks.retrieval.result_table import EXPLAINED, RANKINGS, Result, render_results
from benchmarks.retrieval.tasks import Task, read_tasks

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Retrieval"
MOST_LACKING = 0.02
"""The share of source files that a mirror may have no contents for; tasks of a snapshot with more are left out."""


class Places(Struct, frozen=True, kw_only=True):
    """Where everything is."""

    work: Path
    mirror: str
    aider: Path | None


class Asked(Struct, frozen=True, kw_only=True):
    """The tasks of one group on one snapshot."""

    group: str
    repository: str
    commit: str
    tasks: tuple[Task, ...]


class Measured(Struct, frozen=True, kw_only=True):
    """What came of them: nothing where the snapshot lacks too many files."""

    results: tuple[Result, ...]
    said: str
    """The line that is shown."""


def main() -> None:
    """Measure, print, write the section where that is asked for."""
    options = read_options()
    places = Places(work=options.work.resolve(), mirror=options.mirror, aider=options.peers)
    places.work.mkdir(parents=True, exist_ok=True)
    groups = {path.stem: read_tasks(path) for path in options.tasks}
    groups |= {f"{path.stem} (held out)": read_tasks(path) for path in options.held_out}
    asked = [one for group, tasks in groups.items() for one in by_snapshot(group, tasks, options.only)]
    results: list[Result] = []
    left_out: Counter[str] = Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for one, measured in zip(asked, pool.map(partial(measure, places), asked), strict=True):
            print(measured.said, flush=True)
            results.extend(measured.results)
            if not measured.results:
                left_out[one.repository] += len(one.tasks)
    keep_runs(places.work, results)
    parts = [EXPLAINED.strip()]
    if options.notes:
        parts.append(options.notes.read_text(encoding="utf-8").strip())
    parts.append(f"Tasks left out, as the mirror lacks files of their snapshots: {counted(left_out)}.")
    if places.aider:
        parts.append(f"Peer: aider {aider_version(places.aider)}.")
    parts.append(render_results(results, list(groups)))
    body = "\n\n".join(parts)
    print(body)
    if options.write:
        write_section(RESULTS, SECTION, body)


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", type=Path, nargs="+", help="task files")
    parser.add_argument(
        "--held-out", type=Path, action="append", default=[], help="tasks on which nothing was ever tried out"
    )
    parser.add_argument("--mirror", required=True, help="where repositories are; holds {owner} and {name}")
    parser.add_argument("--work", type=Path, required=True, help="a folder for checkouts; kept between runs")
    parser.add_argument("--peers", type=Path, help="an interpreter that can import aider")
    parser.add_argument("--jobs", type=int, default=1, help="snapshots at a time")
    parser.add_argument(
        "--only", action="append", default=[], help="this repository's tasks; may be repeated"
    )
    parser.add_argument("--notes", type=Path, help="Markdown to put before the tables")
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    return parser.parse_args()


def by_snapshot(group: str, tasks: Sequence[Task], only: Sequence[str]) -> Iterator[Asked]:
    """The tasks of each repository's commit, in the order in which these come first."""
    asked: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        if not only or task.repo in only:
            asked[task.repo, task.snapshot_commit].append(task)
    for (repository, commit), own in asked.items():
        yield Asked(group=group, repository=repository, commit=commit, tasks=tuple(own))


def measure(places: Places, asked: Asked) -> Measured:
    """Every ranking on one snapshot."""
    top = snapshot(places.work, places.mirror, asked.repository, asked.commit)
    paths, gaps = source_files(top), lacking(top)
    said = f"{asked.repository} {asked.commit[:10]}: {len(paths)} source files, {gaps} more are lacking"
    if gaps > MOST_LACKING * (len(paths) + gaps):
        return Measured(results=(), said=said)
    ours, sources = ask_ours(top, asked.tasks), frozenset(paths)
    results = score(asked, "cra", ours, sources)
    found = sum(result.score.all_found for result in results)
    results += score(asked, "cra, side files too", ours, None)
    results += score(asked, "BM25", ask_bm25(top, paths, asked.tasks), sources)
    if places.aider:
        answers = ask_aider(places.aider, top, places.work, asked.tasks)
        results += score(asked, "aider's map", answers, sources)
    return Measured(results=results, said=f"{said}; all found for {found:.0f} of {len(asked.tasks)}")


def score(
    asked: Asked, ranking: str, answers: Sequence[Answer], among: frozenset[str] | None
) -> tuple[Result, ...]:
    """How the ranking did on each task, less the files that are not `among` those ranked."""
    results = []
    for task, answer in zip(asked.tasks, answers, strict=True):
        ranked = tuple(path for path in answer.ranked if among is None or path in among)
        results.append(
            Result(
                task_id=task.id,
                group=asked.group,
                repository=asked.repository,
                ranking=ranking,
                ranked=ranked,
                score=score_of(task.gold_files, ranked),
                cpu_ms=answer.cpu_ms,
            )
        )
    return tuple(results)


def counted(counts: Counter[str]) -> str:
    """The counts by name; "none" where there is nothing."""
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items())) or "none"


def keep_runs(work: Path, results: Sequence[Result]) -> None:
    """Every ranking's answers stand in a file."""
    folder = work / "runs"
    folder.mkdir(exist_ok=True)
    for ranking in RANKINGS:
        lines = [
            json.dumps({"id": result.task_id, "ranked_files": result.ranked}) + "\n"
            for result in results
            if result.ranking == ranking
        ]
        name = "".join(letter if letter.isalnum() else "_" for letter in ranking)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
