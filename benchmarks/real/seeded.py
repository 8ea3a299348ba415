"""One-line faults in documented definitions of real repositories: what the benchmark of forms is made from.

A fault is one mutation of one line of a definition all of whose documented examples hold. It is kept if some example then
fails, by its value, and runs the line. The first one that fails is the goal; the others are held back to judge by.
"""

import ast
import contextlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from benchmarks.commits.checkouts import git, mirror_path
from benchmarks.real.tasks import Bench, parses, split_of, write_files
from clean_room_agent.artifacts.goals import GoalSource, GoalTest, TracedFunction
from clean_room_agent.languages.python.mutations import Functions, is_docstring, mutations

JUDGE = Path(__file__).with_name("example_judge.py")
SEED = 7
MOST = 30
"""Faults of a repository."""
MOST_A_DEFINITION = 3
TRIED_A_DEFINITION = 40
LINES = (3, 45)
"""Of a definition, its docstring left out."""
MOST_CHARS = 160
"""Of a call, and of its value."""


class Repository(Struct, frozen=True, kw_only=True):
    """Where documented definitions are."""

    name: str
    commit: str
    root: str
    """The folder from which its package is imported."""
    sources: tuple[str, ...]
    written: tuple[tuple[str, str], ...] = ()
    """Files that its build would have written, or that stand for packages it imports."""

    @property
    def split(self) -> str:
        """`dev` or `test`."""
        return split_of(self.name)


REPOSITORIES = (
    Repository(
        name="python-humanize/humanize",
        commit="c3a124cdeb272d7f63bc0aa66f79c6fbafd2fc6d",
        root="src",
        sources=("src/humanize",),
        written=(("src/humanize/_version.py", '__version__ = "4"\n'),),
    ),
    Repository(
        name="pallets/werkzeug",
        commit="1b00618e787f40dfb21eba29caf8f8be7c8e1d93",
        root="src",
        sources=("src/werkzeug",),
    ),
    Repository(
        name="mahmoud/boltons",
        commit="967864f89791509f9eb36b22b4579d36b72a6df2",
        root="",
        sources=("boltons",),
    ),
    Repository(
        name="more-itertools/more-itertools",
        commit="2fe1b2eeb9d75f994113fe3ac76d14b6bcd6fb10",
        root="",
        sources=("more_itertools",),
    ),
    Repository(
        name="dgilland/pydash",
        commit="3585eb29018ea1535e7df4e10b33df68bbffcf9e",
        root="src",
        sources=("src/pydash",),
    ),
    Repository(
        name="pytoolz/toolz",
        commit="568c2b8393973cd172a466546c9d95779c452438",
        root="",
        sources=("toolz",),
    ),
    Repository(
        name="astanin/python-tabulate",
        commit="268615a5c27dc40e5c22454c07b44d5c50410da0",
        root="",
        sources=("tabulate",),
    ),
)


class Example(Struct, frozen=True, kw_only=True, array_like=True):
    """A documented example that was run."""

    source: str
    want: str
    got: str
    """"" where it is as documented."""
    lines: tuple[int, ...] = ()


class SeededFault(Struct, frozen=True, kw_only=True):
    """A definition with a fault, and its right text."""

    id: str
    repository: str
    path: str
    module: str
    name: str
    kind: str
    good: str
    """The file's text."""
    bad: str
    goal: GoalTest
    traced: TracedFunction
    goal_at: int
    """Which of the examples is the goal."""
    passing: tuple[int, ...]
    """The examples that hold in spite of the fault."""
    examples: int
    new: bool
    """Whether the definition is younger than `NEW_SINCE`."""


NEW_SINCE = "2024-07-01"
"""Before this, a definition may have been in the model's training data in just this repository."""


