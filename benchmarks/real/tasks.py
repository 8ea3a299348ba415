"""What a task is, where it lies in the work folder, and how a result is judged.

WORK/tasks/ID/task.json   the task
WORK/tasks/ID/start/      the repository that an arm is given a copy of, with one commit
WORK/tasks/ID/judge/      files that replace the result's own before its tests are run
"""

import ast
import hashlib
import json
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.commits.checkouts import (
    BenchmarkError,
    environment_folder,
    git,
    mirror_path,
    run_bounded,
    test_environment,
)
from benchmarks.commits.commit_list import EnvironmentEntry

LIST = Path(__file__).with_name("repositories.toml")
EXCLUDED = Path(__file__).with_name("excluded.txt")
"""What must not be trained on, as `cra bootstrap --exclude` reads it."""
PLUGIN = Path(__file__).with_name("report_plugin.py")
IDENTITY = ("-c", "user.name=Una User", "-c", "user.email=una@example.org", "-c", "commit.gpgsign=false")
MEMORY = 4 << 30
SUITE_TIMEOUT_S = 120.0
PYTEST = ("python", "-m", "pytest", "-q", "--timeout=10")
"""For small tasks, in which whatever a model writes may loop."""


class Comparison(Struct, frozen=True, kw_only=True):
    """What a failing test compared; see `report_plugin.py`."""

    test: str
    call: str
    got: str
    expected: str
    raised: str
    """Not empty: `got` is an error."""


class Report(Struct, frozen=True, kw_only=True):
    """One run of a test suite."""

    outcomes: Mapping[str, str] = {}
    comparisons: tuple[Comparison, ...] = ()
    lines: tuple[tuple[str, int], ...] = ()
    """That ran, where it was asked for."""
    output: str = ""

    def passed(self) -> frozenset[str]:
        """The ids of the tests that passed."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")


class Task(Struct, frozen=True, kw_only=True):
    """One task for all arms."""

    id: str
    set: str
    split: str
    """dev or test."""
    words: str
    command: tuple[str, ...]
    """Runs the tests that are in sight."""
    judge_command: tuple[str, ...]
    """Runs the tests that judge, once their files are in place."""
    must_pass: tuple[str, ...]
    changed: tuple[str, ...]
    """The files that the right solution changes: no arm is told."""
    files: tuple[str, ...] = ()
    """Those that the task names."""
    environment: str = ""
    """The folder of its tests' environment, where it is not that of `repositories.toml`."""


class Listed(Struct, frozen=True, kw_only=True):
    """A task of a set, which is made when it is needed."""

    id: str
    split: str
    make: Callable[["Bench"], Task]


