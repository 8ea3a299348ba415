"""jest, vitest and mocha: the reports that the guard asks them for, else what they print, in which mocha names no files."""

import re
from collections.abc import Iterator
from itertools import pairwise

from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge
from clean_room_agent.languages.ecmascript.script_runner import (
    NUMBERED,
    ScriptRunner,
    number_duplicates,
    read_tree,
)
from clean_room_agent.languages.test_names import SEPARATOR

JEST_TESTS = re.compile(r"^Tests: +(?:.*, )?(\d{1,9}) total$", re.MULTILINE)
JEST_SUITES = re.compile(r"^Test Suites: .*\d+ total$", re.MULTILINE)
JEST_FILE = re.compile(r"(?:FAIL|PASS) (?:\S+ )??(?P<file>\S+\.\w+)(?: \(.*\))?")
JEST_FAILURE = re.compile(r"  ● (?P<title>.+)")


class JestRunner(ScriptRunner):
    """See `TestRunner`."""

    name = "jest"
    start = "jest"
    titles_option = "-t"
    traced = "process"

    def printed(self, text: str) -> Reading | None:
        return read_jest(text)


def read_jest(text: str) -> Reading | None:
    """Read jest's output; None without its summary. Names are `file > suite > test`; passing ones only with --verbose."""
    totals = list(JEST_TESTS.finditer(text))
    if not totals or not JEST_SUITES.search(text):
        return None
    collected = int(totals[-1][1])
    counts = {word: int(number) for number, word in NUMBERED.findall(totals[-1][0])}
    listed = list(_jest_listed(text))
    shown = [outcome for _, outcome in listed]
    named = shown.count("passed") == counts.get("passed", 0) and shown.count("failed") == counts.get(
        "failed", 0
    )
    failures = tuple(_jest_failures(text))
    return _build_reading("jest", failures, listed if named else None, collected, counts.get("passed", 0))


def _build_reading(
    runner: str,
    failures: tuple[Failure, ...],
    listed: list[tuple[str, Outcome]] | None,
    collected: int,
    passed: int,
) -> Reading:
    """Of counts and failures, and all tests if they are listed; a failure without a title is that of a file."""
    red: list[tuple[str, Outcome]] = [
        (failure.name, "error" if SEPARATOR not in failure.name else "failed") for failure in failures
    ]
    return Reading(
        report=TestReport(
            runner=runner,
            outcomes=merge([*(listed or ()), *red]),
            collected=collected,
            passed=passed,
            named=listed is not None,
        ),
        failures=failures,
    )


def _jest_failures(text: str) -> Iterator[Failure]:
    """The blocks headed by a dot, each once (jest repeats them when there are many)."""
    file, seen = "", set[str]()
    lines = text.partition("Summary of all failing tests")[0].split("\n")
    heads = [
        index for index, line in enumerate(lines) if JEST_FAILURE.fullmatch(line) or JEST_FILE.fullmatch(line)
    ]
    for index, following in pairwise((*heads, len(lines))):
        if shown := JEST_FILE.fullmatch(lines[index]):
            file = shown["file"]
            continue
        title = lines[index].removeprefix("  ● ").replace(" › ", SEPARATOR)  # noqa: RUF001 - jest's separator
        name = file if title == "Test suite failed to run" else f"{file}{SEPARATOR}{title}"
        if title == "Console" or name in seen:
            continue
        seen.add(name)
        detail = "\n".join(lines[index + 1 : following]).partition("\nTest Suites: ")[0]
        yield Failure(name=name, detail=detail, path=file)


def _jest_listed(text: str) -> Iterator[tuple[str, Outcome]]:
    """The trees that --verbose prints below each file, up to that file's failures."""
    file, listing = "", list[str]()
    for line in (*text.split("\n"), "PASS end.js"):
        shown = JEST_FILE.fullmatch(line)
        if shown or JEST_FAILURE.fullmatch(line):
            yield from ((f"{file}{SEPARATOR}{name}", outcome) for name, outcome in read_tree(listing) if file)
            file, listing = (shown["file"] if shown else ""), []
        else:
            listing.append(line)


VITEST_TESTS = re.compile(r"^ +Tests +(?P<counts>.*?) \((?P<total>\d{1,9})\)$", re.MULTILINE)
VITEST_FILES = re.compile(r"^ Test Files +(?P<counts>.*?) \((?P<total>\d{1,9})\)$", re.MULTILINE)
VITEST_FAILURE = re.compile(r" FAIL  (?P<title>.+)")
VITEST_LISTED = re.compile(r" (?P<mark>[✓×↓]) (?P<title>\S+ > .*?)(?: \d+m?s)?")  # noqa: RUF001 - vitest's mark


