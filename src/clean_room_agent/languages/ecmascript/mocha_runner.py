"""mocha: the report of the guard's reporter, else what its own ones print, which name no files."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge
from clean_room_agent.languages.ecmascript.script_runner import ScriptRunner, read_tree
from clean_room_agent.languages.test_names import SEPARATOR

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
    return Reading(
        report=TestReport(
            runner="mocha",
            outcomes=merge(_numbered([*listed, *((failure.name, "failed") for failure in failures)])),
            collected=passing + pending + failing,
            passed=passing,
            named=named,
            whole=len(failures) == failing,
            problem="" if len(failures) == failing else "mocha's list of failures is cut",
        ),
        failures=failures,
    )


def _numbered(pairs: Iterable[tuple[str, Outcome]]) -> Iterator[tuple[str, Outcome]]:
    """`pairs` with equal names told apart by their order."""
    seen: dict[str, int] = {}
    for name, outcome in pairs:
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), outcome


def _mocha_failures(text: str) -> Iterator[Failure]:
    """The numbered blocks after the summary; a title continues over lines until one ends with a colon."""
    starts = [match.start() for match in MOCHA_BLOCK.finditer(text)]
    for start, stop in pairwise((*starts, len(text))):
        lines = text[start:stop].split("\n")
        last = next((index for index, line in enumerate(lines) if line.endswith(":")), 0)
        titles = [lines[0].partition(") ")[2], *lines[1 : last + 1]]
        name = SEPARATOR.join(title.strip() for title in titles if title.strip()).removesuffix(":")
        yield Failure(name=name, detail="\n".join(lines[last + 1 :]))
