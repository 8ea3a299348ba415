"""What runs when goal tests fail: they are run once more, with tests of the same file that pass, while the guard in the runners'
processes records functions, lines and values (`guard/cra_observe.py`, `guard/coverage.cjs`).

A line's suspiciousness is Ochiai's: of F failing tests, e ran it, and so did p passing ones: e / sqrt(F * (e + p)).
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct, field, structs

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import GoalTrace, ObservedCall, TracedFunction
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.json_values import from_json
from clean_room_agent.languages.test_names import SEPARATOR, UNLOADED, files_meant
from clean_room_agent.languages.test_runner import GuardReader, TooMuchError, guard_folder
from clean_room_agent.languages.test_runners import has_log, runner_named
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, rerun_command
from clean_room_agent.orchestrator.test_runs.output import SourceTree, normalise_name
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.paths import TEST_PATH, is_test_configuration
from clean_room_agent.redaction import Redactor, secret_values
from clean_room_agent.safe_open import read_or_none
from clean_room_agent.syntax import MAX_PARSED_BYTES

MAX_PASSING = 60
"""Passing tests that are run for comparison; the first in order of their names."""
LEAST_SECONDS = 60.0
"""A machine under load needs some only to start a runner."""
TIMES = 4.0
"""A trace may take this many times as long as the run that it repeats."""
TRACED_TIMES = 2.0
PASSING_PATIENCE = 10.0
"""So many times longer may it take to trace the tests that pass, which is done once for a repository."""
MAX_TRACED, MAX_NAME = 250, 200
"""Passing tests that are traced, and characters of their names: all are in one argument of a command."""
LEAST_TRACED = 4.0
"""Seconds of the processor after which tracing turns itself off, at least."""
MAX_BYTES = 20_000_000
MAX_VALUE = 200
"""Characters of a shown value; the beginning is kept."""
MAX_SEEN = 400
"""Characters of a recorded value of which some are shown; a secret that begins there is whole in what was recorded."""
MAX_FUNCTIONS = 60
MODULE = "<module>"
DOCUMENTED = re.compile(r"[^:]*::[\w.]*\.\w+")
"""An example in a docstring, by pytest's name: `shop/money.py::shop.money.split`."""
REMOVED = "[secret]"


class FunctionRecord(Struct, frozen=True, kw_only=True, array_like=True):
    """What a function did under one test, as the guard wrote it."""

    path: str
    first: int
    name: str
    calls: int
    lines: list[int]
    depth: int
    order: int
    origin: int
    """The line of the test that was running when it was called last; 0 if unknown."""
    last: list[ObservedCall]
    end: int = 0
    """Its last line, where that is known."""


class TraceRecord(Struct, frozen=True, kw_only=True):
    """One test, as the guard wrote it."""

    test: str
    failed: bool
    functions: list[FunctionRecord]
    failure: list[tuple[str, int, str, int]] = field(default_factory=list)
    """(path, first line, name, line) of the functions that the error came through, innermost first."""
    lines: list[tuple[str, int]] = field(default_factory=list)
    """The same of the tests' own: (path, line)."""
    problem: str = ""


def trace_goals(
    runner: CommandRunner, goals: Sequence[str] | str, passing: Sequence[str], like: TestRun
) -> GoalTrace:
    """What ran when the goal tests failed, in the tree that `runner` has checked out.

    `goals` are tests of `like`, by its names, or a shell command instead; `passing` are tests of the same files that pass. The
    run takes a bounded time, a few times that of `like`. Nothing is raised for tests that cannot be traced: `problem` says why.
    """
    kept = sorted(set(passing))[:MAX_PASSING] if not isinstance(goals, str) else []
    seen = _Runs(runner=runner, like=like, goals=goals)
    known = runner_named(like.report.runner)
    if known is not None and not known.traced:
        return GoalTrace(problem=f"tests of {known.name} cannot be traced")
    if known is not None and known.traced == "process" and not isinstance(goals, str):
        failing = [record for _, record in seen.observe(goals, ())]
        green = [record for _, record in seen.observe(kept, ())] if kept else []
    else:
        named = seen.observe(goals, kept)
        failing = _failing_records(named, goals, seen.red)
        green = [record for name, record in named if _is_among(name, kept) and not record.failed]
    told = [*seen.problems, *(record.problem for record in (*failing, *green) if record.problem)]
    if not failing:
        told.append("the goal tests did not fail again, or no process that ran them could be traced")
        return GoalTrace(problem=told[0])
    names = Definitions(runner.root)
    secrets = Redactor(bytes, secret_values(runner.inherited))
    located = [_with_frames(record, seen.failing) for record in failing]
    functions = _traced_functions(located, green, names, secrets)
    if not functions:
        told.append("nothing of the repository's own ran outside of its tests")
    return GoalTrace(functions=functions, problem=next(iter(told), ""))


