"""Checkouts, environments and test runs of other people's repositories, all below one work folder."""

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.commits.commit_list import CommitEntry, CommitList, EnvironmentEntry
from benchmarks.commits.runner_reports import read_report, reporting

TEST_TIMEOUT_S = 120.0
INSTALL_TIMEOUT_S = 900.0
# The tests see nobody but the loopback interface, and none of the caller's settings.
WITHOUT_NETWORK = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


class BenchmarkError(Exception):
    """The list, a mirror or an environment is not as the benchmark needs it."""


class TestRun(Struct, frozen=True, kw_only=True):
    """One run of a test command: test id -> passed, failed or skipped. Without a report the tests are empty.

    `seconds` is wall clock; `work_seconds` is processor time, which other programs on the machine do not change.
    """

    outcomes: Mapping[str, str]
    returncode: int
    seconds: float
    work_seconds: float
    output: str

    def passed(self) -> frozenset[str]:
        """The ids of the tests that passed."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")


def git(where: Path, *words: str) -> str:
    """What git printed, less the line break at its end.

    Raises:
        BenchmarkError: git failed.
    """
    # Neither the caller's settings nor hooks may decide what a checkout holds.
    settings = (
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "advice.detachedHead=false",
        "-c",
        "core.autocrlf=false",
    )
    done = subprocess.run(
        ("git", *settings, *words), cwd=where, capture_output=True, check=False, timeout=INSTALL_TIMEOUT_S
    )
    if done.returncode:
        raise BenchmarkError(f"git {' '.join(words[:3])}: {done.stderr.decode(errors='replace').strip()}")
    return os.fsdecode(done.stdout).removesuffix("\n")


def folder_name(repository: str) -> str:
    """`owner/name` as one folder's name."""
    return repository.replace("/", "+")


def mirror_path(pattern: str, repository: str) -> Path:
    """Where `--mirror` says that the repository is; the pattern holds {owner} and {name}."""
    owner, name = repository.split("/")
    return Path(pattern.format(owner=owner, name=name))


def clone(work: Path, mirror: str, repository: str) -> Path:
    """A checkout of our own of the mirrored repository, made on first use."""
    tree = work / "trees" / folder_name(repository)
    if not (tree / ".git").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        source = mirror_path(mirror, repository)
        git(tree.parent, "clone", "--quiet", "--no-checkout", str(source), str(tree))
        (tree / ".git" / "info" / "exclude").write_text("node_modules\n", encoding="utf-8")
    return tree


def message_of(tree: Path, commit: str) -> str:
    """The commit's message: the task in words."""
    return git(tree, "log", "-1", "--format=%B", commit).strip()


def put_base(tree: Path, entry: CommitEntry) -> None:
    """The tree is the commit's parent with the commit's test files; nothing else is in it."""
    git(tree, "checkout", "--quiet", "--force", "--detach", entry.base)
    git(tree, "clean", "-ffdxq", "-e", "node_modules")
    bring(tree, entry.commit, entry.test_files)


def bring(tree: Path, commit: str, paths: Iterable[str]) -> None:
    """These paths are in the tree as they are in the commit; those that it does not have are gone."""
    held = set(git(tree, "ls-tree", "-r", "-z", "--name-only", commit).split("\0"))
    for path in sorted(paths):
        if path in held:
            git(tree, "checkout", "--quiet", commit, "--", path)
        else:
            (tree / path).unlink(missing_ok=True)


def environment_folder(work: Path, name: str, entry: EnvironmentEntry) -> Path:
    """The environment, built outside every checkout on first use, and anew when its description changes.

    Raises:
        BenchmarkError: the installation failed, or this machine's interpreter is of another version.
    """
    key = hashlib.sha256(entry.model_dump_json().encode()).hexdigest()[:12]
    folder = work / "environments" / f"{name}-{key}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _check_version(entry)
    if entry.kind == "python":
        python = folder / "venv" / "bin" / "python"
        _install((sys.executable, "-m", "venv", str(folder / "venv")), folder)
        _install((str(python), "-m", "pip", "install", "--quiet", "--no-deps", *entry.requirements), folder)
        site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        for file, text in sorted(entry.site_files.items()):
            (site / file).write_text(text, encoding="utf-8")
    else:
        (folder / "package.json").write_text("{}\n", encoding="utf-8")
        quiet = (
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            f"--before={entry.before}",
        )
        _install(("npm", "install", *quiet, *entry.requirements), folder)
    (folder / "complete").touch()
    return folder