class VitestRunner(ScriptRunner):
    """See `TestRunner`."""

    name = "vitest"
    start = "vitest run"
    titles_option = "-t"
    traced = "process"

    def printed(self, text: str) -> Reading | None:
        return read_vitest(text)


def read_vitest(text: str) -> Reading | None:
    """Read vitest's output; None without its summary. Names are `file > suite > test`; passing ones only when verbose."""
    tests, files = list(VITEST_TESTS.finditer(text)), list(VITEST_FILES.finditer(text))
    if not files:
        return None
    counts = {word: int(number) for number, word in NUMBERED.findall(tests[-1]["counts"])} if tests else {}
    marks: dict[str, Outcome] = {"✓": "passed", "×": "failed", "↓": "skipped"}  # noqa: RUF001 - vitest's mark
    listed = [
        (match["title"], marks[match["mark"]])
        for line in text.split("\n")
        if (match := VITEST_LISTED.fullmatch(line))
    ]
    named = [outcome for _, outcome in listed].count("passed") == counts.get("passed", 0)
    failures, collected = tuple(_vitest_failures(text)), int(tests[-1]["total"]) if tests else 0
    return _build_reading("vitest", failures, listed if named else None, collected, counts.get("passed", 0))


def _vitest_failures(text: str) -> Iterator[Failure]:
    """The blocks headed FAIL, each once; a file that did not load is named by its path."""
    lines = text.split("\n")
    heads = [index for index, line in enumerate(lines) if VITEST_FAILURE.fullmatch(line)]
    seen: set[str] = set()
    for index, following in pairwise((*heads, len(lines))):
        title = lines[index].removeprefix(" FAIL  ")
        name = title.partition(" [ ")[0].strip() if SEPARATOR not in title else title.strip()
        if name not in seen:
            seen.add(name)
            detail = "\n".join(line for line in lines[index + 1 : following] if not line.startswith("⎯"))
            path = name.partition(SEPARATOR)[0]
            yield Failure(name=name, detail=detail.partition("\n Test Files ")[0], path=path)


MOCHA_COUNT = re.compile(r"^ +(\d{1,9}) (passing|pending|failing)(?: \([^)\n]*\))?$", re.MULTILINE)
MOCHA_BLOCK = re.compile(r"^  \d+\) ", re.MULTILINE)


class MochaRunner(ScriptRunner):
    """See `TestRunner`."""

    name = "mocha"
    start = "mocha"
    titles_option = "-g"
    traced = "tests"
    holder = rf'{ScriptRunner.holder}|"(?:before|after) (?:all|each)" hook\b'

    def printed(self, text: str) -> Reading | None:
        return read_mocha(text)


def read_mocha(text: str) -> Reading | None:
    """Read the output of mocha's spec or dot reporter; None without its summary. Only spec names the tests that passed."""
    counts = {match[2]: match for match in MOCHA_COUNT.finditer(text)}
    if "passing" not in counts:
        return None
    passing, pending, failing = (
        int(counts[word][1]) if word in counts else 0 for word in ("passing", "pending", "failing")
    )
    summary = max(match.end() for match in counts.values())
    failures = tuple(_mocha_failures(text[summary:]))[:failing]
    tree = list(read_tree(text[: counts["passing"].start()].split("\n")))
    shown = [outcome for _, outcome in tree]
    named = (shown.count("passed"), shown.count("skipped"), len(failures)) == (passing, pending, failing)
    listed = [(name, outcome) for name, outcome in tree if outcome != "failed"] if named else []
    red: list[tuple[str, Outcome]] = [(failure.name, "failed") for failure in failures]
    return Reading(
        report=TestReport(
            runner="mocha",
            outcomes=merge(number_duplicates(listed + red)),
            collected=passing + pending + failing,
            passed=passing,
            named=named,
            whole=len(failures) == failing,
            problem="" if len(failures) == failing else "mocha's list of failures is cut",
        ),
        failures=failures,
    )


def _mocha_failures(text: str) -> Iterator[Failure]:
    """The numbered blocks after the summary; a title continues over lines until one ends with a colon."""
    starts = [match.start() for match in MOCHA_BLOCK.finditer(text)]
    for start, stop in pairwise((*starts, len(text))):
        lines = text[start:stop].split("\n")
        last = next((index for index, line in enumerate(lines) if line.endswith(":")), 0)
        titles = [lines[0].partition(") ")[2], *lines[1 : last + 1]]
        name = SEPARATOR.join(title.strip() for title in titles if title.strip()).removesuffix(":")
        yield Failure(name=name, detail="\n".join(lines[last + 1 :]))
