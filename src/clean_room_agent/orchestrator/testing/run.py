"""Runs a test command, reads its result from the runner's report, or else from its output, and says whether it can be
relied on: whether it ran at all, and whether new failures are flaky. To find that out, newly failing tests are run
without the others, twice here and twice at the base.
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from clean_room_agent import proc
from clean_room_agent.child_processes import marked
from clean_room_agent.errors import ConfigError
from clean_room_agent.folders import remove_tree
from clean_room_agent.orchestrator.config import TestingConfig
from clean_room_agent.orchestrator.testing.deciding import NO_TRACE, read_trace
from clean_room_agent.orchestrator.testing.failure_reports import (
    MAX_DESCRIBED,
    MAX_EXPLAINED,
    SourceTree,
    describe,
    frames_of,
    locate,
    once,
)
from clean_room_agent.orchestrator.testing.output import (
    first_and_last_lines,
    normalise,
    normalise_name,
    relative_paths,
    strip_escapes,
)
from clean_room_agent.orchestrator.testing.python_reports import (
    read_report,
    read_test_log,
    read_unittest,
    with_logged,
    with_records_of_unittest,
)
from clean_room_agent.orchestrator.testing.results import (
    EXCERPT_BOUND,
    RED,
    CommandEnd,
    Failure,
    Reading,
    TestReport,
    TestRun,
    function_of_numbered,
    merge,
)
from clean_room_agent.orchestrator.testing.test_commands import (
    TREE_VARIABLE,
    Watched,
    clear_guard_folder,
    guard_folder,
    pytest_reports,
    read_watched,
    shell_words,
    started_runners,
)
from clean_room_agent.safe_open import is_file

if TYPE_CHECKING:  # only a run that has a sandbox pays for it
    from clean_room_agent.sandbox.bubblewrap import Sandbox

REFUSED = "pytest refused its command line or configuration"
"""How the problem begins of a run whose options, or the plugin that they belong to, pytest does not know."""
NOT_STARTED = frozenset({126, 127})
"""Exit codes of a shell that cannot start a program."""
NOT_READ = re.compile(
    r"\A(?:\S*/)?(?:sh|bash|dash): .*(?:[Ss]yntax error|unexpected (?:EOF|end of file)|[Uu]nterminated)"
)
"""The beginning of the shell's message on a command that it cannot read."""
NO_RUNNER = re.compile(r"No module named '?(?:pytest|unittest)'?\s*\Z")
"""Python's message if the runner is not installed."""
MAX_NAMES = 10
"""If more tests fail newly, something is broken, and none is run again."""
TIMES = 2
SHELL = re.compile(r"[;&|<>`$()\n]")
VALUED = re.compile(
    r"-[kmpcoWnr]|--(?:rootdir|confcutdir|maxfail|durations|tb|import-mode|basetemp|timeout|dist|override-ini|color"
    r"|capture|log-level|cov-report|cov-config)"
)
"""Options of pytest whose value is the next word."""
SCRIPT_FILTERS = {
    "node": ("--test-name-pattern=", re.compile(r"\bnode\b[^\n]*?\s--test(?![\w-])")),
    "vitest": ("-t ", re.compile(r"\bvitest\b")),
    "jest": ("-t ", re.compile(r"\bjest\b")),
    "mocha": ("-g ", re.compile(r"\bmocha\b")),
}
"""Of runners of JavaScript, the option for tests with a title, and what starts the runner in a command."""
SCRIPT_SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|/]")
PACKAGE_TEST = re.compile(r"(?:npm|pnpm|yarn)(?:\s+run)?\s+test\b")
RunAgain = Callable[[tuple[str, ...]], Mapping[str, bool]]
"""Runs only these tests, and returns which of them passed, without those that could not be run."""
OWN = 0o700
"""Mode of the folder for reports."""
PYTEST_WORD = re.compile(r"(?:^|[\s/;&|(])(?:py\.test|pytest)(?=\s|$|[;&|)])")
UNITTEST_WORD = re.compile(r"-m unittest(?: +discover)?(?=\s|$)")
VERBOSITY = re.compile(r"(?<=\s)(?:-[a-z]*[vq][a-z]*|--verbose|--quiet)(?=\s|$)")
PYTEST_TRACE = re.compile(
    r"^=+ test session starts =+$|^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE
)
PYTEST_SUMMARY = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
PYTEST_RED = re.compile(r"\d+ (?:failed|errors?)\b")