def trace_passing(runner: CommandRunner, like: TestRun) -> tuple[tuple[TracedFunction, ...], str]:
    """The functions that passing tests of `like` run in the tree that `runner` has checked out, by path and place, with the lines
    that ran; and why not all are known, if so. Of more than `MAX_TRACED` tests every second counts, or third, and so on.
    """
    names = sorted(name for name in like.green() if len(name) <= MAX_NAME)
    step = -(-len(names) // MAX_TRACED)
    names = names[:: step or 1]
    seen = _Runs(runner=runner, like=like, goals=names, patience=PASSING_PATIENCE)
    places = Definitions(runner.root)
    found: dict[tuple[str, int, int, str], set[int]] = {}
    for _, record in seen.observe(names, names):
        seen.problems += [record.problem] if record.problem else []
        for ran in () if record.failed else record.functions:
            name, first, last, _ = places.at(ran.path, ran.first if ran.name != MODULE else 0)
            if name:
                found.setdefault((ran.path, first, last, name), set()).update(ran.lines)
    functions = tuple(
        TracedFunction(
            path=path,
            name=name,
            first_line=first,
            last_line=last,
            calls=1,
            lines=tuple((line, 1.0) for line in sorted(lines)),
        )
        for (path, first, last, name), lines in sorted(found.items())
    )
    return functions, next(iter(seen.problems), "")


class _Runs(Struct, kw_only=True):
    """The runs that are observed."""

    runner: CommandRunner
    like: TestRun
    goals: Sequence[str] | str
    patience: float = 1.0
    """How much longer than usual a run may take."""
    problems: list[str] = field(default_factory=list)
    red: set[str] = field(default_factory=set)
    failing: list[FailingTest] = field(default_factory=list)

    def observe(self, goals: Sequence[str] | str, passing: Sequence[str]) -> list[tuple[str, TraceRecord]]:
        """What was recorded while these tests ran, or this command: by test."""
        command, left_out = _trace_command(goals, passing, self.like)
        took = self.like.end.duration_ms / 1000
        names = () if isinstance(goals, str) else (*goals, *passing)
        titled = [name.split(SEPARATOR) for name in names if SEPARATOR in name]
        observed = {
            "tree": str(self.runner.stands_at),
            "tests": _paths_of_tests(self.goals),
            "plain": passing,
            "seconds": self.patience * max(LEAST_TRACED, TRACED_TIMES * took),
            "whole": "command" if isinstance(goals, str) else "tests",
            "titles": sorted({" ".join(titles) for _, *titles in titled}),
            "files": sorted({file for file, *_ in titled}),
        }
        seconds = self.patience * max(LEAST_SECONDS, TIMES * took)
        asked = json.dumps(observed)
        run = self.runner.run_observed(command, asked, seconds=seconds, left_out=left_out)
        records, problem = read_trace_records(self.runner.report)
        if not run.report.whole:
            problem = problem or run.report.problem
        self.problems += [problem] if problem else []
        self.red |= run.red()
        self.failing += run.failing
        roots = (self.runner.root, self.runner.tree.repo_top)
        return [(normalise_name(record.test.removeprefix(UNLOADED), roots), record) for record in records]


def _trace_command(
    goals: Sequence[str] | str, passing: Sequence[str], like: TestRun
) -> tuple[str, Collection[str]]:
    """The command for these tests, and the tests that it has to leave out."""
    if isinstance(goals, str):
        return goals, ()
    wanted = list(dict.fromkeys((*goals, *passing)))
    # JavaScript's runners are told by the guard: what one of them is asked for differs from what another one is.
    command = rerun_command(like, wanted) if has_log(like.report.runner) else None
    if command is not None:
        return command, ()
    return like.command, sorted(set(like.report.outcomes) - set(wanted))


def _paths_of_tests(goals: Sequence[str] | str) -> str:
    """The pattern of paths, in lower case, that hold tests: those of the goal tests, too, whatever they are called."""
    named = () if isinstance(goals, str) else [goal for goal in goals if not DOCUMENTED.fullmatch(goal)]
    files = sorted({path for goal in named for path in files_meant(goal)})
    own = "".join(rf"|\A{re.escape(path.lower())}\Z" for path in files)
    return rf"{TEST_PATH}|(?:^|/)conftest\.py\Z{own}"


def read_trace_records(report: Path) -> tuple[list[TraceRecord], str]:
    """What the guard recorded beside the report, and why not all of it could be read."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    found: list[TraceRecord] = []
    problem = ""
    try:
        for name in reader.names("*.observed"):
            for line in reader.read(name).splitlines():
                try:
                    found.append(from_json(line, TraceRecord))
                except ValueError:
                    problem = "a part of the trace cannot be read"
    except TooMuchError:
        problem = "there was more than is read of a trace"
    except OSError:
        problem = "a part of the trace cannot be read"
    return found, problem


def _failing_records(
    named: Sequence[tuple[str, TraceRecord]], goals: Sequence[str] | str, red: Collection[str]
) -> list[TraceRecord]:
    """The records of the goal tests that failed; of processes that they started, too, and of files that could not be loaded."""
    if isinstance(goals, str):
        return [record for name, record in named if not name]
    failed = {name for name, record in named if record.failed or _is_among(name, red)}
    files = {goal.partition("::")[0] for goal in goals}
    return [
        record
        for name, record in named
        if (name in failed and _is_among(name, goals))
        or (record.failed and name in files and "::" not in name)
    ]


def _is_among(name: str, tests: Collection[str]) -> bool:
    """Whether it is the name of one of the tests; in JavaScript, what runs a test knows its titles, but not its file."""
    return bool(name) and (name in tests or any(test.endswith(f"{SEPARATOR}{name}") for test in tests))


def _with_frames(record: TraceRecord, failing: Sequence[FailingTest]) -> TraceRecord:
    """The record of JavaScript's runners with the way to the failure, which stands in their reports."""
    if record.failure or record.lines:
        return record
    tests = [test for test in failing if not record.test or _is_among(record.test, (test.name,))]
    frames = [frame for test in tests for frame in test.frames if frame.line]
    told = []
    for frame in frames:
        around = [
            one
            for one in record.functions
            if one.path == frame.path and one.lines and one.first <= frame.line <= one.end
        ]
        if around:
            inner = min(around, key=lambda one: one.end - one.first)
            told.append((inner.path, inner.first, inner.name, frame.line))
    called = {word for test in tests for word in re.findall(r"\w+", test.statement)}
    functions = [
        structs.replace(one, depth=1 if one.name.rpartition(".")[2] in called else 2)
        for one in record.functions
    ]
    return structs.replace(record, failure=told, functions=functions)


class Definitions:
    """The definitions of the files of one tree, by the lines at which code says that it begins."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.tree = SourceTree(root)
        self._known: dict[str, tuple[tuple[str, int, int], ...]] = {}

    def at(self, path: str, line: int) -> tuple[str, int, int, bool]:
        """Qualified name, first and last line of the definition that begins at a line, or else of the innermost that holds it;
        and whether it begins there. Without a name if there is none.
        """
        known = self._file_spans(path)
        begins = [one for one in known if one[1] == line]  # a module begins at line 0
        holds = begins or [one for one in known if one[1] < line <= one[2]]
        if not holds:
            return "", line or 1, 0, False
        name, first, last = min(holds, key=lambda one: one[2] - one[1])
        return name, first, last, bool(begins)

    def _file_spans(self, path: str) -> tuple[tuple[str, int, int], ...]:
        if path not in self._known:
            data = read_or_none(self._root, path, max_bytes=MAX_PARSED_BYTES + 1) or b""
            text = data.decode("utf-8", "replace")
            self._known[path] = tuple(
                (span.symbol, text.count("\n", 0, span.start) + 1, text.count("\n", 0, span.end) + 1)
                for span in definitions(path, text)
            )
        return self._known[path]


class _TracedDefinition(Struct, kw_only=True):
    """What one definition did under all failing tests."""

    path: str
    name: str
    first: int
    last: int
    calls: int = 0
    lines: set[int] = field(default_factory=set)
    near: tuple[int, int, int] = (9, 0, 0)
    """Smaller is nearer to the failure."""
    observed: list[ObservedCall] = field(default_factory=list)
    failed_at: int = 0


def _traced_functions(
    failing: Sequence[TraceRecord], green: Sequence[TraceRecord], names: Definitions, secrets: Redactor
) -> tuple[TracedFunction, ...]:
    found: dict[tuple[str, str, int], _TracedDefinition] = {}
    for record in failing:
        way = {place[:3]: place[3] for place in reversed(record.failure)}
        path_of_error = list(dict.fromkeys(place[:3] for place in record.failure))
        for ran in record.functions:
            if not ran.lines or is_test_configuration(ran.path) or not names.tree.exists(ran.path):
                continue  # without lines: what a transpiler put in; without a file: code of the tests may write here, too
            name, first, last, begins = names.at(ran.path, ran.first if ran.name != MODULE else 0)
            if not name and ran.end:
                name, first, last = _assigned_function(ran, record.functions)
                begins = (first, last) == (ran.first, ran.end)
            one = found.setdefault(
                (ran.path, name, first), _TracedDefinition(path=ran.path, name=name, first=first, last=last)
            )
            is_itself = begins and (ran.end == last or ran.name == name.rpartition(".")[2])
            one.calls += ran.calls if is_itself else 0
            one.lines.update(ran.lines)
            one.near = min(one.near, _nearness(ran, path_of_error, record, names))
            if is_itself or not name:
                one.observed = [_without_secrets(call, secrets) for call in ran.last] or one.observed
            one.failed_at = one.failed_at or way.get((ran.path, ran.first, ran.name), 0)
    failing_lines, green_lines = _lines_by_test(failing), _lines_by_test(green)
    ordered = sorted(found.values(), key=lambda one: (one.near, one.path, one.first))
    return tuple(
        TracedFunction(
            path=one.path,
            name=one.name,
            first_line=one.first,
            last_line=one.last,
            calls=one.calls,
            lines=tuple(
                (line, _suspiciousness((one.path, line), failing_lines, green_lines))
                for line in sorted(one.lines)
            ),
            observed=tuple(one.observed),
            failed_at=one.failed_at,
        )
        for one in ordered[:MAX_FUNCTIONS]
    )


def _assigned_function(ran: FunctionRecord, functions: Sequence[FunctionRecord]) -> tuple[str, int, int]:
    """Name, first and last line of a function of JavaScript that is assigned to a member, or of the innermost such that holds it."""
    around = [
        one
        for one in functions
        if one.path == ran.path and one.name and one.first <= ran.first and ran.end <= one.end
    ]
    one = ran if ran.name else min(around, key=lambda one: one.end - one.first, default=ran)
    return one.name, one.first, one.end


def _nearness(
    ran: FunctionRecord,
    path_of_error: Sequence[tuple[str, int, str]],
    record: TraceRecord,
    names: Definitions,
) -> tuple[int, int, int]:
    """What the error came through, innermost first; then what the failing statement of the test called, directly first; then
    what ran before, the latest first.
    """
    if (ran.path, ran.first, ran.name) in path_of_error:
        return 0, path_of_error.index((ran.path, ran.first, ran.name)), 0
    spans = [names.tree.statement_lines(path, line) for path, line in record.lines]
    is_near = not spans or any(first <= ran.origin <= last for first, last in spans)
    return (1 if is_near else 2), ran.depth, -ran.order


def _suspiciousness(
    at: tuple[str, int], failing: Sequence[set[tuple[str, int]]], green: Sequence[set[tuple[str, int]]]
) -> float:
    """Ochiai's coefficient of a line, to three places, from the lines that each test ran."""
    if not green:
        return 1.0
    failed = sum(at in lines for lines in failing)
    passed = sum(at in lines for lines in green)
    return round(failed / math.sqrt(len(failing) * (failed + passed)), 3) if failed else 0.0


def _lines_by_test(records: Iterable[TraceRecord]) -> list[set[tuple[str, int]]]:
    found: dict[str, set[tuple[str, int]]] = {}
    for record in records:
        lines = found.setdefault(record.test, set())
        lines.update((ran.path, line) for ran in record.functions for line in ran.lines)
    return list(found.values())


def _without_secrets(call: ObservedCall, secrets: Redactor) -> ObservedCall:
    return ObservedCall(
        arguments=tuple((name, _show_value(name, value, secrets)) for name, value in call.arguments),
        result=_show_value("", call.result, secrets),
        values=tuple((name, _show_value(name, value, secrets)) for name, value in call.values),
    )


def _show_value(name: str, value: str, secrets: Redactor) -> str:
    """The value as it is shown: shortened, without line breaks and secrets. A name says what is assigned to it."""
    head = f"{name} = " if name else ""
    text, at, pieces = f"{head}{value}", 0, []
    seen = len(head) + MAX_SEEN
    for start, end in secrets.secrets_in(text):
        if start < seen:
            pieces += [text[at:start], REMOVED]
            at = end
    plain = " ".join("".join([*pieces, text[at : max(at, seen)]]).removeprefix(head).split("\n"))
    return plain if len(plain) <= MAX_VALUE else f"{plain[:MAX_VALUE]}..."
