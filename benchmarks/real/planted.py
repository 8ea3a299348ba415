"""Faults planted in real repositories, told in a sentence that is made from what a test got and expected.

    python -m benchmarks.real.planted WORK MIRRORS --find N

A fault is a number: with the repository's commit, the seed decides which mutation (`languages/python/mutations.py`) of which file it is.
`--find` goes through the seeds from 0 and writes those into `planted.toml` that make a task, N a repository: the suite
still runs; at least one and at most six tests fail that passed; and one of them compares a call on literal values, which
holds by itself without the fault. Nothing else decides. In the variant `red`, these tests are in the repository; in `words` they are taken out. The verdict: they
pass, and so does every other test that passed before the fault.
"""

import argparse
import ast
import random
import shutil
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import tomli_w
from msgspec import Struct

from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.real.tasks import LIST, Bench, Comparison, Listed, Report, Task, parses, split_of
from clean_room_agent.languages.mutation import Mutation
from clean_room_agent.languages.python.mutations import Functions, mutations

SEEDS = Path(__file__).with_name("planted.toml")
MOST_BROKEN = 6
MOST_TRIED = 8
"""Comparisons of a fault."""
PROBE = "test_that_a_sentence_is_true_"
EVALUATE = """

def _evaluated(expression):
    import builtins, os, sys
    known = dict(globals())
    own = [one for one in list(sys.modules.values()) if str(getattr(one, "__file__", "")).startswith(os.getcwd())]
    for name in compile(expression, "", "eval").co_names:
        if f"{name}.{name}" in expression:
            known[name] = sys.modules.get(name, known.get(name))
        elif type(known.get(name)) is type(sys):
            known[name] = getattr(known[name], name, known[name])
        if name not in known and not hasattr(builtins, name):
            known.update({name: getattr(one, name) for one in reversed(own) if hasattr(one, name)})
    return eval(expression, known)
"""
"""Knows what the test file does, and else what a module of the repository does: a sentence leaves modules out."""
SEARCH_TIMEOUT_S = 90.0
LINES_TIMEOUT_S = 600.0
HEAD = "# The seeds that make a task, by repository; found by `python -m benchmarks.real.planted --find`.\n\n"


class Repository(Struct, frozen=True, kw_only=True):
    """An entry of `repositories.toml`."""

    name: str
    commit: str
    sources: tuple[str, ...]
    command: tuple[str, ...]
    written: dict[str, str] = {}

    @property
    def short(self) -> str:
        """The name without its owner."""
        return self.name.split("/")[1]


class Fault(Struct, frozen=True, kw_only=True):
    """What a seed plants."""

    path: str
    mutation: Mutation

    def line(self, base: Path) -> int:
        """Where it is, from 1."""
        return (base / self.path).read_bytes()[: self.mutation.start].count(b"\n") + 1


class NoTask(Exception):
    """A fault makes no task; says why."""


def repositories() -> list[Repository]:
    """The list, in its order."""
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["repositories"]
    return [msgspec.convert({"name": name, **table}, Repository) for name, table in tables.items()]


def tasks(variant: str) -> list[Listed]:
    """The tasks of `planted.toml`, one repository after the other."""
    known = {repository.name: repository for repository in repositories()}
    seeds = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["seeds"]
    return [planted_task(known[name], seed, variant) for name in seeds for seed in seeds[name]]