def has_started(tests: TestRun) -> bool:
    """Whether the command and its runner could be started, and the runner took its command line and configuration."""
    said = tests.end.output.strip()
    return (
        not tests.report.problem.startswith(REFUSED)
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
    runner, command = run.report.runner, run.command
    names = sorted({function_of_numbered(name) for name in names})
    if SHELL.search(command) or "" in names or any("…" in name for name in names):
        return None
    if runner in SCRIPT_FILTERS:
        return _with_titles(command, runner, names)
    if runner == "unittest" and UNITTEST_WORD.search(command):
        return " ".join([command, *(f"-k {shlex.quote(name)}" for name in names)])
    return _with_ids(command, names) if runner == "pytest" else None


def _with_ids(command: str, names: Collection[str]) -> str | None:
    """The command of pytest for these node ids; None where it is not seen to start that."""
    try:
        shlex.split(command)
    except ValueError:  # a quote that is never closed
        return None
    words = shell_words(command)
    start = next(
        (i for i, word in enumerate(words) if re.fullmatch(r"(?:.*/)?(?:pytest|py\.test)", word.text)), None
    )
    if start is None:
        return None
    kept = [word.written for word in words[: start + 1]]
    for previous, word in pairwise(words[start:]):
        if word.text.startswith("-") or VALUED.fullmatch(previous.text):
            kept.append(word.written)
    return " ".join([*kept, shlex.join(names)])


def _with_titles(command: str, runner: str, names: Collection[str]) -> str | None:
    """The command of a runner of JavaScript for the tests with these titles; None where it is not seen to start that."""
    option, started = SCRIPT_FILTERS[runner]
    titles = "|".join(SCRIPT_SPECIAL.sub(r"\\\g<0>", name.rpartition(" > ")[2]) for name in names)
    given = f"{option}{shlex.quote(titles)}"
    if runner == "node":
        found = started.search(command)
        return f"{command[: found.end()]} {given}{command[found.end() :]}" if found is not None else None
    if PACKAGE_TEST.match(command):
        return f"{command} {given}" if " -- " in command else f"{command} -- {given}"
    return f"{command} {given}" if started.search(command) else None


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
    heard: Callable[[bytes], None] | None = None,
    left_out: Collection[str] = (),
) -> TestRun:
    """Run `command` in `cwd` with the shell, and leave none of its processes running. unittest is asked to name each
    test. `env` comes from `environment.test_environment` with the same `report`, the file for pytest's results; an
    older file there is deleted first. `timeout` is in seconds, `bound` in bytes per stream. Paths below `cwd` and
    `roots` (the user's own tree) are normalised to relative ones. With a `sandbox`, it runs in that, where `cwd` is
    mounted at the place that the sandbox chooses. `heard` gets the output as it arrives. `left_out` are tests and files
    that Python's runners do not run.

    Raises:
        CommandError: the shell could not be started, or the sandbox could not be set up.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.parent.chmod(OWN)
    remove_tree(report)
    clear_guard_folder(report, left_out)
    asked = naming(command)
    if sandbox is None:
        done = proc.run(asked, cwd=cwd, env=env, timeout=timeout, check=False, bound=bound, heard=heard)
    else:
        done = sandbox.run(asked, env=env, timeout=timeout, bound=bound, heard=heard)
    report.parent.chmod(OWN)  # the command may have shut us out
    streams = [marked(done.stdout, done.stdout_cut), marked(done.stderr, done.stderr_cut)]
    output = "\n".join(stream.decode("utf-8", "replace") for stream in streams if stream)
    reading = _read(command, done.returncode, strip_escapes(output), report, cwd)
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


def naming(command: str) -> str:
    """`command`, with unittest told to name its tests unless it sets its own verbosity."""
    if len(UNITTEST_WORD.findall(command)) != 1 or VERBOSITY.search(command):
        return command
    return UNITTEST_WORD.sub(r"\g<0> -v", command)


def _read(command: str, returncode: int, text: str, report: Path, cwd: Path) -> Reading:
    """The results of all runners that the command started, together."""
    scripts = _read_scripts(report)
    started = started_runners(report)
    junit = _read_pytest(report, text, cwd, started.get("pytest", 0))
    ran_pytest = PYTEST_WORD.search(command) or (
        scripts is None and ("pytest" in started or PYTEST_TRACE.search(text))
    )
    if junit is None and ran_pytest:
        problem = _without_report(returncode, text)
        return Reading(report=TestReport(runner="pytest", whole=False, problem=problem))
    found = [reading for reading in (junit, scripts) if reading is not None]
    if not found:
        return _printed(command, text, report, unittest="unittest" in started)
    if "unittest" in started and (printed := _read_unittest(text, report)) is not None:
        found.append(printed)
    return reduce(_together, found)


def _read_pytest(report: Path, text: str, cwd: Path, runs: int) -> Reading | None:
    """The reports that pytest left, one of each process; None if there is none. Where the guard did not see one, that at `report`
    counts, which else comes from a pytest that tests started.
    """

    def exists(path: str) -> bool:
        return is_file(cwd, path)

    left = [guard_folder(report) / name for name in pytest_reports(report)]
    if not left and is_file(report.parent, report.name):
        left = [report]
    if not left:
        return None
    found = _believed(reduce(_together, (read_report(one, exists) for one in left)), text)
    return with_logged(found, read_test_log(report), every=runs > len(left))


def _read_unittest(text: str, report: Path) -> Reading | None:
    """What unittest printed, with what the guard recorded; None if it printed no summary."""
    reading = read_unittest(text)
    if reading is None:
        return None
    return with_logged(with_records_of_unittest(reading, report), read_test_log(report), every=True)


def _read_scripts(report: Path) -> Reading | None:
    """The reports of JavaScript's runners; None if none was started, and then nothing is imported to read them."""
    started = guard_folder(report).glob("*.started")
    if all(place.name.startswith("python-") for place in started):
        return None
    from clean_room_agent.orchestrator.testing.script_reports import read_script_reports

    return read_script_reports(report)


