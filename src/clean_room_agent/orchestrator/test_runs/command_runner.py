"""Runs the repository's own commands in a worktree, and notifies the observer of test runs."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from clean_room_agent import proc, safe_open
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.git.worktree import Worktree, reset_worktree
from clean_room_agent.orchestrator.config import TestingConfig
from clean_room_agent.orchestrator.events import Observer, TestsFinished, TestsStarted
from clean_room_agent.orchestrator.spending import Timed, untimed
from clean_room_agent.orchestrator.test_runs.ignored_folders import Copies, copy_included
from clean_room_agent.orchestrator.test_runs.output import normalise
from clean_room_agent.orchestrator.test_runs.results import ChangingNames, TestRun
from clean_room_agent.orchestrator.test_runs.run import rerun_command, run_tests
from clean_room_agent.orchestrator.test_runs.test_commands import may_wait, test_environment

if TYPE_CHECKING:  # only a run that has a sandbox pays for it
    from clean_room_agent.sandbox.bubblewrap import Sandbox

BASELINE = "baseline"
CI_NOTE = (
    "CI=1 is set for the tests, so that their runner does not wait for changes; a CI of your own is kept"
)
MAX_PACKAGE = 1_000_000
"""Bytes of package.json that are read."""


class TestWorktree(Struct, kw_only=True):
    """A worktree in which commands run, with what they may have left in it."""

    __test__ = False  # its name must not make pytest collect it

    worktree: Worktree
    included: tuple[str, ...] = ()
    """Ignored files of the user's tree that are copied in again at each reset."""
    copies: Copies | None = None
    """Linked folders that were copied in and are kept the same for each command; a reset leaves them alone."""
    clean_at: str = ""
    """The commit that it contains exactly; "" once a command ran in it, which may have left anything behind."""

    @property
    def root(self) -> Path:
        """Its folder."""
        return self.worktree.path

    @property
    def repo_top(self) -> Path:
        """The user's own tree."""
        return self.worktree.repo.top

    def checkout(self, commit: str) -> None:
        """Reset it to `commit`, without anything that an earlier command left behind."""
        if self.clean_at != commit:
            self.clean_at = ""
            keep = self.copies.brought if self.copies is not None else ()
            reset_worktree(self.worktree, commit, keep=keep)
            copy_included(self.root, self.repo_top, self.included)
            self.clean_at = commit

    def before_command(self) -> None:
        """Restore copied folders, and note that the command may leave anything behind."""
        self.clean_at = ""
        if self.copies is not None:
            self.copies.renew()