def planted_task(repository: Repository, seed: int, variant: str) -> Listed:
    """The task of a seed; to make it raises `NoTask` if the seed makes none."""
    task_id = f"planted-{repository.short}-{seed}-{variant}"
    split = split_of(f"{repository.name} {seed}")

    def make(bench: Bench) -> Task:
        return bench.cached(task_id, lambda folder: fill(bench, folder))

    def fill(bench: Bench, folder: Path) -> Task:
        sound, before = base_of(bench, repository)
        tree = folder / "start"
        report = planted(bench, repository, seed, tree, SEARCH_TIMEOUT_S)
        fault = fault_of(sound, repository, seed)
        broken, comparisons = admitted(before, report)
        comparison = true_one(bench, sound, tree, comparisons)
        for test in broken:
            path = test.split("::")[0]
            (folder / "judge" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(sound / path, folder / "judge" / path)
        if variant == "words":
            take_out(tree, broken)
        return Task(
            id=task_id,
            set=f"planted-{variant}",
            split=split,
            words=sentence(comparison),
            command=repository.command,
            judge_command=repository.command,
            must_pass=tuple(sorted(before.passed())),
            changed=(fault.path,),
        )

    return Listed(id=task_id, split=split, make=make)


def base_of(bench: Bench, repository: Repository) -> tuple[Path, Report]:
    """The repository's files without a fault, and what their tests say each time; made on first use.

    Raises:
        BenchmarkError: there is no mirror, or no test passes.
    """
    folder = bench.work / "bases" / f"{repository.short}-{repository.commit[:8]}"
    told = folder.with_suffix(".json")
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)
        bench.export(repository.name, repository.commit, folder)
        for path, text in repository.written.items():
            (folder / path).write_text(text + "\n", encoding="utf-8")
        first, second = (bench.run_suite(folder, repository.command) for _ in range(2))
        stable = dict(first.outcomes.items() & second.outcomes.items())
        report = Report(outcomes=stable)
        if not report.passed():
            raise BenchmarkError(f"{repository.name}: no test passes\n{first.output[-2000:]}")
        told.write_bytes(msgspec.json.encode(report))
    return folder, msgspec.json.decode(told.read_bytes(), type=Report)