def _printed(command: str, text: str, report: Path, *, unittest: bool) -> Reading:
    """The result of a runner other than pytest, from its output; `unittest`: whether that was started."""
    reading = _read_unittest(text, report)
    if reading is not None:
        return reading
    from clean_room_agent.orchestrator.testing.javascript_output import read_printed

    reading = read_printed(text)
    if reading is not None:
        return reading
    if unittest or UNITTEST_WORD.search(command):
        problem = "unittest ended before it printed its summary"
        return Reading(report=TestReport(runner="unittest", whole=False, problem=problem))
    return Reading(report=TestReport(runner="unknown"))


def _together(first: Reading, second: Reading) -> Reading:
    """The combined results of two processes of one command, under the name of the first's runner."""
    one, other = first.report, second.report
    outcomes = merge((*one.outcomes.items(), *other.outcomes.items()))
    named = one.named and other.named
    twice = len(one.outcomes) + len(other.outcomes) - len(outcomes)
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    return Reading(
        report=TestReport(
            runner=one.runner,
            outcomes=outcomes,
            collected=(one.collected or 0) + (other.collected or 0) - twice,
            passed=passed if named else one.passed + other.passed,
            named=named,
            whole=one.whole and other.whole,
            problem=one.problem or other.problem,
        ),
        failures=(*first.failures, *second.failures),
    )


def _believed(reading: Reading, text: str) -> Reading:
    """`reading`, unless pytest's last line mentions failures that its report lacks."""
    summaries = PYTEST_SUMMARY.findall(text)
    if not summaries or not PYTEST_RED.search(summaries[-1]) or RED & set(reading.report.outcomes.values()):
        return reading
    return _cut_short(
        reading, f"pytest's report has no failure, and its last line says {summaries[-1].strip(' =')!r}"
    )


def _without_report(returncode: int, text: str) -> str:
    if returncode == 4:
        said = [line for line in text.split("\n") if "error" in line.lower()][-3:]
        return f"{REFUSED}: " + " ".join(line.strip() for line in said)
    if returncode in {126, 127}:
        return "the test command could not be started: " + text.strip()[-300:]
    return (
        f"pytest left no report (exit {returncode}): its process ended before the tests did, or the command does not "
        "pass PYTEST_ADDOPTS on (tox: add it to pass_env)"
    )


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