class CommandRunner(Struct, kw_only=True):
    """Runs the `[testing]` commands in a worktree."""

    __test__ = False

    config: TestingConfig
    tree: TestWorktree
    inherited: Mapping[str, str]
    """The environment that the commands start from."""
    report: Path
    """The file, outside the worktree, for a runner's results; beside it is the folder for those of others."""
    observer: Observer
    sandbox: "Sandbox | None" = None
    """The sandbox for the commands, with the worktree at the repository's path; None: they run in the worktree, as the
    user.
    """
    took: dict[str, float] = field(default_factory=dict)
    """Seconds of each command's last run."""
    timed: Timed = untimed
    names: ChangingNames = field(default_factory=ChangingNames)
    """The names that change from run to run, as far as they are known."""

    @property
    def root(self) -> Path:
        """The worktree's folder."""
        return self.tree.root

    def checkout(self, commit: str) -> None:
        """Reset the worktree to `commit`, without anything that an earlier test run left behind."""
        if self.tree.clean_at != commit:
            with self.timed(TimeKind.GIT, "checkout"):
                self.tree.checkout(commit)

    def run_all(self, what: str) -> TestRun:
        """Run the full test command; `what` (baseline, final) is for the observer, and of the baseline it is recorded what
        the tests depend on.
        """
        return self._observed(self.config.test_command, what)

    def run_step(self) -> TestRun:
        """Run the command that judges attempts: the quick one if there is one."""
        return self._observed(self.config.step_test_command or self.config.test_command, "")

    def run_step_unseen(self) -> TestRun:
        """Like `run_step`, from any thread: the observer is not notified."""
        with self.timed(TimeKind.TESTS):
            return self.names.of(self._run(self.config.step_test_command or self.config.test_command))

    def run_again(self, run: TestRun, what: str = "") -> TestRun:
        """Run the command of `run` again; `what` is for the observer."""
        return self._observed(run.command, what)

    def run_rest(self, run: TestRun, known: Collection[str]) -> TestRun:
        """Run the command of `run` without the tests and files of `known`, in their runner's names."""
        return self._observed(run.command, "remaining", known)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that judge."""
        return tuple(filter(None, (self.config.test_command, self.config.step_test_command)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how the commands run."""
        sets_ci = "CI" not in self.inherited and any(may_wait(one, self.root) for one in self.commands)
        return (CI_NOTE,) if sets_ci else ()

    @property
    def step_is_full(self) -> bool:
        """Whether attempts are judged by the full command."""
        return self.config.step_test_command in {None, self.config.test_command}

    def run_some(self, run: TestRun, names: Collection[str], what: str = "") -> TestRun | None:
        """Run only these tests of `run`; None if the command for that is unknown. `what` is for the observer; by default, they
        are newly failing ones.
        """
        command = rerun_command(run, names)
        what = what or f"{len(names)} newly failing again"
        return None if command is None else self._observed(command, what)

    def run_some_unseen(self, run: TestRun, names: Collection[str]) -> TestRun | None:
        """Like `run_some`, from any thread: the observer is not notified."""
        command = rerun_command(run, names)
        if command is None:
            return None
        with self.timed(TimeKind.TESTS, "goal tests"):
            return self.names.of(self._run(command))

    def run_observed(
        self,
        command: str,
        asked: Callable[[str], str],
        *,
        seconds: float,
        left_out: Collection[str] = (),
    ) -> TestRun:
        """Run a command for at most `seconds`, without those tests and files, and have the functions that run recorded beside
        the report: `asked` says what, for the path at which the tree then stands. The observer is not notified.
        """
        with self.timed(TimeKind.TESTS, "trace"):
            return self._run(command, left_out, asked=asked, seconds=seconds)

    def run_apart(self, command: str) -> tuple[int, str]:
        """Run another command where tests run, and return its exit code and normalised output; the observer is not
        notified. After a timeout, the code is that of `timeout`.
        """
        done = self._completed(command)
        return 124 if done.timed_out else done.returncode, self._said(done)

    def inform(self, commit: str) -> tuple[str | None, str | None]:
        """The output of the lint and type-check commands at `commit`; None for one that is not configured. It decides
        nothing.
        """
        if self.config.lint_command or self.config.type_check_command:
            self.checkout(commit)
        return self._inform(self.config.lint_command), self._inform(self.config.type_check_command)

    def _inform(self, command: str | None) -> str | None:
        return None if command is None else self._said(self._completed(command))

    def _completed(self, command: str) -> proc.Completed:
        self._before_command()
        env, timeout, bound = self._environment(command), self.config.timeout, self.config.output_bound
        with self.timed(TimeKind.TESTS, "other command"):
            if self.sandbox is None:
                return proc.run(command, cwd=self.root, env=env, timeout=timeout, check=False, bound=bound)
            return self.sandbox.run(command, env=env, timeout=timeout, bound=bound)

    def _before_command(self) -> None:
        with self.timed(TimeKind.SANDBOX, "copied folders"):
            self.tree.before_command()

    def _said(self, done: proc.Completed) -> str:
        output = b"".join(done.marked_streams()).decode("utf-8", "replace")
        return normalise(output, (self.root, self.tree.repo_top))

    def count_as(self, what: str, run: TestRun) -> TestRun:
        """The run, used in place of another one of the same tree; the observer is notified that it counts as `what`."""
        self.observer.notice(finished(what, run, ran=False))
        return run

    def _observed(self, command: str, what: str, left_out: Collection[str] = ()) -> TestRun:
        self.observer.notice(TestsStarted(what=what, expected_seconds=self.took.get(command, 0.0)))
        with self.timed(TimeKind.TESTS, what):
            run = self._run(command, left_out, traced=what == BASELINE)
        if not left_out:
            self.took[command] = run.end.duration_ms / 1000
        self.observer.notice(finished(what, run))
        return run if left_out else self.names.of(run)

    def _run(
        self,
        command: str,
        left_out: Collection[str] = (),
        *,
        traced: bool = False,
        asked: Callable[[str], str] | None = None,
        seconds: float | None = None,
    ) -> TestRun:
        self._before_command()
        return run_tests(
            command,
            cwd=self.root,
            env=self._environment(command, traced=traced, asked=asked),
            timeout=self.config.timeout if seconds is None else min(seconds, self.config.timeout),
            report=self.report,
            roots=(self.tree.repo_top,),
            bound=self.config.output_bound,
            sandbox=self.sandbox,
            left_out=left_out,
        )

    def _environment(
        self, command: str, *, traced: bool = False, asked: Callable[[str], str] | None = None
    ) -> dict[str, str]:
        stands_at = self.root if self.sandbox is None else self.tree.repo_top
        try:
            package = safe_open.read_bytes(self.root, "package.json", max_bytes=MAX_PACKAGE).decode(
                "utf-8", "replace"
            )
        except OSError:
            package = ""
        return test_environment(
            self.inherited,
            stands_at,
            self.tree.repo_top,
            self.report,
            command=command,
            package=package,
            traced=traced,
            observed="" if asked is None else asked(str(stands_at)),
            once=may_wait(command, self.root),
        )


def finished(what: str, run: TestRun, *, ran: bool = True) -> TestsFinished:
    """The event for a run that has finished."""
    known = run.report.runner != "unknown"
    detail = run.report.problem or ("" if known else f"exit code {run.end.returncode}")
    return TestsFinished(
        what=what,
        passed=run.report.passed,
        failed=len(run.red()),
        known=known,
        success=run.report.whole and run.end.returncode == 0,
        seconds=run.end.duration_ms / 1000 if ran else 0.0,
        detail=detail if ran else "as the last step ran them",
    )
