"""A real small model in the chair: what `cra` solves with it, and what others solve with the same tokens.

    python -m benchmarks.real WORK MIRRORS [--sets NAME,...] [--arms NAME,...] [--split dev|test] [--sample N]
                              [--only TEXT] [--model NAME | --base-url URL --model NAME] [--bound TOKENS] [--write]
                              [--config KEY=VALUE]... [--fits FOLDER]

WORK is a folder outside this repository, in which all is kept: tasks, results (one file for each arm and task, so a run that
was broken off goes on where it was), trees, logs, and every question and answer. MIRRORS says where the repositories are,
such as '/mirrors/{owner}+{name}/repo'. The server with the model is started here (`testing/servers/packaged_models.py`),
unless `--base-url` names one. `--sample N`: a part of each set, drawn by a seed. `--write` puts the table of all results in
WORK into RESULTS.md.
"""

import argparse
import contextlib
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from testing.servers.packaged_models import CODER, MODELS, FetchError, best_slots, models_folder, serving

from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.real import arms, exercises, features, fixes, peers, planted, real_commits
from benchmarks.real.arms import Left, Model, Run
from benchmarks.real.proxy import CountingProxy
from benchmarks.real.table import Result, page
from benchmarks.real.tasks import Bench, Listed, Task
from benchmarks.results import write_section

RESULTS = Path(__file__).with_name("RESULTS.md")
SETS: dict[str, Callable[[str], list[Listed]]] = {
    "exercises": exercises.tasks,
    "fixes": fixes.tasks,
    "planted-red": lambda _: planted.tasks("red"),
    "planted-words": lambda _: planted.tasks("words"),
    "features": features.tasks,
    "commits-red": lambda mirrors: real_commits.tasks(mirrors, "red"),
    "commits-words": lambda mirrors: real_commits.tasks(mirrors, "words"),
}
"""What lists a set's tasks, given MIRRORS."""
Arm = Callable[[Run], Left]
ARMS: dict[str, Arm] = {
    "cra": arms.cra,
    "aider": peers.aider,
    "mini-swe-agent": peers.mini_swe_agent,
    "one-shot": arms.one_shot,
    "best-of-n": arms.best_of_n,
}
SAMPLE_SEED = 1
BOUND = 60_000
WINDOW = 32_768
TIMEOUT_S = 1800.0


def done_by(
    name: str, arm: Arm, bench: Bench, task: Task, model: Model, proxy: CountingProxy, bound: int
) -> Result:
    """The arm's result for the task: the one of an earlier run, or a new one.

    Raises:
        BenchmarkError: the server failed, which says nothing about the arm.
    """
    folder = bench.work / "runs" / model.folder / f"bound-{bound}" / name / task.id
    file = folder / "result.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Result)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bench.folder(task.id) / "start", folder / "tree", symlinks=True)
    account = proxy.open_account(name, task.id, folder / "exchanges.jsonl", bound)
    run = Run(bench=bench, task=task, tree=folder / "tree", account=account, model=model, timeout=TIMEOUT_S)
    begun = time.monotonic()
    left = arm(run)
    seconds = time.monotonic() - begun
    if account.lost:
        raise BenchmarkError(f"{name}, {task.id}: the server left {account.lost} questions unanswered")
    solved = bench.solved(task, run.tree)
    result = Result(
        task=task.id,
        set=task.set,
        split=task.split,
        arm=name,
        solved=solved,
        claimed=left.claimed,
        usage=account.usage,
        answers=account.answers,
        refused=account.refused,
        seconds=seconds,
        model_seconds=account.seconds,
        attempts=left.attempts,
        applied=left.applied,
        note=left.note,
        lost="" if solved else left.lost,
    )
    file.write_bytes(msgspec.json.encode(result))
    return result


def chosen_tasks(bench: Bench, sets: Sequence[str], split: str, only: str, sample: int) -> list[Task]:
    """The sets' tasks of the split (all where it is empty) in whose id `only` stands, or `sample` of each set."""
    chosen: list[Task] = []
    for name in sets:
        found = [task for task in SETS[name](bench.mirrors) if split in {"", task.split} and only in task.id]
        if 0 < sample < len(found):
            found = random.Random(SAMPLE_SEED).sample(found, sample)
        chosen += [task.make(bench) for task in found]
    return chosen


