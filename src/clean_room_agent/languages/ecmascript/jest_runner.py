"""jest: the JSON report that the guard asks it for, else what it prints."""

import re
from collections.abc import Iterator
from itertools import pairwise

from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge
from clean_room_agent.languages.ecmascript.script_runner import NUMBERED, ScriptRunner, read_tree
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
    failures = tuple(_jest_failures(text))
    red: list[tuple[str, Outcome]] = [
        (failure.name, "error" if SEPARATOR not in failure.name else "failed") for failure in failures
    ]
    listed = list(_jest_listed(text))
    shown = [outcome for _, outcome in listed]
    named = shown.count("passed") == counts.get("passed", 0) and shown.count("failed") == counts.get(
        "failed", 0
    )
    return Reading(
        report=TestReport(
            runner="jest",
            outcomes=merge([*(listed if named else []), *red]),
            collected=collected,
            passed=counts.get("passed", 0),
            named=named,
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
