"""What jest, vitest, mocha and Node's own runner have in common: the guard in their processes asks them for reports, one file a
process, whose tests are named `file > suite > test`; a file that broke is its path.
"""

import json
import re
import shlex
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import (
    RED,
    SEVERITY,
    Failure,
    Outcome,
    Reading,
    TestReport,
    unreadable,
)
from clean_room_agent.languages.ecmascript.package_json import command_of
from clean_room_agent.languages.printed_values import strip_escapes, values_in
from clean_room_agent.languages.relations import of_script
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_names import SEPARATOR
from clean_room_agent.languages.test_runner import (
    EndedCommand,
    GuardReader,
    ReportRequest,
    TestRunner,
    TooMuchError,
)

ValueT = TypeVar("ValueT")
EMPTY = "''"
"""An empty string, as it is written."""
TOO_MUCH = "the runners wrote more reports than are read"
MAX_BYTES = 50_000_000
"""Limit for all reports of one command together."""
NODE_TESTS = re.compile(r"\bnode\b[^&|;\n\"]*\s--test(?![\w-])")
PACKAGE_SCRIPT = re.compile(r"\b(?:npm|yarn|pnpm|bun)\b")
PACKAGE_TEST = re.compile(r"(?:npm|pnpm|yarn)(?:\s+run)?\s+test\b")
SCRIPTED = re.compile(
    r"\b(?:npm|npx|pnpm|yarn|bunx?|node|deno|jest|vitest|mocha|ava|react-scripts|vue-cli-service|ng|nx|turbo|lerna)\b"
)
"""A program of JavaScript in a command."""
OTHER_TESTS = re.compile(r"\b(?:py\.test|pytest|tox|nox|go test)\b|-m unittest\b|\bmanage\.py test\b")
SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|/]")

STACK_FRAME = re.compile(
    r"\s+(?:at |❯ )(?:async )?(?:(?P<function>[^\s()]+)(?: \[as \S+\])? )?"  # noqa: RUF001 - vitest's arrow
    r"\(?(?:file://)?(?P<path>(?:node:)?[^\s():]+):(?P<line>\d{1,9}):\d+\)?"
)
TREE_MARK = re.compile(
    r"(?P<indent> *)(?:(?P<passed>[✔✓√])|(?P<failed>[✕✖×]|\d+\))|(?P<skipped>[○﹣↓✎]|-(?= )))"  # noqa: RUF001
    r" (?:skipped |todo )?(?P<title>.*?)(?: \(\d+(?:\.\d+)? ?m?s\))?"
)
SUITE = re.compile(r"(?P<indent> {2,})(?P<title>\S.*)")
NUMBERED = re.compile(r"\b(\d{1,9}) (\w+)")


class ScriptRunner(TestRunner):
    """A runner of JavaScript; see `TestRunner`."""

    absent = r"(?:Cannot find (?:module|package)|Failed to resolve import|Does the file exist\W+) ?['\"](?P<script>[^'\"\n]+)"
    holder = r"^[^:>]*\.[cm]?[jt]sx?\Z"
    start: str
    """The command that starts it, by its package."""
    titles_option: str
    """The option for tests whose titles match a pattern."""

    def detect(self, files: RepositoryFiles) -> str:
        return command_of(files, self.name, self.start)

    def environment(self, env: Mapping[str, str], request: ReportRequest) -> dict[str, str]:
        """Node loads the guard, which asks its runner; Node's own is asked by options, unless the user chose its reporter."""
        given = env.get("NODE_OPTIONS", "")
        preload, reporter = (
            json.dumps(str(request.guard / name)) for name in ("preload.cjs", "node-reporter.cjs")
        )
        options = [f"--require {preload}"]
        if runs_node_tests(request.command, request.package):
            options += ["--test-reporter=spec --test-reporter-destination=stdout"]
            options += [f"--test-reporter={reporter} --test-reporter-destination=stderr"]
        asked = " ".join(options)  # all runners of JavaScript ask in the same words
        return {} if given.endswith(asked) else {"NODE_OPTIONS": f"{given} {asked}".strip()}

    def may_wait(self, command: str, root: Path) -> bool:
        if SCRIPTED.search(command):
            return True
        packages = (root / "package.json", *root.glob("*/package.json"))
        return not OTHER_TESTS.search(command) and any(package.is_file() for package in packages)

    def read(self, ended: EndedCommand) -> Reading | None:
        """The combined results of the processes in which the guard saw it start. Equal names are numbered, the worst first.
        Incomplete if one left no readable report, or says that it was interrupted.
        """
        if not ended.folder.is_dir():
            return None
        reader = GuardReader(ended.folder, max_bytes=MAX_BYTES)
        try:
            started = [name.removesuffix(".started") for name in reader.names(f"{self.name}-*.started")]
        except TooMuchError:
            return unreadable(self.name, TOO_MUCH)
        found = [_read_tests(reader, f"{stem}.json", self.name) for stem in started]
        tests = [test for report in found if not isinstance(report, str) for test in report]
        problem = next((report for report in found if isinstance(report, str)), "")
        return _build_reading(self.name, tests, problem) if started else None

    @abstractmethod
    def printed(self, text: str) -> Reading | None:
        """The results in the output; None without the runner's summary."""

    def read_printed(self, ended: EndedCommand) -> Reading | None:
        reading = self.printed(ended.text)
        return reading and replace(reading, failures=tuple(map(explained, reading.failures)))

    def only(self, command: str, names: Collection[str]) -> str | None:
        """The command for the tests with these titles; None where it is not seen to start the runner."""
        given = f"{self.titles_option} {shlex.quote(titles_pattern(names))}"
        if PACKAGE_TEST.match(command):
            return f"{command} {given}" if " -- " in command else f"{command} -- {given}"
        return f"{command} {given}" if re.search(rf"\b{self.name}\b", command) else None

    def frames(self, text: str) -> Iterator[StackFrame]:
        return frames_in(text)


