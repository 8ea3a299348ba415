"""Runs a test command and reads its result: from the runner's report, or else from its output."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from clean_room_agent import proc
from clean_room_agent.orchestrator.testing.failure_reports import (
    MAX_DESCRIBED,
    MAX_EXPLAINED,
    SourceTree,
    describe,
    frames_of,
    locate,
    once,
)
from clean_room_agent.orchestrator.testing.guard_watch import Watched, clear, read_watched
from clean_room_agent.orchestrator.testing.normalise import (
    first_and_last_lines,
    normalise,
    normalise_name,
    relative_paths,
    strip_escapes,
)
from clean_room_agent.orchestrator.testing.readers.javascript import read_jest, read_mocha, read_vitest
from clean_room_agent.orchestrator.testing.readers.junit import read_report
from clean_room_agent.orchestrator.testing.readers.node_output import read_node
from clean_room_agent.orchestrator.testing.readers.python_record import with_records_of_unittest
from clean_room_agent.orchestrator.testing.readers.script_report import read_script_reports
from clean_room_agent.orchestrator.testing.readers.unittest_output import read_unittest
from clean_room_agent.orchestrator.testing.results import (
    EXCERPT_BOUND,
    RED,
    CommandEnd,
    Failure,
    Reading,
    TestReport,
    TestRun,
    merge,
)
from clean_room_agent.output_capture import marked
from clean_room_agent.safe_open import is_file
from clean_room_agent.sandbox.bubblewrap import Sandbox
from clean_room_agent.tree_removal import remove_tree

READERS = (read_unittest, read_jest, read_vitest, read_mocha, read_node)
"""Tried in this order on the output; the first that finds its own summary counts."""

OWN = 0o700
"""Mode of the folder of reports."""
PYTEST_WORD = re.compile(r"(?:^|[\s/;&|(])(?:py\.test|pytest)(?=\s|$|[;&|)])")
UNITTEST_WORD = re.compile(r"-m unittest(?: +discover)?(?=\s|$)")
VERBOSITY = re.compile(r"(?<=\s)(?:-[a-z]*[vq][a-z]*|--verbose|--quiet)(?=\s|$)")
PYTEST_TRACE = re.compile(
    r"^=+ test session starts =+$|^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE
)

PYTEST_SUMMARY = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
PYTEST_RED = re.compile(r"\d+ (?:failed|errors?)\b")


def run_tests(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    report: Path,
    roots: Sequence[Path] = (),
    bound: int = proc.DEFAULT_BOUND,
    sandbox: Sandbox | None = None,
    heard: Callable[[bytes], None] | None = None,
) -> TestRun:
    """`command` has run in `cwd` by the shell, and none of its processes is left.

    unittest is asked to name each test. `env` comes from `environment.test_environment` with the same `report`, the file that pytest, if the command runs
    it, leaves its results in; an older file there is deleted first. `timeout` is in seconds, `bound` in bytes a stream.
    Paths below `cwd` and `roots` (the user's own tree) are normalised to relative ones. With a `sandbox`, it runs in
    there, where `cwd` stands wherever the sandbox shows it. `heard` is given its output as it comes.

    Raises:
        CommandError: the shell could not be started, or the sandbox not be set up.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.parent.chmod(OWN)
    remove_tree(report)
    clear(report)
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
            reading, f"stopped after {timeout:g} s ([testing].timeout); all its processes were ended"
        )
    elif done.exceeded:
        key = {"memory": "memory_mb", "processes": "processes"}[done.exceeded]
        reading = _cut_short(
            reading, f"stopped for its use of {done.exceeded} ([sandbox].{key}); all its processes were ended"
        )
    watched = read_watched(report)
    shown = tuple((name, relative_paths(file, (cwd, *roots))) for name, file in watched.replaced)
    run = _settle(command, done, output, reading, (cwd, *roots))
    return dataclasses.replace(run, watched=Watched(ended=watched.ended, replaced=shown))


def naming(command: str) -> str:
    """`command`, with unittest told to name its tests where it was not told anything of the kind."""
    if len(UNITTEST_WORD.findall(command)) != 1 or VERBOSITY.search(command):
        return command
    return UNITTEST_WORD.sub(r"\g<0> -v", command)


def _read(command: str, returncode: int, text: str, report: Path, cwd: Path) -> Reading:
    scripts = read_script_reports(report)
    if is_file(report.parent, report.name):
        junit = _believed(read_report(report, lambda path: is_file(cwd, path)), text)
        return junit if scripts is None else _together(junit, scripts)
    if scripts is not None and not PYTEST_WORD.search(command):
        return scripts
    if PYTEST_WORD.search(command) or PYTEST_TRACE.search(text):
        return Reading(
            report=TestReport(runner="pytest", whole=False, problem=_without_report(returncode, text))
        )
    for reader in READERS:
        reading = reader(text)
        if reading is not None:
            return (
                with_records_of_unittest(reading, report) if reading.report.runner == "unittest" else reading
            )
    if UNITTEST_WORD.search(command):
        return Reading(
            report=TestReport(
                runner="unittest", whole=False, problem="unittest ended before it printed its summary"
            )
        )
    return Reading(report=TestReport(runner="unknown"))


def _together(first: Reading, second: Reading) -> Reading:
    """What two runners of one command say; it counts as the first's."""
    return Reading(
        report=TestReport(
            runner=first.report.runner,
            outcomes={**second.report.outcomes, **first.report.outcomes},
            collected=(first.report.collected or 0) + (second.report.collected or 0),
            passed=first.report.passed + second.report.passed,
            named=first.report.named and second.report.named,
            whole=first.report.whole and second.report.whole,
            problem=first.report.problem or second.report.problem,
        ),
        failures=(*first.failures, *second.failures),
    )


def _believed(reading: Reading, text: str) -> Reading:
    """`reading`, unless pytest's last words speak of failures of which its report has none."""
    summaries = PYTEST_SUMMARY.findall(text)
    if not summaries or not PYTEST_RED.search(summaries[-1]) or RED & set(reading.report.outcomes.values()):
        return reading
    return _cut_short(
        reading, f"pytest's report has no failure, and its last line says {summaries[-1].strip(' =')!r}"
    )


def _without_report(returncode: int, text: str) -> str:
    if returncode == 4:
        said = [line for line in text.split("\n") if "error" in line.lower()][-3:]
        return "pytest refused its command line or configuration: " + " ".join(line.strip() for line in said)
    if returncode in {126, 127}:
        return "the test command could not be started: " + text.strip()[-300:]
    return (
        f"pytest left no report (exit {returncode}): its process ended before the tests did, or the command sets "
        "--junitxml itself, or does not pass PYTEST_ADDOPTS on (tox: add it to pass_env)"
    )


def _cut_short(reading: Reading, problem: str) -> Reading:
    return dataclasses.replace(
        reading, report=dataclasses.replace(reading.report, whole=False, problem=problem)
    )


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
        report=dataclasses.replace(
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
