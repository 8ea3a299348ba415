"""The worktrees in which the repository's commands run, each with a test runner: in a sandbox that mounts the worktree
at the repository's own path, or without one.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.cancellation import Interrupts, stopped_by
from clean_room_agent.errors import ConfigError
from clean_room_agent.folders import remove_tree
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import (
    INCLUDE_FILE,
    Worktree,
    add_worktree,
    included_files,
    remove_leftovers,
    remove_worktree,
    reports_beside,
    shown_folders,
    worktree_places,
    written_files,
)
from clean_room_agent.orchestrator.events import Observer, TestsStarted
from clean_room_agent.orchestrator.run_config import SandboxConfig, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.spending import Timed, untimed
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree, finished
from clean_room_agent.orchestrator.test_runs.ignored_folders import (
    Copies,
    copy_included,
    links_to_mount,
    strange_links,
)
from clean_room_agent.orchestrator.test_runs.results import ChangingNames, TestRun
from clean_room_agent.orchestrator.test_runs.test_commands import GUARD, test_environment

if TYPE_CHECKING:  # only a run that has a sandbox pays for it
    from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Obstacle, Sandbox

NO_SANDBOX = "no sandbox: the tests run model-written code with your privileges"
ResultT = TypeVar("ResultT")
RESULTS = "results.xml"


class RunnerSetup(Struct, frozen=True, kw_only=True):
    """What every worktree of a pool is created with: the configuration and the surroundings of its tests."""

    repo: Repository
    place: Path
    """The path of the first worktree; the others are next to it."""
    environment: Mapping[str, str]
    """The environment that the commands start from."""
    sandbox: SandboxConfig
    testing: TestingConfig
    worktree: WorktreeConfig
    home: Path
    """The user's."""
    find: "Callable[[], Bubblewrap | Obstacle]"
    """Finds bubblewrap; not called if no sandbox is configured."""
    try_machine: "Callable[[Bubblewrap], Obstacle | None]"
    """Tries bubblewrap without anything from the repository; called only if it fails for the repository."""


class SandboxSetup(Struct, frozen=True, kw_only=True):
    """Where commands run, and what the user should know about it."""

    sandbox: "Sandbox | None"
    notes: tuple[str, ...]
    copies: Copies | None = None
    """The linked folders that were copied into the worktree; None if they are mounted."""


def set_up_sandbox(setup: RunnerSetup, worktree: Worktree, report: Path) -> SandboxSetup:
    """Set up the place for the commands of a run in `worktree`, and bring what they need besides its files.

    If bubblewrap works on this machine, failing to set up a sandbox for this repository is an error: the repository's
    contents must never lead to a run without one.

    Raises:
        ConfigError: a sandbox is configured, or works on this machine, but cannot be set up here.
        RepositoryError: `[worktree] link` leads outside the repository.
        CommandError: the copy of a linked folder failed, or it could not be found out whether bubblewrap works.
    """
    top, links = worktree.repo.top, setup.worktree.link
    because = ""
    if setup.sandbox.mode != "none":
        from clean_room_agent.sandbox.bubblewrap import OTHER_REMEDY, Bubblewrap, Obstacle

        found = setup.find()
        if isinstance(found, Bubblewrap):
            obstacle: Obstacle | None
            if top == Path("/"):
                obstacle = Obstacle(reason="the repository is the root folder", remedy=OTHER_REMEDY)
            else:
                sandbox = _build_sandbox(found, setup, worktree, report)
                report.parent.mkdir(parents=True, exist_ok=True)
                obstacle = sandbox.try_out(setup.environment)
                if obstacle is None:
                    return _in_bubblewrap(sandbox, setup, worktree)
            of_machine = setup.try_machine(found)
            if of_machine is None:
                raise ConfigError(
                    f"bubblewrap works on this machine, but not for this repository: {obstacle.reason}",
                    hint=obstacle.remedy,
                )
            found = of_machine
        if setup.sandbox.mode == "bwrap":
            raise ConfigError(
                f'[sandbox] mode = "bwrap", but no sandbox is possible: {found.reason}', hint=found.remedy
            )
        because = f" ({found.reason}; {found.remedy})" if found.reason else ""
    copies = Copies(
        worktree=worktree.path, repo_top=top, names=links, how=setup.worktree.without_sandbox, turn=True
    )
    done = copies.bring()
    return SandboxSetup(sandbox=None, notes=(NO_SANDBOX + because, *done), copies=copies)


