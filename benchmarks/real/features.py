"""Small additions to real repositories: commits that add public functions, with their tests.

    python -m benchmarks.real.features WORK MIRRORS --find N

`--find` goes back from the newest commits of the repositories in `repositories.toml` and writes into `features.toml`, N a
repository, those that add one or two public functions and at most 60 lines of source, and where a test of theirs passes with
the change and not without. The words are the commit's message and the signatures; its tests are in sight. The verdict: every
test that passes with the commit.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import tomli_w
from msgspec import Struct

from benchmarks.commits.checkouts import BenchmarkError, git, message_of, mirror_path
from benchmarks.real.planted import Repository, repositories
from benchmarks.real.real_commits import changes
from benchmarks.real.tasks import Bench, Listed, Task, split_of, write_files

COMMITS = Path(__file__).with_name("features.toml")
HEAD = (
    "# Commits that add a function, by repository; found by `python -m benchmarks.real.features --find`.\n\n"
)
MOST_ADDED = 2
MOST_LINES = 60
LOOKED_AT = 600
WORDS = "{message}\n\nAdd:\n{signatures}"


class NotSmall(Exception):
    """A commit is no small addition with tests."""


class NoFeature(Exception):
    """An addition makes no task; says why."""


class Addition(Struct, frozen=True, kw_only=True):
    """What a commit adds."""

    sources: Mapping[str, str]
    """Path -> text with the commit."""
    tests: Mapping[str, str]
    signatures: tuple[str, ...]
    """Each with its file."""


def tasks(_: str) -> list[Listed]:
    """The tasks of `features.toml`."""
    known = {repository.name: repository for repository in repositories()}
    commits = tomllib.loads(COMMITS.read_text(encoding="utf-8"))["commits"]
    return [feature_task(known[name], commit) for name in commits for commit in commits[name]]


def addition(mirror: Path, repository: Repository, commit: str) -> Addition:
    """What the commit adds.

    Raises:
        NotSmall: that is no small addition with tests.
    """
    rows = [line.split("\t") for line in git(mirror, "show", "--numstat", "--format=", commit).splitlines()]
    paths = {path: int(added) + int(removed) for added, removed, path in rows if path.endswith(".py")}
    own = {path for path in paths if path.startswith(repository.sources) and "test" not in path}
    tests = {path for path in paths if "test" in path}
    if not own or not tests or sum(paths[path] for path in own) > MOST_LINES:
        raise NotSmall
    signatures = tuple(
        f"{path}: {signature}"
        for path in sorted(own)
        for signature in changes(mirror, f"{commit}^", commit, path)[0]
    )
    if not 1 <= len(signatures) <= MOST_ADDED:
        raise NotSmall

    def texts(names: set[str]) -> dict[str, str]:
        return {path: git(mirror, "show", f"{commit}:{path}") + "\n" for path in sorted(names)}

    return Addition(sources=texts(own), tests=texts(tests), signatures=signatures)


def feature_task(repository: Repository, commit: str) -> Listed:
    """The task of one commit; to make it raises `NotSmall`, `NoFeature` or `BenchmarkError` if it makes none."""
    task_id = f"feature-{repository.short}-{commit[:8]}"
    split = split_of(f"{repository.name} {commit}")

    def fill(bench: Bench, folder: Path) -> Task:
        mirror = mirror_path(bench.mirrors, repository.name)
        added = addition(mirror, repository, commit)
        start = folder / "start"
        bench.export(repository.name, f"{commit}^", start)
        write_files(start, {**repository.written, **added.tests})
        write_files(folder / "judge", added.tests)
        must_pass = bench.passing(start, added.sources, repository.command)
        if set(must_pass) <= bench.run_suite(start, repository.command).passed():
            raise NoFeature("no test needs it")
        message = message_of(mirror, commit)
        return Task(
            id=task_id,
            set="features",
            split=split,
            words=WORDS.format(message=message, signatures="\n".join(added.signatures)),
            command=repository.command,
            judge_command=repository.command,
            must_pass=must_pass,
            changed=tuple(added.sources),
        )

    return Listed(
        id=task_id, split=split, make=lambda bench: bench.cached(task_id, lambda at: fill(bench, at))
    )


def found(bench: Bench, repository: Repository, count: int) -> Iterator[str]:
    """The newest commits that make a task."""
    mirror = mirror_path(bench.mirrors, repository.name)
    looked_at = git(mirror, "log", "--no-merges", "--format=%H", f"-{LOOKED_AT}", repository.commit).split()
    for commit in looked_at:
        try:
            task = feature_task(repository, commit).make(bench)
        except (NotSmall, SyntaxError, ValueError):  # ValueError: binary files have no lines
            continue
        except (NoFeature, BenchmarkError) as exc:
            print(f"{repository.short} {commit[:8]}: {str(exc)[:100]!r}", flush=True)
            continue
        print(f"{repository.short} {commit[:8]}: {task.words!r}", flush=True)
        yield commit
        count -= 1
        if not count:
            return


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path, help="folder outside this repository")
    parser.add_argument("mirrors", help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--find", type=int, metavar="N", required=True, help="tasks a repository")
    asked = parser.parse_args()
    bench = Bench(work=asked.work.resolve(), mirrors=asked.mirrors)
    commits: dict[str, list[str]] = {}
    for repository in repositories():
        for commit in found(bench, repository, asked.find):
            commits.setdefault(repository.name, []).append(commit)
            COMMITS.write_text(HEAD + tomli_w.dumps({"commits": commits}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
