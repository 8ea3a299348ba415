"""The indented list of tests that jest and mocha print. Escapes must have been removed."""

import re
from collections.abc import Iterable, Iterator

from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.languages.test_names import SEPARATOR

TREE_MARK = re.compile(
    r"(?P<indent> *)(?:(?P<passed>[✔✓√])|(?P<failed>[✕✖×]|\d+\))|(?P<skipped>[○﹣↓✎]|-(?= )))"  # noqa: RUF001
    r" (?:skipped |todo )?(?P<title>.*?)(?: \(\d+(?:\.\d+)? ?m?s\))?"
)
SUITE = re.compile(r"(?P<indent> {2,})(?P<title>\S.*)")
NUMBERED = re.compile(r"\b(\d{1,9}) (\w+)")


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