def _in_bubblewrap(sandbox: "Sandbox", setup: RunnerSetup, worktree: Worktree) -> SandboxSetup:
    top, links = worktree.repo.top, setup.worktree.link
    names = ", ".join(str(place.relative_to(top)) for _, place in sandbox.policy.mounts)
    shown = f"; {names} read-only" if names else ""
    text = f"sandbox: bubblewrap {sandbox.bubblewrap.version}, no network, your home hidden{shown}"
    copied: tuple[str, ...] = ()
    copies = None
    if setup.worktree.in_sandbox == "copy":
        copies = Copies(worktree=worktree.path, repo_top=top, names=links, how="copy", turn=False)
        copied = copies.bring()
    left_out = (f"{name}: left out ({why})" for name, why in strange_links(top, links))
    return SandboxSetup(sandbox=sandbox, notes=(text, *left_out, *copied), copies=copies)


def _build_sandbox(
    bubblewrap: "Bubblewrap", setup: RunnerSetup, worktree: Worktree, report: Path
) -> "Sandbox":
    from clean_room_agent.sandbox.bubblewrap import MIB, Limits, Sandbox
    from clean_room_agent.sandbox.policy import GitFolder, Policy, interpreter_places, tool_places

    config, testing, top = setup.sandbox, setup.testing, worktree.repo.top
    mount = setup.worktree.in_sandbox == "mount"
    links = links_to_mount(worktree.path, top, setup.worktree.link)
    commands = (
        testing.test_command,
        testing.step_test_command,
        testing.lint_command,
        testing.type_check_command,
        testing.format_command,
    )
    inside = test_environment(setup.environment, top, top, report)
    read = [
        GUARD,
        *(setup.home / path.removeprefix("~/") for path in config.read),
        *tool_places(inside, [command for command in commands if command], top),
    ]
    for name, source in links:
        read += [source, *interpreter_places(top / name), *interpreter_places(source)]
    policy = Policy(
        tree=worktree.path,
        at=top,
        home=setup.home,
        reports=report.parent,
        mounts=tuple((source, top / name) for name, source in links) if mount else (),
        read=tuple(read),
        git=GitFolder(
            written=written_files(worktree.repo),
            folders=shown_folders(worktree.repo),
            worktree=worktree.git_dir,
        ),
        scratch_bytes=config.scratch_mb * MIB,
    )
    limits = Limits(memory=config.memory_mb * MIB, processes=config.processes, file_size=config.file_mb * MIB)
    return Sandbox(bubblewrap=bubblewrap, policy=policy, environment=config.environment, limits=limits)


