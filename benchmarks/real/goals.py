"""Whether words alone give `cra` a goal test, whether it is right, and how early the faulty function comes; without a model.

    python -m benchmarks.real.goals WORK MIRRORS [--split dev|test] [--only TEXT] [--write]

Each fault of `planted.toml`, told in words, is given to `cra solve` with a server that refuses every question: what it finds
until then, it has found by program. A goal test is right if it passes on the repository without the fault. Results are kept
in WORK; WORK and MIRRORS as for `python -m benchmarks.real`.
"""

import argparse
import ast
import contextlib
import json
import shlex
import shutil
import sqlite3
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from testing.servers.openai_server import OpenAiServer

from benchmarks.commits.checkouts import BenchmarkError, git, run_bounded
from benchmarks.real.arms import CRA
from benchmarks.real.planted import SEEDS, NoTask, Repository, base_of, fault_of, planted_task, repositories
from benchmarks.real.proxy import CountingProxy
from benchmarks.real.tasks import Bench, Task
from benchmarks.results import table, write_section
from clean_room_agent.languages.python.mutations import Functions

RESULTS = Path(__file__).with_name("RESULTS.md")
MODEL = "refusing"
WINDOW = 8192
TIMEOUT_S = 600.0
FEW = 3


class Found(Struct, frozen=True, kw_only=True):
    """What `cra` found for one task."""

    task: str
    sources: tuple[str, ...]
    """Of its goal tests."""
    wrong: tuple[str, ...]
    """The calls of those that do not pass on the repository without the fault."""
    places: int
    """Functions that are asked about."""
    rank: int
    """Of the faulty function among them, from 1; 0 if it is not."""


def examine(bench: Bench, task: Task, repository: Repository, seed: int, proxy: CountingProxy) -> Found:
    """What `cra` finds for the task before it would ask a model.

    Raises:
        BenchmarkError: `cra` did not start a run.
    """
    folder = bench.work / "goals" / task.id
    kept = folder / "found.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Found)
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tree"
    shutil.copytree(bench.folder(task.id) / "start", tree, symlinks=True)
    account = proxy.open_account("cra", task.id, folder / "exchanges.jsonl", 0)
    variables = bench.variables(tree, task.environment) | {"HOME": str(folder / "home")}
    variables.pop("PYTHONPATH")
    server = ("--provider", "openai", "--base-url", account.base_url, "--coding", MODEL, "--reasoning", MODEL)
    for arguments in (
        ("init", "-y", *server, "--test-command", shlex.join(task.command)),
        ("solve", "--json", task.words),
    ):
        code, output = run_bounded((*CRA, *arguments), tree, variables, TIMEOUT_S)
    record = tree / ".clean_room" / "raw.sqlite"
    if not record.exists():
        raise BenchmarkError(f"{task.id}: no run is on record (exit code {code})\n{output[-2000:]}")
    with contextlib.closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as connection:
        told = connection.execute("SELECT detail FROM events WHERE kind = 'goal_tests'").fetchone()
        rows = connection.execute(
            "SELECT path, symbol FROM retrieval_decisions WHERE stage = 'trace' AND included ORDER BY id"
        ).fetchall()
    goals: dict[str, Any] = json.loads(told[0])["goals"] if told else {"tests": [], "commit": ""}
    base, _ = base_of(bench, repository)
    fault = fault_of(base, repository, seed)
    place = (fault.path, enclosing((base / fault.path).read_text(encoding="utf-8"), fault.line(base)))
    found = Found(
        task=task.id,
        sources=tuple(test["source"] for test in goals["tests"]),
        wrong=tuple(wrong_goals(bench, task, tree, base, goals)),
        places=len(rows),
        rank=rows.index(place) + 1 if place in rows else 0,
    )
    kept.write_bytes(msgspec.json.encode(found))
    return found