class Bench(Struct, frozen=True, kw_only=True):
    """The folder in which everything is made, and where the repositories are."""

    work: Path
    mirrors: str
    """With {owner} and {name}."""

    def environment(self) -> Path:
        """The virtual environment of the tests, made on first use."""
        table = tomllib.loads(LIST.read_text(encoding="utf-8"))["environment"]
        return environment_folder(self.work, "real", EnvironmentEntry.model_validate(table))

    def variables(self, tree: Path, environment: str = "") -> dict[str, str]:
        """The environment variables under which the tree's tests run."""
        entry = EnvironmentEntry(kind="python", version="", requirements=())
        folder = Path(environment) if environment else self.environment()
        return test_environment(self.work, tree, entry, folder)

    def export(self, repository: str, commit: str, folder: Path) -> None:
        """The folder holds the commit's files, without a `.git`."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        source = mirror_path(self.mirrors, repository)
        git(folder.parent, "clone", "--quiet", "--no-checkout", "--shared", str(source), str(folder))
        git(folder, "checkout", "--quiet", commit)
        shutil.rmtree(folder / ".git")

    def confined(self, command: Sequence[str], writable: Path, *, network: bool) -> tuple[str, ...]:
        """The command, writing only below one folder, in bounded memory: what it runs was written by a small model."""
        shown = ("--ro-bind", str(self.work), str(self.work), "--bind", str(writable), str(writable))
        apart = ("--unshare-pid", *(() if network else ("--unshare-net",)), "--die-with-parent")
        mounts = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", *shown)
        return ("bwrap", *mounts, *apart, "prlimit", f"--as={MEMORY}", *command)

    def run_suite(
        self,
        tree: Path,
        command: Sequence[str],
        environment: str = "",
        *,
        timeout: float = SUITE_TIMEOUT_S,
        lines: bool = False,
    ) -> Report:
        """The tests have run, without network and in bounded memory. No outcomes: they were stopped, or did not start."""
        plugins = self.work / "plugins"
        plugins.mkdir(exist_ok=True)
        shutil.copy(PLUGIN, plugins)
        file = tree.parent / f"{tree.name}.report.json"
        file.unlink(missing_ok=True)
        variables = self.variables(tree, environment)
        variables |= {"PYTHONHASHSEED": "0", "REAL_REPORT": str(file)} | (
            {"REAL_LINES": "1"} if lines else {}
        )
        variables["PYTHONPATH"] += f":{plugins}"
        plugin = ("-p", "report_plugin", "-p", "no:cacheprovider")
        confined = self.confined((*command, *plugin), tree.parent, network=False)
        _, output = run_bounded(confined, tree, variables, timeout)
        if not file.exists():
            return Report(output=output)
        told = json.loads(file.read_text(encoding="utf-8"))
        return msgspec.convert({**told, "output": output[-4000:]}, Report)

    def folder(self, task_id: str) -> Path:
        """Where a task lies."""
        return self.work / "tasks" / task_id

    def cached(self, task_id: str, make: Callable[[Path], Task]) -> Task:
        """The task, made on first use by `make` in a folder that becomes its own when it is complete."""
        folder = self.folder(task_id)
        if not folder.exists():
            scratch = self.work / "making" / task_id
            shutil.rmtree(scratch, ignore_errors=True)
            (scratch / "judge").mkdir(parents=True)
            task = make(scratch)
            commit_all(scratch / "start")
            (scratch / "task.json").write_bytes(msgspec.json.encode(task))
            folder.parent.mkdir(exist_ok=True)
            scratch.rename(folder)
        return msgspec.json.decode((folder / "task.json").read_bytes(), type=Task)

    def passing(
        self, start: Path, right: Mapping[str, str], command: Sequence[str], environment: str = ""
    ) -> tuple[str, ...]:
        """The tests that pass once these files (path -> text) are right.

        Raises:
            BenchmarkError: none does.
        """
        sound = start.with_name("sound")
        shutil.copytree(start, sound)
        write_files(sound, right)
        report = self.run_suite(sound, command, environment)
        shutil.rmtree(sound)
        if not report.passed():
            raise BenchmarkError(f"{start}: the right solution passes no test\n{report.output}")
        return tuple(sorted(report.passed()))

    def solved(self, task: Task, tree: Path) -> bool:
        """Whether the tests that judge pass on a copy of the tree, whatever its own tests have become.

        Raises:
            BenchmarkError: these tests do not run here at all, so nothing is known.
        """
        report = self._judged(task, tree, tree.with_name("judged"))
        if not report.outcomes:
            unchanged = self._judged(task, self.folder(task.id) / "start", tree.with_name("judged"))
            if not unchanged.outcomes:
                raise BenchmarkError(f"{task.id}: the tests that judge do not run\n{unchanged.output}")
        return set(task.must_pass) <= report.passed()

    def _judged(self, task: Task, tree: Path, copy: Path) -> Report:
        """The run of the tests that judge on a copy of the tree, which is gone afterwards."""
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".git", ".clean_room"), symlinks=True)
        shutil.copytree(self.folder(task.id) / "judge", copy, dirs_exist_ok=True)
        report = self.run_suite(copy, task.judge_command, task.environment)
        shutil.rmtree(copy)
        return report


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """The files (path -> text) are in the folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def commit_all(tree: Path) -> None:
    """The tree is a repository with one commit, of all its files."""
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "config", "user.name", "Una User")
    git(tree, "config", "user.email", "una@example.org")
    git(tree, "add", "--all", "--force")
    git(tree, *IDENTITY, "commit", "--quiet", "--message", "Start")


def parses(text: str) -> bool:
    """Whether it is Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def split_of(name: str) -> str:
    """Which of dev and test it is in, by the name alone."""
    return ("dev", "test")[hashlib.sha256(name.encode()).digest()[0] % 2]
