"""Reads the reports that the guard requests from jest, vitest, mocha and Node's own runner, one file per process."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clean_room_agent.orchestrator.testing.output import strip_escapes, values_in
from clean_room_agent.orchestrator.testing.results import (
    SEVERITY,
    Failure,
    Outcome,
    Reading,
    Runner,
    TestReport,
)
from clean_room_agent.orchestrator.testing.test_commands import GuardReader, TooMuchError, guard_folder

SEPARATOR = " > "
EMPTY = "''"
"""An empty string, as it is written."""
TOO_MUCH = "the runners wrote more reports than are read"
RUNNERS: tuple[Runner, ...] = ("jest", "vitest", "mocha", "node")
MAX_BYTES = 50_000_000
"""Limit for all reports of one command together."""


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _Assertion(_Foreign):
    """One test in the form of jest and vitest."""

    ancestors: list[str] = Field(default_factory=list, alias="ancestorTitles")
    title: str
    status: str
    failures: list[str] | None = Field(default=None, alias="failureMessages")


class _File(_Foreign):
    name: str
    status: str
    message: str | None = ""
    tests: list[_Assertion] = Field(default_factory=list, alias="assertionResults")


class _Jest(_Foreign):
    files: list[_File] = Field(alias="testResults")
    interrupted: bool = Field(default=False, alias="wasInterrupted")


class _Test(_Foreign):
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


class _Guards(_Foreign):
    tests: list[_Test]


class _Compared(_Foreign):
    """The guard's record of one failing test of vitest."""

    file: str
    name: str
    diff: str
    expected: str
    actual: str
    operator: str
    stack: str


class _AllCompared(_Foreign):
    failures: list[_Compared]


class _ReportedTest(Struct, frozen=True, kw_only=True):
    name: str
    outcome: Outcome
    file: str
    message: str = ""
    detail: str = ""
    expected: str = ""
    actual: str = ""


def read_script_reports(report: Path) -> Reading | None:
    """The combined results of the runners that a command started; None if the guard saw none start.

    Names are `file > suite > test`; a file that broke is its path. Equal names are numbered, the worst first.
    Incomplete if a runner started and left no readable report, or says that it was interrupted.
    """
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        started = [
            (runner, name.removesuffix(".started"))
            for runner in RUNNERS
            for name in reader.names(f"{runner}-*.started")
        ]
    except TooMuchError:
        return Reading(report=TestReport(runner="node", whole=False, problem=TOO_MUCH))
    if not started:
        return None
    tests: list[_ReportedTest] = []
    problem = ""
    for runner, stem in started:
        found = _read(reader, f"{stem}.json", runner)
        if isinstance(found, str):
            problem = problem or found
        else:
            tests += found
    numbered = list(_numbered(tests))
    return Reading(
        report=TestReport(
            runner=started[0][0],
            outcomes=dict(sorted((name, one.outcome) for name, one in numbered)),
            collected=len(numbered),
            passed=sum(one.outcome == "passed" for one in tests),
            named=True,
            whole=not problem,
            problem=problem,
        ),
        failures=tuple(
            Failure(
                name=name,
                detail=strip_escapes(one.detail),
                message=strip_escapes(one.message),
                path=one.file,
                expected=one.expected,
                actual=one.actual,
            )
            for name, one in numbered
            if one.outcome in {"failed", "error"}
        ),
    )


def _read(reader: GuardReader, name: str, runner: Runner) -> list[_ReportedTest] | str:
    """The tests, or why the run cannot be judged."""
    try:
        data = reader.read(name)
        if runner in {"jest", "vitest"}:
            answer = _Jest.model_validate_json(data)
            if answer.interrupted:
                return f"{runner} was interrupted"
            compared = _compared(reader, name)
            return [one for file in answer.files for one in _of_file(file, compared)]
        return list(_of_guard(_Guards.model_validate_json(data)))
    except OSError:
        return f"{runner} left no report: its process ended before the tests did"
    except TooMuchError:
        return TOO_MUCH
    except (ValidationError, json.JSONDecodeError):
        return f"{runner}'s report is cut short, or not one that it writes"


def _compared(reader: GuardReader, name: str) -> dict[str, _Compared]:
    """By name of a failing test, what the guard's reporter wrote in addition to vitest's own report."""
    try:
        data = reader.read(name.removesuffix(".json") + ".values")
        kept = _AllCompared.model_validate_json(data)
    except (OSError, ValidationError):
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
    return operated(one.operator, expected, actual)


def operated(operator: str, expected: str, actual: str) -> tuple[str, str]:
    """The expected value with an operator of node:assert or chai; any kind of equality adds nothing."""
    if operator.startswith("not") and (expected or actual):
        return f"not {expected}", actual
    return (f"to match {expected}", actual) if operator == "match" else (expected, actual)


def _of_file(file: _File, compared: Mapping[str, _Compared]) -> Iterator[_ReportedTest]:
    for test in file.tests:
        name = SEPARATOR.join((file.name, *filter(None, test.ancestors), test.title))
        detail = "\n".join(test.failures or ())
        one = compared.get(name)
        expected, actual = ("", "") if one is None else _values_of(one)
        yield _ReportedTest(
            name=name, outcome=_outcome(test.status), file=file.name, expected=expected, actual=actual,
            detail=detail if one is None or not detail else one.stack or detail,
        )  # fmt: skip
    if file.status == "failed" and not any(_outcome(test.status) == "failed" for test in file.tests):
        yield _ReportedTest(name=file.name, outcome="error", file=file.name, detail=file.message or "")


def _outcome(status: str) -> Outcome:
    return cast("Outcome", status) if status in {"passed", "failed"} else "skipped"


def _of_guard(answer: _Guards) -> Iterator[_ReportedTest]:
    """The tests of the guard's report. Suites only count for their own failures, such as a broken hook: their tests are
    listed separately.
    """
    for test in answer.tests:
        if test.suite and (test.outcome != "failed" or "subtest" in test.message):
            continue
        titles = [title for title in test.name if title and title != test.file]
        name = SEPARATOR.join(filter(None, (test.file, *titles)))
        expected, actual = operated(test.operator, test.expected, test.actual)
        yield _ReportedTest(
            name=name, outcome=test.outcome, file=test.file, message=test.message, detail=test.detail,
            expected=expected, actual=actual,
        )  # fmt: skip


def _numbered(tests: Iterable[_ReportedTest]) -> Iterator[tuple[str, _ReportedTest]]:
    """(name, test), with numbers for equal names; the worst of these comes first, so that numbers are stable."""
    seen: dict[str, int] = {}
    for one in sorted(tests, key=lambda test: (test.name, -SEVERITY.index(test.outcome))):
        seen[one.name] = seen.get(one.name, 0) + 1
        yield (one.name if seen[one.name] == 1 else f"{one.name} #{seen[one.name]}"), one