def planted(bench: Bench, repository: Repository, seed: int, tree: Path, timeout: float) -> Report:
    """The tree is the repository with the seed's fault; what its tests say."""
    base, _ = base_of(bench, repository)
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(base, tree, symlinks=True)
    fault = fault_of(base, repository, seed)
    file = tree / fault.path
    file.write_text(fault.mutation.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
    return bench.run_suite(tree, repository.command, timeout=timeout)


def fault_of(base: Path, repository: Repository, seed: int) -> Fault:
    """The seed's fault: first its kind is drawn, so that frequent kinds do not crowd out the others."""
    by_kind: dict[str, list[Fault]] = defaultdict(list)
    for path in sorted(source_files(base, repository.sources)):
        name = path.relative_to(base).as_posix()
        for mutation in mutations(path.read_text(encoding="utf-8")):
            by_kind[mutation.kind].append(Fault(path=name, mutation=mutation))
    draw = random.Random(f"{repository.name} {seed}")
    while True:
        fault = draw.choice(by_kind[draw.choice(sorted(by_kind))])
        if parses(fault.mutation.applied((base / fault.path).read_text(encoding="utf-8"))):
            return fault


def source_files(base: Path, sources: Iterable[str]) -> Iterator[Path]:
    """The Python files that are, or are below, one of the paths."""
    for source in sources:
        yield from [base / source] if (base / source).is_file() else (base / source).rglob("*.py")


def admitted(before: Report, after: Report) -> tuple[list[str], list[Comparison]]:
    """The tests that the fault breaks, and their comparisons, the shortest first.

    Raises:
        NoTask: the fault makes no task.
    """
    broken = sorted(before.passed() - after.passed())
    functions = {test.split("[")[0] for test in broken}
    if not after.outcomes or set(broken) - set(after.outcomes):
        raise NoTask("the suite does not end")
    if not 1 <= len(functions) <= MOST_BROKEN:
        raise NoTask(f"{len(functions)} tests break")
    told = [comparison for comparison in after.comparisons if comparison.test in broken]
    if not told:
        raise NoTask("no test compares a call on literal values")
    return broken, sorted(told, key=lambda comparison: (len(comparison.call), comparison.call))


def true_one(bench: Bench, sound: Path, faulty: Path, comparisons: Sequence[Comparison]) -> Comparison:
    """The first comparison that holds by itself, in its test's file, without the fault, and not with it: what a test compares
    may depend on what it did before.

    Raises:
        NoTask: none does.
    """
    tried = comparisons[:MOST_TRIED]
    added: dict[str, str] = {}
    for number, one in enumerate(tried):
        if parses(f"({one.call}) == ({one.expected})"):
            compared = f"_evaluated({one.call!r}) == _evaluated({one.expected!r})"
            code = f"\n\ndef {PROBE}{number}():\n    assert {compared}\n"
            added[_file(one)] = added.get(_file(one), EVALUATE) + code
    passed: list[frozenset[str]] = []
    for tree in (sound, faulty) if added else ():
        copy = faulty.with_name("sentences")
        shutil.copytree(tree, copy, symlinks=True)
        for path, code in added.items():
            with (copy / path).open("a", encoding="utf-8") as file:
                file.write(code)
        report = bench.run_suite(copy, ("python", "-m", "pytest", "-q", "-o", "addopts=", *added))
        passed.append(report.passed())
        shutil.rmtree(copy)
    for number, one in enumerate(tried):
        name = f"{_file(one)}::{PROBE}{number}"
        if added and name in passed[0] - passed[1]:
            return one
    raise NoTask("no comparison holds by itself")


def _file(comparison: Comparison) -> str:
    return comparison.test.split("::")[0]


def sentence(comparison: Comparison) -> str:
    """What a user would say who met it."""
    verb = "fails with" if comparison.raised else "gives"
    return f"`{comparison.call}` {verb} `{comparison.got}`, but it should give `{comparison.expected}`."


def take_out(tree: Path, tests: Iterable[str]) -> None:
    """The test functions are no longer in their files.

    Raises:
        NoTask: one is not where its id says.
    """
    for function in sorted({test.split("[")[0] for test in tests}):
        path, *names = function.split("::")
        file = tree / path
        text = file.read_text(encoding="utf-8")
        scope: ast.Module | ast.ClassDef | Functions = ast.parse(text)
        owner = scope
        for name in names:
            owner, inner = scope, [node for node in scope.body if getattr(node, "name", "") == name]
            if not inner or not isinstance(inner[0], ast.ClassDef | Functions):
                raise NoTask(f"{function} is defined elsewhere")
            scope = inner[0]
        assert isinstance(scope, ast.ClassDef | Functions)
        first = min([scope.lineno, *(decorator.lineno for decorator in scope.decorator_list)])
        lines = text.splitlines(keepends=True)
        left = [" " * scope.col_offset + "pass\n"] if len(owner.body) == 1 else []
        file.write_text("".join([*lines[: first - 1], *left, *lines[scope.end_lineno :]]), encoding="utf-8")


def find(bench: Bench, count: int, most: int) -> None:
    """The first `count` seeds of each repository that make a task, of the first `most`, are in `planted.toml`."""
    known: dict[str, list[int]] = {}
    if SEEDS.exists():
        known = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["seeds"]
    for repository in repositories():
        seeds = known.setdefault(repository.name, [])
        base, _ = base_of(bench, repository)
        told = base.with_suffix(".lines.json")
        if not told.exists():
            told.write_bytes(
                msgspec.json.encode(
                    bench.run_suite(base, repository.command, timeout=LINES_TIMEOUT_S, lines=True)
                )
            )
        ran = set(msgspec.json.decode(told.read_bytes(), type=Report).lines)
        for seed in range(max([-1, *seeds]) + 1, most):
            if len(seeds) >= count:
                break
            fault = fault_of(base, repository, seed)
            if (fault.path, fault.line(base)) not in ran:
                continue  # no test would break: this only saves the time to see that
            try:
                task = planted_task(repository, seed, "words").make(bench)
            except NoTask as exc:
                print(f"{repository.short} {seed}: {exc}", flush=True)
                continue
            print(f"{repository.short} {seed}: {task.words}", flush=True)
            seeds.append(seed)
            SEEDS.write_text(HEAD + tomli_w.dumps({"seeds": known}), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path, help="folder outside this repository")
    parser.add_argument("mirrors", help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--find", type=int, metavar="N", required=True, help="tasks a repository")
    parser.add_argument("--most", type=int, default=200, help="seeds that are tried")
    asked = parser.parse_args()
    find(Bench(work=asked.work.resolve(), mirrors=asked.mirrors), asked.find, asked.most)
    return 0


if __name__ == "__main__":
    sys.exit(main())