class ExampleJudge:
    """Runs examples of one repository's definitions in a sandbox. Use as a context manager."""

    def __init__(self, bench: Bench, repository: Repository, tree: Path) -> None:
        root = tree / repository.root
        # Of what is in /tmp, where this may stand, only the work folder is seen in the sandbox.
        installed = bench.environment() / "venv"
        python = (installed / "bin" / "python").resolve()
        program = bench.work / JUDGE.name
        shutil.copy(JUDGE, program)
        command = bench.confined((str(python), str(program)), tree, network=False)
        packages = next(installed.glob("lib/python*/site-packages"))
        environment = {
            "PYTHONPATH": f"{root}:{packages}",
            "PYTHONHASHSEED": "0",
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
        }
        self._start = partial(
            subprocess.Popen[str],
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def run(
        self, module: str, name: str, text: str, *, document: str, trace: bool = False
    ) -> tuple[Example, ...] | None:
        """The examples with this text of the file; None if they could not be run to their end, as they ended the process."""
        asked = {"module": module, "name": name, "text": text, "document": document, "trace": trace}
        line = self._answer(json.dumps(asked) + "\n")
        told = json.loads(line or "{}")
        return None if "results" not in told else msgspec.convert(told["results"], tuple[Example, ...])

    def _answer(self, asked: str) -> str:
        """The line that the process answers; "" if that ended it. One that an earlier text ended later on is started anew."""
        for _ in range(2):
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            try:
                self._process.stdin.write(asked)
                self._process.stdin.flush()
            except BrokenPipeError:
                self._restart()
                continue
            line = self._process.stdout.readline()
            if not line:
                self._restart()
            return line
        return ""

    def _restart(self) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._process = self._start()


def tree_of(bench: Bench, repository: Repository) -> Path:
    """The repository's files, exported on first use."""
    tree = bench.work / "seeded" / repository.name.replace("/", "+") / "tree"
    if not tree.exists():
        bench.export(repository.name, repository.commit, tree)
        write_files(tree, dict(repository.written))
    return tree


def faults(bench: Bench, repository: Repository, most: int) -> list[SeededFault]:
    """At most so many of the repository's `MOST` faults, which are made once; one of each definition before further ones."""
    tree = tree_of(bench, repository)
    kept = tree.with_name("faults.json")
    if not kept.exists():
        found: list[tuple[int, SeededFault]] = []
        known = _names_then(bench, repository)
        with ExampleJudge(bench, repository, tree) as judge:
            for path, name, text in _definitions(tree, repository, known):
                if len(found) >= MOST:
                    break
                made = _of_definition(judge, repository, path, name, text)
                new = _leaf(name) not in known
                found += enumerate(msgspec.structs.replace(one, new=new) for one in made)
        ordered = [fault for _, fault in sorted(found[:MOST], key=lambda one: one[0])]
        kept.write_bytes(msgspec.json.encode(ordered))
    return msgspec.json.decode(kept.read_bytes(), type=list[SeededFault])[:most]


def _names_then(bench: Bench, repository: Repository) -> frozenset[str]:
    """The names of all that the repository defined at `NEW_SINCE`."""
    mirror = mirror_path(bench.mirrors, repository.name)
    then = git(mirror, "rev-list", "-1", f"--before={NEW_SINCE}", repository.commit)
    found = git(mirror, "grep", "-h", "-E", r"^ *(async )?def +[A-Za-z0-9_]+", then, "--", "*.py")
    return frozenset(line.split("def ", 1)[1].partition("(")[0].strip() for line in found.splitlines())


def _definitions(tree: Path, repository: Repository, known: frozenset[str]) -> list[tuple[str, str, str]]:
    """(path, qualified name, file text) of each documented function and method, in an order drawn by the seed, but
    those first that are not `known`.
    """
    found = []
    for source in repository.sources:
        for file in sorted((tree / source).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            path = file.relative_to(tree).as_posix()
            found += [(path, name, text) for name in _documented(ast.parse(text), "") if "test" not in path]
    random.Random(SEED).shuffle(found)
    return sorted(found, key=lambda one: _leaf(one[1]) in known)


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _documented(scope: ast.Module | ast.ClassDef, holder: str) -> Iterator[str]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _documented(node, f"{holder}{node.name}.")
        elif isinstance(node, Functions) and ">>>" in (ast.get_docstring(node) or ""):
            body = [one for one in node.body if not is_docstring(one)]
            size = sum((one.end_lineno or one.lineno) - one.lineno + 1 for one in body)
            if LINES[0] <= size <= LINES[1]:
                yield f"{holder}{node.name}"


def _of_definition(
    judge: ExampleJudge, repository: Repository, path: str, name: str, text: str
) -> Iterator[SeededFault]:
    module = ".".join(Path(path).relative_to(repository.root).with_suffix("").parts).removesuffix(".__init__")
    base = judge.run(module, name, text, document=text)
    if not base or any(example.got for example in base):
        return
    first, last = _lines(text, name)
    there = [one for one in mutations(text) if first <= text.encode()[: one.start].count(b"\n") + 1 <= last]
    drawn = random.Random(f"{SEED}{path}{name}")
    drawn.shuffle(there)
    kept, crashed = 0, False
    seen: set[int] = set()
    for mutation in there[:TRIED_A_DEFINITION]:
        bad = mutation.applied(text)
        line = text.encode()[: mutation.start].count(b"\n") + 1
        one_line = bad.count("\n") == text.count("\n")
        if kept == MOST_A_DEFINITION or line in seen or not one_line or not parses(bad):
            continue
        fault = _judged(judge, repository, path, name, text, bad, module)
        crashes = fault is not None and fault.goal.got.startswith("raises ")
        if fault is None or (crashes and crashed) or line not in {number for number, _ in fault.traced.lines}:
            continue
        seen.add(line)
        kept += 1
        crashed = crashed or crashes
        yield msgspec.structs.replace(fault, id=f"{repository.name}:{name}:{line}", kind=mutation.kind)


def _lines(text: str, name: str) -> tuple[int, int]:
    """First and last line of the definition."""
    scope: list[ast.stmt] = ast.parse(text).body
    node: ast.stmt | None = None
    for part in name.split("."):
        node = next(one for one in scope if getattr(one, "name", "") == part)
        scope = getattr(node, "body", [])
    assert node is not None
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
    return first, node.end_lineno or first


def _judged(
    judge: ExampleJudge, repository: Repository, path: str, name: str, text: str, bad: str, module: str
) -> SeededFault | None:
    """The fault, if an example that can be told fails with it."""
    ran = judge.run(module, name, bad, document=text, trace=True)
    if ran is None:
        return None
    failing = [at for at, example in enumerate(ran) if example.got]
    at = next((at for at in failing if _can_be_told(ran[at])), None)
    if at is None or at != failing[0]:
        return None
    goal = ran[at]
    setup = [one.source.strip() for one in ran[:at] if _sets_up(one.source, goal.source)][-2:]
    call = "; ".join((*setup, goal.source.strip()))
    passing = [other for other, example in enumerate(ran) if not example.got]
    others = [set(ran[other].lines) for other in passing if ran[other].lines]
    lines = tuple((line, (1 / (1 + sum(line in one for one in others))) ** 0.5) for line in goal.lines)
    return SeededFault(
        id="",
        repository=repository.name,
        path=path,
        module=module,
        name=name,
        kind="",
        good=text,
        bad=bad,
        goal=GoalTest(
            name=f"{path}::{name}",
            source=GoalSource.DOCUMENTED,
            path=path,
            call=call,
            wanted=goal.want.strip(),
            got=goal.got[:MOST_CHARS],
        ),
        traced=TracedFunction(path=path, name=name, first_line=_lines(bad, name)[0], calls=1, lines=lines),
        goal_at=at,
        passing=tuple(passing),
        examples=len(ran),
        new=False,
    )


def _can_be_told(example: Example) -> bool:
    source, want = example.source.strip(), example.want.strip()
    plain = not source.startswith(("import", "from", "def", "class", "@", "print(")) and "\n" not in source
    short = max(len(source), len(want)) <= MOST_CHARS and want and "\n" not in want and "..." not in want
    return bool(plain and short and "Traceback" not in want and example.got != "(nothing)")


def _sets_up(source: str, call: str) -> bool:
    """Whether the example only gives a value to a name that the call reads."""
    name, found, _ = source.strip().partition(" = ")
    return bool(found) and name.isidentifier() and name in call and "\n" not in source.strip()
