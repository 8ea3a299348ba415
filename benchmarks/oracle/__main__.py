"""What the harness can do with a perfect model: real commits, repeated by `cra solve` with the oracle as the model.

python -m benchmarks.oracle WORK --mirror '/mirrors/{owner}+{name}' [--window 8192 ...]
    [--noise | --twice] [--route each|batch] [--decomposed] [--only TEXT] [--every N]
    [--jobs 2] [--resume] [--write]

Every commit that is not solved was lost by the harness, and is attributed to the stage that lost it, by the record of
its run. With `--noise` the oracle errs in a tenth of its verdicts and a fifth of its answers (`testing/oracle/noisy.py`), with
`--twice` in twice as many: the same way each time. How a commit is solved and judged says `commits/solve_commit.py`;
`--write` puts every setting that this work folder has rows of into the results, in a section for each list.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path

from testing.oracle.noisy import NoisyOracle, Rates
from testing.oracle.oracle import Oracle
from testing.servers.ollama_script import Answerer

from benchmarks.commits.checkouts import BenchmarkError, clone, environment_folder
from benchmarks.commits.commit_list import CommitEntry, CommitList, read_list
from benchmarks.commits.solve_commit import Attempted, Mind, Setting, Subject, attempt, perfect
from benchmarks.oracle.losses import Loss, costs_of, find_loss, read_record
from benchmarks.oracle.page import (
    Row,
    commits_table,
    keep_row,
    kept_row,
    losses,
    searches_table,
    summary,
)
from benchmarks.results import write_section

RESULTS = Path(__file__).with_name("RESULTS.md")

LIST = Path(__file__).parents[1] / "commits" / "oracle_commits.toml"
WINDOWS = (32768, 16384, 8192)
PREFACE = (
    "Medians are of solved commits; the seconds say little, for many other programs ran on the machine. A setting that "
    "names no route asks as by default. An empty cell: not run in this measurement. `--resume` keeps rows of earlier "
    "builds."
)
TWICE = Rates(verdicts=0.2, answers=0.4)
TITLE = "The oracle: real commits with a perfect model, and with one that errs"


def erring(subject: Subject) -> Answerer:
    """The oracle with its usual noise."""
    return NoisyOracle(Oracle(subject.gold))


def erring_twice(subject: Subject) -> Answerer:
    """The oracle with twice its usual noise."""
    return NoisyOracle(Oracle(subject.gold), rates=TWICE)


MINDS: Mapping[str, Mind] = {
    "": perfect,
    "noise": erring,
    "twice": erring_twice,
}
"""By the word for it in a setting's name."""


def settings_of(
    windows: Sequence[int],
    routes: Sequence[str],
    mind: str,
    *,
    decomposed: bool = False,
) -> tuple[Setting, ...]:
    """Each window with each route."""
    return tuple(
        Setting(
            name="-".join(
                filter(
                    None,
                    (
                        f"{window // 1024}k",
                        mind,
                        route,
                        "decomposed" if decomposed else "",
                    ),
                )
            ),
            window=window,
            route=route,
            mind=MINDS[mind],
            decomposed=decomposed,
        )
        for window in windows
        for route in routes or ("",)
    )


def row_of(done: Attempted, setting: Setting) -> Row:
    """What is kept of a run."""
    recorded = read_record(done.record, str(done.answer.get("task_id", "")))
    costs = costs_of(recorded, setting.window)
    loss = Loss(stage="", example="") if done.solved else find_loss(done, recorded)
    return Row(
        id=done.entry.id,
        setting=setting.name,
        window=setting.window,
        solved=done.solved,
        untouched=done.untouched,
        single_step=done.answer.get("steps", {}).get("total") == 1,
        calls=costs.calls,
        prompt_tokens=costs.prompt_tokens,
        completion_tokens=costs.completion_tokens,
        fullest=costs.fullest,
        over=costs.over,
        judged_tokens=costs.judged_tokens,
        shared_tokens=costs.shared_tokens,
        seconds=round(done.seconds, 2),
        own_seconds=round(done.own_seconds, 2),
        stage=loss.stage,
        example=loss.example,
    )


def solve_all(
    work: Path, mirror: str, listed: CommitList, entry: CommitEntry, settings: Sequence[Setting]
) -> list[Row]:
    """The commit under each setting, one after the other."""
    rows = []
    for setting in settings:
        try:
            rows.append(row_of(attempt(work, mirror, listed, entry, setting), setting))
        except subprocess.TimeoutExpired:
            print(f"{entry.id} {setting.name}: no end", file=sys.stderr, flush=True)
    return rows


