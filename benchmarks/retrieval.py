"""How well tasks from real commits find the files that they changed: ours, BM25 and aider's repository map.

    python -m benchmarks.retrieval TASKS.jsonl [MORE.jsonl ...] --mirror '/mirrors/{owner}+{name}' --work FOLDER
        [--held-out TASKS.jsonl ...] [--peers PYTHON_WITH_AIDER] [--only OWNER/NAME] [--latency CHECKOUT]
        [--notes NOTES.md] [--write]

from the repository's root. A line of a task file is a JSON object: `id`, `repo`, `snapshot_commit`, `commit`, `task`
(words) and `gold_files`; `benchmarks.retrieval_tasks` makes such files. Each snapshot is checked out below FOLDER and
indexed once. What each ranking answered is kept there (`runs/RANKING.jsonl`: `id`, `ranked_files`).
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import write_section
from benchmarks.retrieval_latency import measure_latency
from benchmarks.retrieval_metrics import score_of
from benchmarks.retrieval_places import lacking, snapshot, source_files
from benchmarks.retrieval_rankings import Answer, aider_version, ask_aider, ask_bm25, ask_ours
from benchmarks.retrieval_table import EXPLAINED, RANKINGS, Result, render_results
from benchmarks.retrieval_tasks import Task, read_tasks

SECTION = "Retrieval"
MOST_LACKING = 0.02
"""The share of source files that a mirror may have no contents for; tasks of a snapshot with more are left out."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """What was measured so far."""

    work: Path
    mirror: str
    aider: Path | None
    results: list[Result] = field(default_factory=list)
    runs: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Lines of the files of answers, by ranking."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Tasks whose snapshot lacks too many files, by repository."""

    def note(
        self,
        group: str,
        ranking: str,
        tasks: Sequence[Task],
        answers: Sequence[Answer],
        among: frozenset[str] | None,
    ) -> None:
        """The ranking's answers count, less the files that are not `among` those ranked."""
        for task, answer in zip(tasks, answers, strict=True):
            ranked = [path for path in answer.ranked if among is None or path in among]
            self.runs[ranking].append(json.dumps({"id": task.id, "ranked_files": ranked}))
            self.results.append(
                Result(
                    task_id=task.id,
                    group=group,
                    repository=task.repo,
                    ranking=ranking,
                    score=score_of(task.gold_files, ranked),
                    cpu_ms=answer.cpu_ms,
                )
            )


def main() -> None:
    """Measure, print, write the section where that is asked for."""
    options = read_options()
    bench = Bench(work=options.work.resolve(), mirror=options.mirror, aider=options.peers)
    bench.work.mkdir(parents=True, exist_ok=True)
    groups = {path.stem: read_tasks(path) for path in options.tasks}
    groups |= {f"{path.stem} (held out)": read_tasks(path) for path in options.held_out}
    for group, tasks in groups.items():
        for (repository, commit), asked in by_snapshot(tasks, options.only):
            measure(bench, group, repository, commit, asked)
    parts = [EXPLAINED.strip()]
    if options.notes:
        parts.append(options.notes.read_text(encoding="utf-8").strip())
    parts.append(f"Tasks left out, as the mirror lacks files of their snapshots: {said(bench.left_out)}.")
    if bench.aider:
        parts.append(f"Peer: aider {aider_version(bench.aider)}.")
    parts.append(render_results(bench.results, list(groups)))
    keep_runs(bench)
    if options.latency:
        texts = texts_for(
            options.latency.resolve().name, [task for tasks in groups.values() for task in tasks]
        )
        parts.append(f"How soon it answers.\n\n{measure_latency(bench.work, options.latency, texts)}")
    body = "\n\n".join(parts)
    print(body)
    if options.write:
        write_section(SECTION, body)


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
    parser.add_argument(
        "--only", action="append", default=[], help="this repository's tasks; may be repeated"
    )
    parser.add_argument("--latency", type=Path, help="a checkout to measure the time to an answer on")
    parser.add_argument("--notes", type=Path, help="Markdown to put before the tables")
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    return parser.parse_args()


def by_snapshot(
    tasks: Sequence[Task], only: Sequence[str]
) -> Iterator[tuple[tuple[str, str], tuple[Task, ...]]]:
    """The tasks of each (repository, commit), in the order in which these come first."""
    asked: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        if not only or task.repo in only:
            asked[task.repo, task.snapshot_commit].append(task)
    for place, own in asked.items():
        yield place, tuple(own)


def measure(bench: Bench, group: str, repository: str, commit: str, tasks: Sequence[Task]) -> None:
    """Every ranking on one snapshot."""
    top = snapshot(bench.work, bench.mirror, repository, commit)
    paths = source_files(top)
    gaps = lacking(top)
    if gaps > MOST_LACKING * (len(paths) + gaps):
        print(
            f"{repository} {commit[:10]}: {gaps} of {len(paths) + gaps} source files are lacking", flush=True
        )
        bench.left_out[repository] += len(tasks)
        return
    ours, sources = ask_ours(top, tasks), frozenset(paths)
    bench.note(group, "cra", tasks, ours, sources)
    bench.note(group, "cra, side files too", tasks, ours, None)
    bench.note(group, "BM25", tasks, ask_bm25(top, paths, tasks), sources)
    if bench.aider:
        bench.note(group, "aider's map", tasks, ask_aider(bench.aider, top, bench.work, tasks), sources)
    found = {result.task_id for result in bench.results if result.ranking == "cra" and result.score.all_found}
    print(
        f"{repository} {commit[:10]}: {len(paths)} files, {gaps} lacking, "
        f"all found for {sum(task.id in found for task in tasks)} of {len(tasks)}",
        flush=True,
    )


def said(counts: Counter[str]) -> str:
    """The counts by name; "none" where there is nothing."""
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items())) or "none"


def keep_runs(bench: Bench) -> None:
    """Every ranking's answers stand in a file."""
    folder = bench.work / "runs"
    folder.mkdir(exist_ok=True)
    for ranking in RANKINGS:
        lines = "".join(f"{line}\n" for line in bench.runs.get(ranking, []))
        name = "".join(letter if letter.isalnum() else "_" for letter in ranking)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def texts_for(name: str, tasks: Sequence[Task]) -> tuple[str, ...]:
    """The words of the tasks of the repository of this name; of all, where it has none."""
    own = [task.task for task in tasks if task.repo.endswith(f"/{name}")]
    return tuple(own or [task.task for task in tasks])


if __name__ == "__main__":
    main()