def wrong_goals(bench: Bench, task: Task, tree: Path, base: Path, goals: Mapping[str, Any]) -> Iterator[str]:
    """The goal tests that do not pass on the base without the fault, each by its call or name."""
    tests = goals["tests"]
    if not tests:
        return
    sound = tree.with_name("sound")
    shutil.copytree(base, sound, symlinks=True)
    for path in {test["path"] for test in tests if test.get("code")}:
        (sound / path).parent.mkdir(parents=True, exist_ok=True)
        (sound / path).write_text(git(tree, "show", f"{goals['commit']}:{path}") + "\n", encoding="utf-8")
    report = bench.run_suite(sound, task.command, task.environment)
    passed = {_plain_name(name) for name in report.passed()}
    shutil.rmtree(sound)
    for test in tests:
        if _plain_name(test["name"]) not in passed:
            yield test.get("call") or test["name"]


def _plain_name(test: str) -> str:
    return test.rpartition("::")[2].split("[")[0].rpartition(".")[2]


def enclosing(text: str, line: int) -> str:
    """The qualified name of the innermost function or class in which the line is; "" outside of all."""
    names: list[str] = []
    scope: ast.AST = ast.parse(text)
    while True:
        inner = [
            node
            for node in ast.walk(scope)
            if node is not scope
            and isinstance(node, ast.ClassDef | Functions)
            and node.lineno <= line <= (node.end_lineno or 0)
        ]
        if not inner:
            return ".".join(names)
        scope = inner[0]  # the walk is breadth first
        assert isinstance(scope, ast.ClassDef | Functions)
        names.append(scope.name)


def page(found: Sequence[Found]) -> str:
    """Two tables: goal tests by source, and places."""
    sources = Counter(source for one in found for source in set(one.sources))
    wrong = sum(bool(one.wrong) for one in found)
    told = [one for one in found if one.sources]
    rows: list[tuple[object, ...]] = [
        (f"from {source}", count, "") for source, count in sources.most_common()
    ]
    rows.append(("any", len(told), wrong))
    traced = [one for one in found if one.places]
    places = [
        ("first", sum(one.rank == 1 for one in traced)),
        (f"among the first {FEW}", sum(1 <= one.rank <= FEW for one in traced)),
        ("among those asked about", sum(one.rank > 0 for one in traced)),
    ]
    lines = [f"- {one.task}: wrong: {call}" for one in found for call in one.wrong]
    return "\n\n".join(
        (
            f"{len(found)} tasks, of which {len(told)} get a goal test ({100 * len(told) / max(len(found), 1):.0f} %).",
            table(("goal tests", "tasks", "with a wrong one"), rows),
            f"Where the faulty function comes, of {len(traced)} tasks with a trace:",
            table(("place", "tasks"), places),
            "\n".join(lines),
        )
    ).rstrip()


def chosen(split: str, only: str) -> Iterator[tuple[Repository, int]]:
    """The planted faults of the split in whose repository's name `only` stands."""
    seeds = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["seeds"]
    for repository in repositories():
        for seed in seeds.get(repository.name, ()):
            if only in repository.name and planted_task(repository, seed, "words").split == split:
                yield repository, seed


def main(arguments: Sequence[str] | None = None) -> int:
    """The tables are printed, and written to RESULTS.md where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only repositories in whose name this stands"
    )
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(arguments)
    bench = Bench(work=asked.work.resolve(), mirrors=asked.mirrors)
    bench.work.mkdir(parents=True, exist_ok=True)
    found = []
    try:
        with (
            OpenAiServer([], models=(MODEL,), window=WINDOW, slots=4) as server,
            CountingProxy(server.base_url) as proxy,
        ):
            for repository, seed in chosen(asked.split, asked.only):
                try:
                    task = planted_task(repository, seed, "words").make(bench)
                except NoTask as lacking:  # a suite that takes too long on this machine, today
                    print(f"{repository.name} {seed}: no task: {lacking}", file=sys.stderr)
                    continue
                one = examine(bench, task, repository, seed, proxy)
                found.append(one)
                goals = ", ".join(one.sources) or "no goal test"
                print(f"{one.task:<44}{goals}; place {one.rank} of {one.places}", *one.wrong, flush=True)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    text = page(found)
    print(f"\n{text}")
    if asked.write:
        write_section(RESULTS, f"goal tests from words, and places, without a model, {asked.split}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