def run(
    arguments: argparse.Namespace, listed: CommitList, wanted: Iterable[tuple[CommitEntry, Setting]]
) -> Iterator[Row]:
    """The rows as they come, kept in the work folder; with `--resume` those that stand there are not run again."""
    rows = rows_folder(arguments.work)
    left = []
    for entry, several in groupby(wanted, key=lambda pair: pair[0]):
        todo = [each for _, each in several if not (arguments.resume and kept_row(rows, entry.id, each.name))]
        if todo:
            left.append((entry, todo))
    for entry, _ in left:  # what several commits share is made before the processes part
        clone(arguments.work, arguments.mirror, entry.repository)
        environment_folder(arguments.work, entry.environment, listed.environments[entry.environment])
    with ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
        waiting = [
            pool.submit(solve_all, arguments.work, arguments.mirror, listed, entry, todo)
            for entry, todo in left
        ]
        for future in as_completed(waiting):
            for row in future.result():
                keep_row(rows, row)
                yield row


def rows_folder(work: Path) -> Path:
    """Where a work folder keeps the rows of single runs."""
    return work / "oracle"


def page(work: Path, listed: CommitList) -> str:
    """The section, of all rows that the work folder has of the list's commits."""
    names = sorted(
        {path.name.split(".", 1)[1].removesuffix(".json") for path in rows_folder(work).glob("*.json")},
        key=lambda name: (*(mind in name for mind in MINDS if mind), -int(name.split("k")[0]), name),
    )
    rows = [
        row
        for name in names
        for entry in listed.commits
        if (row := kept_row(rows_folder(work), entry.id, name)) is not None
    ]
    parts = (
        PREFACE,
        summary(rows),
        losses(rows),
        "How the list came about:",
        searches_table(listed),
        "Commit by commit:",
        commits_table(rows, listed),
    )
    return "\n\n".join(parts)


def show(row: Row) -> None:
    """One line to look at while it runs."""
    verdict = "solved" if row.solved else f"LOST {row.stage}: {row.example}"
    tree = "" if row.untouched else " USER'S TREE CHANGED"
    line = f"{row.id:<20} {row.setting:<12} {row.calls:>4} calls {row.fullest:>6} fullest {row.seconds:>6.1f} s {row.own_seconds:>5.1f} own"
    print(f"{line}{tree} {verdict}"[:250], flush=True)


def make_parser() -> argparse.ArgumentParser:
    """Of this program's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "work", type=Path, help="folder for checkouts and environments, outside this repository"
    )
    parser.add_argument("--mirror", required=True, help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument(
        "--only", action="append", help="only commits in whose id this stands; may be repeated"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th commit of the list")
    parser.add_argument("--window", type=int, action="append", help="tokens; may be given more than once")
    minds = parser.add_mutually_exclusive_group()
    minds.add_argument(
        "--noise", dest="mind", action="store_const", const="noise", default="", help="let the oracle err"
    )
    minds.add_argument(
        "--twice", dest="mind", action="store_const", const="twice", help="let it err twice as often"
    )
    parser.add_argument("--route", action="append", choices=("each", "batch"), help="of the judgments")
    parser.add_argument(
        "--decomposed",
        action="store_true",
        help="plans and adjustments from small questions, not in one call",
    )
    parser.add_argument("--jobs", type=int, default=2, help="commits at a time")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the work folder has")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    return parser


def main() -> int:
    """The exit code: 1 where a mirror or an environment is not as it should be."""
    arguments = make_parser().parse_args()
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    listed = read_list(arguments.list)
    settings = settings_of(
        arguments.window or WINDOWS,
        arguments.route or (),
        arguments.mind,
        decomposed=arguments.decomposed,
    )
    entries = [
        entry
        for entry in listed.commits[:: arguments.every]
        if not arguments.only or any(text in entry.id for text in arguments.only)
    ]
    wanted = [(entry, setting) for entry in entries for setting in settings]
    try:
        for done in run(arguments, listed, wanted):
            show(done)
    except BenchmarkError as exc:
        print(exc, file=sys.stderr)
        return 1
    rows = [
        row
        for setting in settings
        for entry in entries
        if (row := kept_row(rows_folder(arguments.work), entry.id, setting.name)) is not None
    ]
    print(summary(rows), losses(rows), sep="\n\n")
    if arguments.write:
        other = "" if arguments.list == LIST else f", {arguments.list.stem.replace('_', ' ')}"
        write_section(RESULTS, f"{TITLE}{other}", page(arguments.work, listed))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    sys.exit(main())