def run_all(asked: argparse.Namespace, bench: Bench, model: Model) -> None:
    """Every arm that is asked for has a result for every task that is; each line is printed as it comes.

    Raises:
        BenchmarkError: a repository, an environment or a peer cannot be had.
        FetchError: the model cannot be had.
    """
    bench.environment()  # before several threads want it
    if "cra" in asked.arms:
        arms.require_own_build(bench.work)
    for arm in set(asked.arms) & set(peers.PACKAGES):
        peers.install(bench, arm)
    tasks = chosen_tasks(bench, asked.sets, asked.split, asked.only, asked.sample)
    slots = asked.slots or (1 if asked.base_url else best_slots(model.name, models_folder()))

    def do(pair: tuple[Task, str]) -> None:
        result = done_by(pair[1], ARMS[pair[1]], bench, pair[0], model, proxy, asked.bound)
        verdict = "solved" if result.solved else "claimed" if result.claimed else "not solved"
        print(f"{result.task:<40}{result.arm:<16}{verdict:<12}{result.seconds:>6.0f} s", flush=True)

    with contextlib.ExitStack() as stack:
        url = asked.base_url
        if not url:
            options = {"slots": slots, "window": model.window, "threads": asked.threads}
            url = stack.enter_context(serving(model.name, models_folder(), **options)).base_url
        proxy = stack.enter_context(CountingProxy(url))
        pool = stack.enter_context(ThreadPoolExecutor(slots))
        list(pool.map(do, [(task, arm) for task in tasks for arm in asked.arms]))


def all_results(bench: Bench, model: Model, bound: int) -> list[Result]:
    """Every result that stands in the work folder for this model and bound."""
    place = bench.work / "runs" / model.folder / f"bound-{bound}"
    files = [file for arm in ARMS for file in sorted((place / arm).glob("*/result.json"))]
    return [msgspec.json.decode(file.read_bytes(), type=Result) for file in files]


def listed(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads a list of names, separated by commas."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        return names

    return read


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors")
    parser.add_argument("--sets", type=listed(list(SETS)), default=list(SETS))
    parser.add_argument("--arms", type=listed(list(ARMS)), default=list(ARMS))
    parser.add_argument("--split", choices=("dev", "test"), default="", help="default: both")
    parser.add_argument("--only", default="", metavar="TEXT", help="only tasks in whose id this stands")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument(
        "--model", default=CODER, help=f"one of {', '.join(MODELS)}, or the server's name for it"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of `cra`'s configuration, such as models.overrides.fill=BASE+ADAPTER; results stand apart",
    )
    parser.add_argument(
        "--fits", type=Path, help="the folder of what `cra models fit` measured, for `cra` to go by"
    )
    parser.add_argument("--base-url", default="", help="of a server that runs, without /v1")
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens of a prompt and its answer")
    parser.add_argument(
        "--bound", type=int, default=BOUND, help="tokens read and written by an arm on one task"
    )
    parser.add_argument(
        "--slots", type=int, default=0, help="tasks at a time; default: what pays on this machine"
    )
    parser.add_argument("--threads", type=int, default=0, help="of the server; default: it decides")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    bench = Bench(work=asked.work.resolve(), mirrors=asked.mirrors)
    model = Model(name=asked.model, window=asked.window, settings=tuple(asked.config), fits=asked.fits)
    try:
        run_all(asked, bench, model)
    except (BenchmarkError, planted.NoTask, FetchError) as exc:
        print(exc, file=sys.stderr)
        return 1
    for split in (asked.split,) if asked.split else ("dev", "test"):
        text = page(all_results(bench, model, asked.bound), split)
        print(f"\n{split}\n\n{text}")
        if asked.write:
            write_section(RESULTS, f"{model.folder}, {split}, at most {asked.bound:,} tokens a task", text)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    sys.exit(main())
