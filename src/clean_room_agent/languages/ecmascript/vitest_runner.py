"""vitest: its JSON report, and the guard's of compared values, else what it prints."""

import re
from collections.abc import Iterator
from itertools import pairwise

from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge
from clean_room_agent.languages.ecmascript.script_runner import NUMBERED, ScriptRunner
from clean_room_agent.languages.test_names import SEPARATOR

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
    failures = tuple(_vitest_failures(text))
    red: list[tuple[str, Outcome]] = [
        (failure.name, "error" if SEPARATOR not in failure.name else "failed") for failure in failures
    ]
    marks: dict[str, Outcome] = {"✓": "passed", "×": "failed", "↓": "skipped"}  # noqa: RUF001 - vitest's mark
    listed = [
        (match["title"], marks[match["mark"]])
        for line in text.split("\n")
        if (match := VITEST_LISTED.fullmatch(line))
    ]
    named = [outcome for _, outcome in listed].count("passed") == counts.get("passed", 0)
    return Reading(
        report=TestReport(
            runner="vitest",
            outcomes=merge([*(listed if named else []), *red]),
            collected=int(tests[-1]["total"]) if tests else 0,
            passed=counts.get("passed", 0),
            named=named,
        ),
        failures=failures,
    )


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