def _check_version(entry: EnvironmentEntry) -> None:
    program = sys.executable if entry.kind == "python" else "node"
    found = subprocess.run((program, "--version"), capture_output=True, text=True, check=True).stdout
    number = found.strip().removeprefix("Python ").removeprefix("v")
    if not f"{number}.".startswith(f"{entry.version}."):
        raise BenchmarkError(f"{entry.kind} {entry.version} is needed, {number} runs here")


def _install(command: tuple[str, ...], where: Path) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, check=False, timeout=INSTALL_TIMEOUT_S)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command[:4])}: {done.stderr.decode(errors='replace')[-2000:]}")


def test_environment(work: Path, tree: Path, entry: EnvironmentEntry, folder: Path) -> dict[str, str]:
    """The variables under which the tests run: imports resolve in the tree, programs in the environment."""
    home = work / "home"
    home.mkdir(exist_ok=True)
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin"
    variables = {"HOME": str(home), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    if entry.kind == "python":
        return {
            **variables,
            "PATH": f"{folder / 'venv' / 'bin'}:{path}",
            "PYTHONPATH": f"{tree}:{tree / 'src'}",
        }
    programs = os.pathsep.join(
        sorted({str(Path(found).parent) for found in [shutil.which("node") or ""] if found})
    )
    link = tree / "node_modules"
    link.unlink(missing_ok=True)
    link.symlink_to(folder / "node_modules")
    return {**variables, "PATH": f"{link / '.bin'}:{programs}:{path}"}


def run_tests(work: Path, tree: Path, listed: CommitList, entry: CommitEntry, *, seed: int = 0) -> TestRun:
    """The commit's test command has run once in the tree, without network. `seed` orders Python's sets."""
    kind = listed.environments[entry.environment]
    folder = environment_folder(work, entry.environment, kind)
    variables = {**test_environment(work, tree, kind, folder), "PYTHONHASHSEED": str(seed)}
    runner = listed.repositories[entry.repository].runner
    report = report_path(work, entry)
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    command = reporting(runner, entry.command, report)
    started, worked = time.monotonic(), _children_seconds()
    returncode, output = run_bounded((*WITHOUT_NETWORK, *command), tree, variables)
    if runner == "ava":  # it writes its report to where its tests write, and shortens the names of files
        modules = [word for word in entry.command if (tree / word).is_file()]
        report.write_text(json.dumps({"modules": modules, "tap": output}), encoding="utf-8")
    return TestRun(
        outcomes=read_report(runner, report, tree),
        returncode=returncode,
        seconds=time.monotonic() - started,
        work_seconds=_children_seconds() - worked,
        output=output,
    )


def report_path(work: Path, entry: CommitEntry) -> Path:
    """Where the runner's report of the commit's latest run stands, if it wrote one."""
    return work / "reports" / f"{entry.id}.report"


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def where_imported(work: Path, tree: Path, listed: CommitList, entry: CommitEntry) -> str:
    """The file that the tests' interpreter loads for the repository's module; "" where there is no module."""
    module = listed.repositories[entry.repository].module
    kind = listed.environments[entry.environment]
    if not module:
        return ""
    folder = environment_folder(work, entry.environment, kind)
    variables = test_environment(work, tree, kind, folder)
    question = f"import importlib.util as u; print(u.find_spec({module!r}).origin)"
    return run_bounded(("python", "-c", question), tree, variables)[1].strip()


def run_bounded(
    command: Sequence[str], tree: Path, variables: Mapping[str, str], timeout: float = TEST_TIMEOUT_S
) -> tuple[int, str]:
    """Exit code and output of a command, which is killed, with all that it started, after `timeout` seconds."""
    with subprocess.Popen(
        command,
        cwd=tree,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            output = b"timed out"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output.decode("utf-8", errors="replace")