class WorktreePool:
    """Worktrees of one commit, each with a test runner; all are removed when the context ends."""

    def __init__(
        self,
        setup: RunnerSetup,
        task_id: str,
        observer: Observer,
        interrupts: Interrupts | None = None,
        timed: Timed = untimed,
    ) -> None:
        self._setup = setup
        self._task_id = task_id
        self._observer = observer
        self._interrupts = interrupts or Interrupts()
        self._timed = timed
        self._commit = ""
        self._runners: list[CommandRunner] = []
        self._names = ChangingNames()
        self._cleanup = contextlib.ExitStack()
        self.notes: tuple[str, ...] = ()
        """What a person is to know of the place where tests run."""

    def open(self, commit: str, *, resumed: bool = False) -> Self:
        """Create the first worktree at `commit`; what an earlier process of a `resumed` task left is removed.

        Raises:
            ConfigError: a sandbox is configured, but not possible.
            GitError: the worktree cannot be created.
        """
        if resumed:
            for place in worktree_places(self._setup.place):
                remove_leftovers(self._setup.repo, self._task_id, place)
                remove_tree(reports_beside(place))
        self._commit = commit
        worktree, report = self._add_worktree(self._setup.place)
        runner, self.notes = self._open_runner(worktree, report)
        self._runners.append(runner)
        return self

    @property
    def first(self) -> CommandRunner:
        """The runner of the run's own worktree."""
        return self._runners[0]

    def add(self) -> CommandRunner:
        """Add a runner in another worktree, which is at the first commit."""
        with self._interrupts.shield():
            worktree, report = self._add_worktree(worktree_places(self._setup.place)[len(self._runners)])
        return self._open_runner(worktree, report)[0]

    def run_step_at(self, commits: Sequence[str]) -> list[TestRun]:
        """Run the command that judges attempts at `commits`, as `at_each` does."""
        first = self.first
        if len(commits) <= 1 or first.config.parallel == 1:
            return self.at_each(commits, CommandRunner.run_step)
        first.observer.notice(TestsStarted(what=f"{len(commits)} candidates' tests"))
        runs = self.at_each(commits, CommandRunner.run_step_unseen)
        for run in runs:
            first.observer.notice(finished("", run))
        return runs

    def at_each(self, commits: Sequence[str], work: Callable[[CommandRunner], ResultT]) -> list[ResultT]:
        """The results of `work` with a runner whose worktree is at each of `commits`, in their order: `[testing] parallel` at a
        time, each in a separate worktree, from threads; a single commit in the run's own.

        Raises:
            What the first of them, in order, raised; and KeyboardInterrupt: the others are killed.
        """

        def at(runner: CommandRunner, commit: str) -> ResultT:
            runner.checkout(commit)
            return work(runner)

        count = min(len(commits), self.first.config.parallel)
        if count <= 1:
            return [at(self.first, commit) for commit in commits]
        while len(self._runners) < count:
            self._runners.append(self.add())
        free = self._runners[:count]

        def in_a_free_one(index: int) -> ResultT:
            runner = free.pop()
            try:
                return at(runner, commits[index])
            finally:
                free.append(runner)

        return at_a_time(in_a_free_one, len(commits), workers=count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _add_worktree(self, place: Path) -> tuple[Worktree, Path]:
        """The worktree, and the folder for the results of its tests."""
        with self._timed(TimeKind.GIT, "worktree"):
            worktree = add_worktree(self._setup.repo, self._commit, place, self._task_id)
        # A folder of its own: what runs for one candidate must not reach the results of another.
        report = reports_beside(place) / RESULTS
        self._cleanup.callback(self._discard_worktree, worktree, report)
        return worktree, report

    def _open_runner(self, worktree: Worktree, report: Path) -> tuple[CommandRunner, tuple[str, ...]]:
        setup = self._setup
        with self._timed(TimeKind.SANDBOX, "setup"):
            sandbox_setup = set_up_sandbox(setup, worktree, report)
        included = included_files(setup.repo)
        notes = [*sandbox_setup.notes, *_empty_submodules(setup, worktree)]
        if included:
            notes.append(f"{INCLUDE_FILE}: {counted(len(included), 'ignored file')} copied in for the tests")
            copy_included(worktree.path, setup.repo.top, included)
        runner = CommandRunner(
            config=setup.testing,
            tree=TestWorktree(
                worktree=worktree, included=included, copies=sandbox_setup.copies, clean_at=self._commit
            ),
            inherited=setup.environment,
            report=report,
            observer=self._observer,
            sandbox=sandbox_setup.sandbox,
            timed=self._timed,
            names=self._names,
        )
        return runner, (*notes, *runner.notes)

    def _discard_worktree(self, worktree: Worktree, report: Path) -> None:
        with self._interrupts.shield(is_last=True):
            with self._timed(TimeKind.GIT, "worktree removal"):
                remove_worktree(worktree)
            with contextlib.suppress(OSError):
                remove_tree(report.parent)


def at_a_time(work: Callable[[int], ResultT], count: int, *, workers: int | None = None) -> list[ResultT]:
    """The results of `work(0)` to `work(count - 1)`, in that order, in as many threads (or `workers`).

    Raises:
        What the first of them, in order, raised; and KeyboardInterrupt. Processes that are running then are killed.
    """
    stop = threading.Event()

    def watched(index: int) -> ResultT:
        with stopped_by(stop):
            return work(index)

    with ThreadPoolExecutor(max_workers=workers or count, thread_name_prefix="candidate") as pool:
        futures = [pool.submit(watched, index) for index in range(count)]
        try:
            return [future.result() for future in futures]
        finally:
            stop.set()
            for future in futures:
                future.cancel()


def several(paths: tuple[str, ...]) -> str:
    """The path if there is only one; otherwise the number of paths and the first."""
    return paths[0] if len(paths) == 1 else f"{len(paths)} ({paths[0]}, ...)"


def _empty_submodules(setup: RunnerSetup, worktree: Worktree) -> list[str]:
    """In words, the submodules that the user's tree has and the worktree lacks."""
    brought = {name.rstrip("/") for name in setup.worktree.link}
    top = worktree.repo.top
    missing = tuple(
        name
        for name in worktree.submodules
        if name not in brought and (top / name).is_dir() and any((top / name).iterdir())
    )
    remedy = "submodules are empty in the worktree; [worktree] link brings them in for the tests"
    return [f"{remedy}: {several(missing)}"] if missing else []
