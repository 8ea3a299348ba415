"""Runs a test command, reads its result from the runner's report, or else from its output, and says whether it can be
relied on: whether it ran at all, and whether new failures are flaky. To find that out, newly failing tests are run
without the others, twice here and twice at the base.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from clean_room_agent import proc
from clean_room_agent.artifacts.test_results import RED, Failure, Reading, TestReport, merge, together
from clean_room_agent.errors import ConfigError
from clean_room_agent.folders import remove_tree
from clean_room_agent.languages.printed_values import strip_escapes
from clean_room_agent.languages.run_reports import EndedCommand
from clean_room_agent.languages.test_runners import TEST_RUNNERS, runner_named
from clean_room_agent.orchestrator.config import TestingConfig
from clean_room_agent.orchestrator.test_runs.deciding import NO_TRACE, read_trace
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
    once,
    relative_paths,
)
from clean_room_agent.orchestrator.test_runs.results import (
    EXCERPT_BOUND,
    CommandEnd,
    TestRun,
    function_of_numbered,
)
from clean_room_agent.orchestrator.test_runs.test_commands import (
    TREE_VARIABLE,
    Watched,
    clear_guard_folder,
    read_watched,
)

if TYPE_CHECKING:  # only a run that has a sandbox pays for it
    from clean_room_agent.sandbox.bubblewrap import Sandbox

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
        ConfigError: the command cannot be started, does not finish in time or finds no tests.
    """
    if not has_started(tests):
        said = tests.end.output.strip()[-300:]
        raise ConfigError(
            f"[testing] {key} cannot be started: {tests.command!r} exits with {tests.end.returncode}: {said}",
            hint=f"fix {key} in [testing]; it is run by the shell in a copy of the repository, with [worktree].link brought in"
            + ("; the sandbox shows more where [sandbox] read names it" if sandboxed else ""),
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
) -> TestRun:
    """Run `command` in `cwd` with the shell, and leave none of its processes running. unittest is asked to name each
    test. `env` comes from `environment.test_environment` with the same `report`, the file for pytest's results; an
    older file there is deleted first. `timeout` is in seconds, `bound` in bytes per stream. Paths below `cwd` and
    `roots` (the user's own tree) are normalised to relative ones. With a `sandbox`, it runs in that, where `cwd` is
    mounted at the place that the sandbox chooses. `left_out` are tests and files
    that Python's runners do not run.

    Raises:
        CommandError: the shell could not be started, or the sandbox could not be set up.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.parent.chmod(OWN)
    remove_tree(report)
    clear_guard_folder(report, left_out)
    asked = reduce(lambda told, runner: runner.asked(told), TEST_RUNNERS, command)
    if sandbox is None:
        done = proc.run(asked, cwd=cwd, env=env, timeout=timeout, check=False, bound=bound)
    else:
        done = sandbox.run(asked, env=env, timeout=timeout, bound=bound)
    report.parent.chmod(OWN)  # the command may have shut us out
    output = "\n".join(stream.decode("utf-8", "replace") for stream in done.marked_streams() if stream)
    ended = EndedCommand(
        command=command, returncode=done.returncode, text=strip_escapes(output), report=report, cwd=cwd
    )
    reading = _read(ended)
    output = reading.shown or output
    if done.timed_out:
        reading = _cut_short(
            reading, f"stopped after {timeout:g} s ([testing].timeout); all its processes were killed"
        )
    elif done.exceeded:
        key = {"memory": "memory_mb", "processes": "processes"}[done.exceeded]
        reading = _cut_short(
            reading,
            f"stopped because of its use of {done.exceeded} ([sandbox].{key}); all its processes were killed",
        )
    watched = read_watched(report)
    shown = tuple((name, relative_paths(file, (cwd, *roots))) for name, file in watched.replaced)
    run = _settle(command, done, output, reading, (cwd, *roots))
    trace = read_trace(report) if TREE_VARIABLE in env else NO_TRACE
    return structs.replace(run, watched=Watched(ended=watched.ended, replaced=shown), trace=trace)


def _read(ended: EndedCommand) -> Reading:
    """The results of all runners that the command started, together."""
    found = [reading for runner in TEST_RUNNERS if (reading := runner.read(ended)) is not None]
    printed = (runner.read_printed(ended) for runner in TEST_RUNNERS if not found)
    last = next((reading for reading in printed if reading is not None), Reading(report=TestReport()))
    return reduce(together, found) if found else last


def _cut_short(reading: Reading, problem: str) -> Reading:
    return structs.replace(reading, report=structs.replace(reading.report, whole=False, problem=problem))


def _settle(
    command: str, done: proc.Completed, output: str, reading: Reading, roots: Sequence[Path]
) -> TestRun:
    outcomes = merge(
        (normalise_name(name, roots), outcome) for name, outcome in reading.report.outcomes.items()
    )
    shown = normalise(first_and_last_lines(output), roots)

    tree = SourceTree(roots[0])
    ordered = sorted(reading.failures, key=_order)
    described = [
        describe(failure, roots, tree, with_values=place < MAX_DESCRIBED)
        for place, failure in enumerate(ordered[:MAX_EXPLAINED])
    ]
    described += [(locate(failure, roots), ()) for failure in ordered[MAX_EXPLAINED:]]
    frames = once(frame for _, frames in described for frame in frames)
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


def _order(failure: Failure) -> tuple[bool, str]:
    """Files that could not be collected (no test part in the name) first, then by name."""
    return ("::" in failure.name or " > " in failure.name, failure.name)


def _excerpt(text: str) -> str:
    if len(text) <= EXCERPT_BOUND:
        return text
    half = EXCERPT_BOUND // 2
    return f"{text[:half]}\n[... the middle left out ...]\n{text[-half:]}"
