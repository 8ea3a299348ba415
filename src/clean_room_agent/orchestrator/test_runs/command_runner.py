"""Runs the repository's own commands in a worktree, and notifies the observer of test runs.

The result of a test command is read from the runner's report, or else from its output, and it is judged whether it can be
relied on: whether it ran at all, and whether new failures are flaky. To find that out, newly failing tests are run
without the others, twice here and twice at the base.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from clean_room_agent import proc, safe_open
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.artifacts.test_results import RED, Reading, TestReport, merge, together
from clean_room_agent.errors import ConfigError
from clean_room_agent.folders import remove_tree
from clean_room_agent.git.worktree import Worktree, reset_worktree
from clean_room_agent.languages.printed_values import strip_escapes
from clean_room_agent.languages.test_runner import EndedCommand
from clean_room_agent.languages.test_runners import TEST_RUNNERS, runner_named
from clean_room_agent.orchestrator.events import Observer, TestsFinished, TestsStarted
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.spending import Timed, untimed
from clean_room_agent.orchestrator.test_runs.deciding import NO_TRACE, read_trace
from clean_room_agent.orchestrator.test_runs.ignored_folders import Copies, copy_included
from clean_room_agent.orchestrator.test_runs.output import (
    MAX_DESCRIBED,
    MAX_EXPLAINED,
    SourceTree,
    describe,
    first_and_last_lines,
    frames_of,
    locate,
    normalise,
    normalise_name,
    relative_paths,
)
from clean_room_agent.orchestrator.test_runs.results import (
    EXCERPT_BOUND,
    ChangingNames,
    CommandEnd,
    TestRun,
    function_of_numbered,
)
from clean_room_agent.orchestrator.test_runs.test_commands import (
    TREE_VARIABLE,
    Watched,
    clear_guard_folder,
    may_wait,
    read_watched,
    test_environment,
    with_guard,
)

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
            keep = tuple(self.copies.states) if self.copies is not None else ()
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

    @property
    def stands_at(self) -> Path:
        """The path at which commands see the worktree."""
        return self.root if self.sandbox is None else self.tree.repo_top

    def checkout(self, commit: str) -> None:
        """Reset the worktree to `commit`, without anything that an earlier test run left behind."""
        if self.tree.clean_at != commit:
            with self.timed(TimeKind.GIT, "checkout"):
                self.tree.checkout(commit)

    def run_all(self, what: str) -> TestRun:
        """Run the full test command; `what` (baseline, final) is for the observer, and of the baseline it is recorded what
        the tests depend on.
        """
        return self._run_and_notify(self.config.test_command, what)

    def run_step(self) -> TestRun:
        """Run the command that judges attempts: the quick one if there is one."""
        return self._run_and_notify(self.config.step_test_command or self.config.test_command, "")

    def run_step_unseen(self, seconds: float | None = None) -> TestRun:
        """Like `run_step`, from any thread, and for at most so many seconds: the observer is not notified."""
        command = self.config.step_test_command or self.config.test_command
        with self.timed(TimeKind.TESTS):
            return self.names.of(self._run_test_command(command, seconds=seconds))

    def run_again(self, run: TestRun, what: str = "") -> TestRun:
        """Run the command of `run` again; `what` is for the observer."""
        return self._run_and_notify(run.command, what)

    def run_rest(self, run: TestRun, known: Collection[str]) -> TestRun:
        """Run the command of `run` without the tests and files of `known`, in their runner's names."""
        return self._run_and_notify(run.command, "remaining", known)

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
        what = what or f"{counted(len(names), 'newly failing test')} again"
        return None if command is None else self._run_and_notify(command, what)

    def run_some_unseen(
        self, run: TestRun, names: Collection[str], seconds: float | None = None
    ) -> TestRun | None:
        """Like `run_some`, from any thread, and for at most so many seconds: the observer is not notified."""
        command = rerun_command(run, names)
        if command is None:
            return None
        with self.timed(TimeKind.TESTS, "goal tests"):
            return self.names.of(self._run_test_command(command, seconds=seconds))

    def run_observed(
        self, command: str, observed: str, *, seconds: float, left_out: Collection[str] = ()
    ) -> TestRun:
        """Run a command for at most `seconds`, without those tests and files, and have the functions that run recorded beside
        the report: `observed` (JSON) says what. The observer is not notified.
        """
        with self.timed(TimeKind.TESTS, "trace"):
            return self._run_test_command(command, left_out, observed=observed, seconds=seconds)

    def run_apart(self, command: str) -> tuple[int, str]:
        """Run another command where tests run, and return its exit code and normalised output; the observer is not
        notified. After a timeout, the code is that of `timeout`.
        """
        self._before_command()
        env, timeout, bound = self._environment(command), self.config.timeout, self.config.output_bound
        with self.timed(TimeKind.TESTS, "other command"):
            if self.sandbox is None:
                done = proc.run(command, cwd=self.root, env=env, timeout=timeout, check=False, bound=bound)
            else:
                done = self.sandbox.run(command, env=env, timeout=timeout, bound=bound)
        output = b"".join(done.marked_streams()).decode("utf-8", "replace")
        return 124 if done.timed_out else done.returncode, normalise(output, (self.root, self.tree.repo_top))

    def inform(self, commit: str) -> tuple[str | None, str | None]:
        """The output of the lint and type-check commands at `commit`; None for one that is not configured. It decides
        nothing.
        """
        commands = (self.config.lint_command, self.config.type_check_command)
        if any(commands):
            self.checkout(commit)
        lint, types = (None if command is None else self.run_apart(command)[1] for command in commands)
        return lint, types

    def _before_command(self) -> None:
        with self.timed(TimeKind.SANDBOX, "copied folders"):
            self.tree.before_command()

    def count_as(self, what: str, run: TestRun) -> TestRun:
        """The run, used in place of another one of the same tree; the observer is notified that it counts as `what`."""
        self.observer.notice(finished(what, run, ran=False))
        return run

    def _run_and_notify(self, command: str, what: str, left_out: Collection[str] = ()) -> TestRun:
        self.observer.notice(TestsStarted(what=what, expected_seconds=self.took.get(command, 0.0)))
        with self.timed(TimeKind.TESTS, what):
            run = self._run_test_command(command, left_out, traced=what == BASELINE)
        if not left_out:
            self.took[command] = run.end.duration_ms / 1000
        self.observer.notice(finished(what, run))
        return run if left_out else self.names.of(run)

    def _run_test_command(
        self,
        command: str,
        left_out: Collection[str] = (),
        *,
        traced: bool = False,
        observed: str = "",
        seconds: float | None = None,
    ) -> TestRun:
        self._before_command()
        own = seconds is not None and seconds < self.config.timeout
        return run_tests(
            command,
            cwd=self.root,
            env=self._environment(command, traced=traced, observed=observed),
            timeout=seconds if seconds is not None and own else self.config.timeout,
            limit=SEVERAL_TIMES if own else "[testing].timeout",
            report=self.report,
            roots=(self.tree.repo_top,),
            bound=self.config.output_bound,
            sandbox=self.sandbox,
            left_out=left_out,
        )

    def _environment(self, command: str, *, traced: bool = False, observed: str = "") -> dict[str, str]:
        package = safe_open.read_or_none(self.root, "package.json", max_bytes=MAX_PACKAGE) or b""
        return test_environment(
            self.inherited,
            self.stands_at,
            self.tree.repo_top,
            self.report,
            command=command,
            package=package.decode("utf-8", "replace"),
            traced=traced,
            observed=observed,
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


SEVERAL_TIMES = "several times what it took before"
NO_MODULE = re.compile(r"python[\d.]*: No module named (\w+)\s*\Z")
NO_PROGRAM = re.compile(r": ([^\s:]+): (?:command )?not found\s*\Z")
NO_OPTION = re.compile(r"error: unrecognized arguments: (-\S+)")
NOT_STARTED = frozenset({126, 127})
"""Exit codes of a shell that cannot start a program."""
NOT_READ = re.compile(
    r"\A(?:\S*/)?(?:sh|bash|dash): .*(?:[Ss]yntax error|unexpected (?:EOF|end of file)|[Uu]nterminated)"
)
"""The beginning of the shell's message on a command that it cannot read."""
MAX_NAMES = 10
"""If more tests fail newly, something is broken, and none is run again."""
TIMES = 2
SHELL = re.compile(r"[;&|<>`$()\n]")
RunAgain = Callable[[tuple[str, ...]], Mapping[str, bool]]
"""Runs only these tests, and returns which of them passed, without those that could not be run."""
OWN = 0o700
"""Mode of the folder for reports."""
OVERWRITTEN = re.compile(r"\bran \d+ times and left one report\b")
REFUSED = re.compile(r"\A\S.* refused its command line or configuration\b")
"""The problem of a run whose options, or the plugin that they belong to, its runner does not know."""
NO_RUNNER = re.compile(rf"No module named '?(?:{'|'.join(runner.name for runner in TEST_RUNNERS)})'?\s*\Z")
"""Python's message if the runner is not installed."""


def has_started(tests: TestRun) -> bool:
    """Whether the command and its runner could be started, and the runner took its command line and configuration."""
    said = tests.end.output.strip()
    return (
        not REFUSED.match(tests.report.problem)
        and tests.end.returncode not in NOT_STARTED
        and not NO_RUNNER.search(said)
        and not (tests.end.returncode and NOT_READ.match(said))
    )


def says_nothing(tests: TestRun) -> bool:
    """Whether the run broke before any test had a result, and not because of a timeout."""
    return not tests.end.timed_out and (
        not has_started(tests) or (not tests.report.whole and not tests.report.outcomes)
    )


def require_judging(tests: TestRun, config: TestingConfig, key: str, *, sandboxed: bool) -> None:
    """Check that a run before any change, of the command `key` in [testing], can be the standard for what follows.

    Raises:
        ConfigError: the command cannot be started, does not finish in time, finds no tests or hides results.
    """
    if not has_started(tests):
        said = tests.end.output.strip()[-300:]
        raise ConfigError(
            f"[testing] {key} cannot be started: {tests.command!r} exits with {tests.end.returncode}: {said}",
            hint=_suggest_fix(said, key, sandboxed=sandboxed),
        )
    if OVERWRITTEN.search(tests.report.problem):
        raise ConfigError(
            f"[testing] {key} cannot judge: {tests.command!r}: {tests.report.problem}",
            hint=f"change {key} in [testing], or the script that it runs",
        )
    if tests.end.timed_out:
        quicker = "" if key == "step_test_command" else ", or let step_test_command judge by a part of them"
        raise ConfigError(
            f"[testing] {key} did not end within {config.timeout:g} s, before anything was changed: {tests.command!r}",
            hint="is it a watch mode, which waits for changes? then give the command that runs the tests once; else time it by "
            f"itself and raise timeout in [testing] above that{quicker}",
        )
    if tests.is_empty and config.accept != "untested":
        raise ConfigError(
            f"[testing] {key} finds no tests: {tests.command!r}",
            hint=f'fix {key} in [testing]; where there are none, accept = "untested" says that nothing is tested',
        )

    report = tests.report
    if tests.end.returncode == 0 and not (report.whole or report.outcomes) and config.accept != "untested":
        raise ConfigError(
            f"[testing] {key} exits with 0, and no test is seen to run: {tests.command!r}: {report.problem}",
            hint=f"name the command that runs the tests: {key} in [testing]",
        )


def _suggest_fix(said: str, key: str, *, sandboxed: bool) -> str:
    """What to do about a command that says this in place of running tests."""
    if module := NO_MODULE.search(said):
        return f"install {module[1]} for that Python, or name in {key} of [testing] the Python that has it: .venv/bin/python -m {module[1]}"
    if options := NO_OPTION.search(said):
        return f"{options[1].split('=')[0]} is an option of a plugin of pytest: install that, or take it out of pytest's configuration"
    if program := NO_PROGRAM.search(said):
        home = "; the sandbox hides your home: [sandbox] read shows a folder of it" if sandboxed else ""
        return f"install {program[1]}, or name another command: {key} in [testing]{home}"
    more = "; the sandbox shows more where [sandbox] read names it" if sandboxed else ""
    return f"fix {key} in [testing]; it is run by the shell in a copy of the repository, with [worktree].link brought in{more}"


def unstable(names: Collection[str], here: RunAgain, base: RunAgain) -> tuple[str, ...]:
    """Those of `names` (newly failing) that are flaky: when run again, they do not fail each time here, or they also
    fail at the base, where they passed. Sorted; empty for more than `MAX_NAMES` names. A test that could not be run is
    not flaky.
    """
    if not 0 < len(names) <= MAX_NAMES:
        return ()
    found: set[str] = set()
    failing = tuple(sorted(names))
    for again, counts in ((here, True), (base, False)):
        for _ in range(TIMES):
            if failing:
                passed = again(failing)
                found.update(name for name in failing if passed.get(name) is counts)
                failing = tuple(name for name in failing if name in passed and name not in found)
    return tuple(sorted(found))


def rerun_command(run: TestRun, names: Collection[str]) -> str | None:
    """The command of `run` for only these tests; None if it cannot be derived.

    Only for a plain command (no pipes, no make or tox around it), and only for the names that its runner gives tests, or the
    ends of these; of runners of JavaScript, more tests with such a title may run.
    """
    runner, command = runner_named(run.report.runner), run.command
    names = sorted({function_of_numbered(name) for name in names})
    if runner is None or SHELL.search(command) or "" in names or any("…" in name for name in names):
        return None
    return runner.only(command, names)


def passed_again(run: TestRun, names: Collection[str]) -> dict[str, bool]:
    """Which of the tests passed in a run of `rerun_command`, without those that are not among its outcomes."""
    if not run.report.whole:
        return {}
    return {name: run.report.outcomes[name] not in RED for name in names if name in run.report.outcomes}


def run_tests(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    report: Path,
    roots: Sequence[Path] = (),
    bound: int = proc.DEFAULT_BOUND,
    sandbox: "Sandbox | None" = None,
    left_out: Collection[str] = (),
    limit: str = "[testing].timeout",
) -> TestRun:
    """Run `command` in `cwd` with the shell, and leave none of its processes running. unittest is asked to name each
    test. `env` comes from `test_commands.test_environment` with the same `report`, the file for pytest's results; an
    older file there is deleted first. `timeout` is in seconds, `bound` in bytes per stream. Paths below `cwd` and
    `roots` (the user's own tree) are normalised to relative ones. With a `sandbox`, it runs in that, where `cwd` is
    mounted at the place that the sandbox chooses. `left_out` are tests and files
    that Python's runners do not run. `limit` says where `timeout` is from.

    Raises:
        CommandError: the shell could not be started, or the sandbox could not be set up.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.parent.chmod(OWN)
    remove_tree(report)
    clear_guard_folder(report, left_out)
    asked = with_guard(reduce(lambda told, runner: runner.asked(told), TEST_RUNNERS, command))
    if sandbox is None:
        done = proc.run(asked, cwd=cwd, env=env, timeout=timeout, check=False, bound=bound)
    else:
        done = sandbox.run(asked, env=env, timeout=timeout, bound=bound)
    report.parent.chmod(OWN)  # the command may have shut us out
    output = "\n".join(stream.decode("utf-8", "replace") for stream in done.marked_streams() if stream)
    ended = EndedCommand(
        command=command, returncode=done.returncode, text=strip_escapes(output), report=report, cwd=cwd
    )
    reading = _read_results(ended)
    output = reading.shown or output
    if done.timed_out:
        reading = _cut_short(reading, f"stopped after {timeout:g} s ({limit}); all its processes were killed")
    elif done.exceeded:
        key = {"memory": "memory_mb", "processes": "processes"}[done.exceeded]
        reading = _cut_short(
            reading,
            f"stopped because of its use of {done.exceeded} ([sandbox].{key}); all its processes were killed",
        )
    watched = read_watched(report)
    shown = tuple((name, relative_paths(file, (cwd, *roots))) for name, file in watched.replaced)
    run = _test_run_of(command, done, output, reading, (cwd, *roots))
    trace = read_trace(report) if TREE_VARIABLE in env else NO_TRACE
    return structs.replace(run, watched=Watched(ended=watched.ended, replaced=shown), trace=trace)


def _read_results(ended: EndedCommand) -> Reading:
    """The results of all runners that the command started, together."""
    found = [reading for runner in TEST_RUNNERS if (reading := runner.read(ended)) is not None]
    printed = (runner.read_printed(ended) for runner in TEST_RUNNERS if not found)
    last = next((reading for reading in printed if reading is not None), Reading(report=TestReport()))
    return reduce(together, found) if found else last


def _cut_short(reading: Reading, problem: str) -> Reading:
    return structs.replace(reading, report=structs.replace(reading.report, whole=False, problem=problem))


def _test_run_of(
    command: str, done: proc.Completed, output: str, reading: Reading, roots: Sequence[Path]
) -> TestRun:
    outcomes = merge(
        (normalise_name(name, roots), outcome) for name, outcome in reading.report.outcomes.items()
    )
    shown = normalise(first_and_last_lines(output), roots)

    tree = SourceTree(roots[0])
    # Files that could not be collected (no test part in the name) first, then by name.
    ordered = sorted(reading.failures, key=lambda one: ("::" in one.name or " > " in one.name, one.name))
    described = [
        describe(failure, roots, tree, with_values=place < MAX_DESCRIBED)
        for place, failure in enumerate(ordered[:MAX_EXPLAINED])
    ]
    described += [(locate(failure, roots), ()) for failure in ordered[MAX_EXPLAINED:]]
    frames = tuple(dict.fromkeys(frame for _, frames in described for frame in frames))
    if not frames and done.returncode != 0:
        frames = frames_of(shown, tree.exists)
    return TestRun(
        command=command,
        end=CommandEnd(
            returncode=done.returncode,
            timed_out=done.timed_out,
            output=output,
            excerpt=_excerpt(shown),
            duration_ms=round(done.duration_s * 1000),
        ),
        report=structs.replace(
            reading.report, outcomes=outcomes, problem=normalise(reading.report.problem, roots)
        ),
        failing=tuple(test for test, _ in described),
        frames=frames,
    )


def _excerpt(text: str) -> str:
    if len(text) <= EXCERPT_BOUND:
        return text
    half = EXCERPT_BOUND // 2
    return f"{text[:half]}\n[... the middle left out ...]\n{text[-half:]}"