def titles_pattern(names: Collection[str]) -> str:
    """A pattern for the titles of the tests."""
    return "|".join(SPECIAL.sub(r"\\\g<0>", name.rpartition(SEPARATOR)[2]) for name in names)


def runs_node_tests(command: str, package: str) -> bool:
    """Whether the command, or a script of `package` (a package.json's text) that it may run, is Node's own test runner
    with its default reporter.
    """
    texts = (command, package) if PACKAGE_SCRIPT.search(command) else (command,)
    return any(NODE_TESTS.search(text) and "--test-reporter" not in text for text in texts)


def frames_in(text: str) -> Iterator[StackFrame]:
    """The frames, innermost first, as they are printed."""
    for line in text.split("\n"):
        if match := STACK_FRAME.fullmatch(line):
            yield StackFrame(path=match["path"], line=int(match["line"]), function=match["function"] or "")


def read_tree(lines: Iterable[str]) -> Iterator[tuple[str, Outcome]]:
    """The tests of an indented list, named with their suites; a line that is neither a result nor a suite is skipped."""
    suites: list[tuple[int, str]] = []
    for line in lines:
        mark = TREE_MARK.fullmatch(line)
        heading = None if mark else SUITE.fullmatch(line)
        found = mark or heading
        if found is None:
            continue
        depth = len(found["indent"])
        while suites and suites[-1][0] >= depth:
            suites.pop()
        if heading is not None:
            suites.append((depth, heading["title"]))
        elif mark is not None:
            outcome: Outcome = "passed" if mark["passed"] else "failed" if mark["failed"] else "skipped"
            yield SEPARATOR.join((*(title for _, title in suites), mark["title"])), outcome


def explained(failure: Failure) -> Failure:
    """The failure with a message and both values, where it has none of its own: by what stands before its stack."""
    lines = (failure.message or failure.detail).split("\n")
    before = lines[: next((at for at, line in enumerate(lines) if STACK_FRAME.fullmatch(line)), len(lines))]
    if not (failure.expected or failure.actual):
        expected, actual = values_in("\n".join(before))
        failure = replace(failure, expected=expected, actual=actual)
    if failure.message.strip():
        return failure
    return replace(failure, message="\n".join(line.strip() for line in before))


class _Assertion(
    Struct, frozen=True, kw_only=True, rename={"ancestors": "ancestorTitles", "failures": "failureMessages"}
):
    """One test in the form of jest and vitest."""

    ancestors: list[str] = []
    title: str
    status: str
    failures: list[str] | None = None


class _JestFile(Struct, frozen=True, kw_only=True, rename={"tests": "assertionResults"}):
    name: str
    status: str
    message: str | None = ""
    tests: list[_Assertion] = []


class _Jest(
    Struct, frozen=True, kw_only=True, rename={"files": "testResults", "interrupted": "wasInterrupted"}
):
    files: list[_JestFile]
    interrupted: bool = False


class _Test(Struct, frozen=True, kw_only=True):
    """One test in the guard's own form."""

    file: str
    name: list[str]
    suite: bool = False
    outcome: Outcome
    message: str = ""
    detail: str = ""
    expected: str = ""
    actual: str = ""
    operator: str = ""


class _Guards(Struct, frozen=True, kw_only=True):
    tests: list[_Test]


class _Compared(Struct, frozen=True, kw_only=True):
    """The guard's record of one failing test of vitest."""

    file: str
    name: str
    diff: str
    expected: str
    actual: str
    operator: str
    stack: str


class _AllCompared(Struct, frozen=True, kw_only=True):
    failures: list[_Compared]


ReportedTest = tuple[Outcome, Failure]
"""How a test ended, and what is said of it, should that be a failure."""


def _build_reading(runner: str, tests: Iterable[ReportedTest], problem: str) -> Reading:
    """Of equal names, the worst comes first, so that numbers are stable."""
    ordered = sorted(tests, key=lambda test: (test[1].name, -SEVERITY.index(test[0])))
    numbered = list(number_duplicates((test[1].name, test) for test in ordered))
    return Reading(
        report=TestReport(
            runner=runner,
            outcomes=dict(sorted((name, outcome) for name, (outcome, _) in numbered)),
            collected=len(numbered),
            passed=sum(outcome == "passed" for outcome, _ in ordered),
            named=True,
            whole=not problem,
            problem=problem,
        ),
        failures=tuple(
            explained(
                replace(one, name=name, detail=strip_escapes(one.detail), message=strip_escapes(one.message))
            )
            for name, (outcome, one) in numbered
            if outcome in RED
        ),
    )


def _read_tests(reader: GuardReader, name: str, runner: str) -> list[ReportedTest] | str:
    """The tests, or why the run cannot be judged."""
    try:
        data = reader.read(name)
        if runner in {"jest", "vitest"}:
            answer = msgspec.json.decode(data, type=_Jest)
            if answer.interrupted:
                return f"{runner} was interrupted"
            compared = _read_compared(reader, name)
            return [one for file in answer.files for one in _of_file(file, compared)]
        return list(_of_guard(msgspec.json.decode(data, type=_Guards)))
    except OSError:
        return f"{runner} left no report: its process ended before the tests did"
    except TooMuchError:
        return TOO_MUCH
    except (msgspec.DecodeError, RecursionError):
        return f"{runner}'s report is cut short, or not one that it writes"


def _read_compared(reader: GuardReader, name: str) -> dict[str, _Compared]:
    """By name of a failing test, what the guard's reporter wrote in addition to vitest's own report."""
    try:
        data = reader.read(name.removesuffix(".json") + ".values")
        kept = msgspec.json.decode(data, type=_AllCompared)
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    return {SEPARATOR.join((one.file, one.name)): one for one in kept.failures}


def _values_of(one: _Compared) -> tuple[str, str]:
    """(expected, actual); if both look the same, the diff may distinguish a string from a number. Vitest writes strings
    without quotes, so an empty one next to another value is an empty string, not a missing value.
    """
    expected, actual = values_in(strip_escapes(one.diff)) if one.expected == one.actual else ("", "")
    if not (expected or actual):
        expected, actual = one.expected, one.actual
    if expected or actual:
        expected, actual = expected or EMPTY, actual or EMPTY
    return of_script(one.operator, expected) if expected else "", actual


def _of_file(file: _JestFile, compared: Mapping[str, _Compared]) -> Iterator[ReportedTest]:
    for test in file.tests:
        name = SEPARATOR.join((file.name, *filter(None, test.ancestors), test.title))
        detail = "\n".join(test.failures or ())
        one = compared.get(name)
        expected, actual = ("", "") if one is None else _values_of(one)
        detail = detail if one is None or not detail else one.stack or detail
        failure = Failure(name=name, path=file.name, detail=detail, expected=expected, actual=actual)
        yield _test_outcome(test.status), failure
    if file.status == "failed" and not any(_test_outcome(test.status) == "failed" for test in file.tests):
        yield "error", Failure(name=file.name, path=file.name, detail=file.message or "")


def _test_outcome(status: str) -> Outcome:
    return cast("Outcome", status) if status in {"passed", "failed"} else "skipped"


def _of_guard(answer: _Guards) -> Iterator[ReportedTest]:
    """The tests of the guard's report. Suites only count for their own failures, such as a broken hook: their tests are
    listed separately.
    """
    for test in answer.tests:
        if test.suite and (test.outcome != "failed" or "subtest" in test.message):
            continue
        titles = [title for title in test.name if title and title != test.file]
        name = SEPARATOR.join(filter(None, (test.file, *titles)))
        expected = of_script(test.operator, test.expected) if test.expected else ""
        yield (
            test.outcome,
            Failure(
                name=name,
                path=test.file,
                message=test.message,
                detail=test.detail,
                expected=expected,
                actual=test.actual,
            ),
        )


def number_duplicates(pairs: Iterable[tuple[str, ValueT]]) -> Iterator[tuple[str, ValueT]]:
    """`pairs` with equal names told apart by their order."""
    seen = Counter[str]()
    for name, value in pairs:
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), value
