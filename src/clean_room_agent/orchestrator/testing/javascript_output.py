"""Reads the output of mocha, jest, vitest and Node's own runner. Colours and other escapes must have been removed."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from clean_room_agent.orchestrator.testing.results import Failure, Outcome, Reading, TestReport, merge

SEPARATOR = " > "
TREE_MARK = re.compile(
    r"(?P<indent> *)(?:(?P<passed>[✔✓√])|(?P<failed>[✕✖×]|\d+\))|(?P<skipped>[○﹣↓✎]|-(?= )))"  # noqa: RUF001
    r" (?:skipped |todo )?(?P<title>.*?)(?: \(\d+(?:\.\d+)? ?m?s\))?"
)
SUITE = re.compile(r"(?P<indent> {2,})(?P<title>\S.*)")
MOCHA_COUNT = re.compile(r"^ +(\d{1,9}) (passing|pending|failing)(?: \([^)\n]*\))?$", re.MULTILINE)
MOCHA_BLOCK = re.compile(r"^  \d+\) ", re.MULTILINE)
JEST_TESTS = re.compile(r"^Tests: +(?:.*, )?(\d{1,9}) total$", re.MULTILINE)
JEST_SUITES = re.compile(r"^Test Suites: .*\d+ total$", re.MULTILINE)
JEST_FILE = re.compile(r"(?:FAIL|PASS) (?:\S+ )??(?P<file>\S+\.\w+)(?: \(.*\))?")
JEST_FAILURE = re.compile(r"  ● (?P<title>.+)")
VITEST_TESTS = re.compile(r"^ +Tests +(?P<counts>.*?) \((?P<total>\d{1,9})\)$", re.MULTILINE)
VITEST_FILES = re.compile(r"^ Test Files +(?P<counts>.*?) \((?P<total>\d{1,9})\)$", re.MULTILINE)
VITEST_FAILURE = re.compile(r" FAIL  (?P<title>.+)")
VITEST_LISTED = re.compile(r" (?P<mark>[✓×↓]) (?P<title>\S+ > .*?)(?: \d+m?s)?")  # noqa: RUF001 - vitest's mark
NUMBERED = re.compile(r"\b(\d{1,9}) (\w+)")
COUNT = re.compile(r"^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})$", re.MULTILINE)  # noqa: RUF001
TAP_OPEN = re.compile(r"(?P<indent> *)# Subtest: (?P<title>.*)")
TAP_RESULT = re.compile(
    r"(?P<indent> *)(?P<word>ok|not ok) \d+ - (?P<title>.*?)(?: # (?P<directive>SKIP|TODO).*)?"
)
SPEC_OPEN = re.compile(r"(?P<indent> *)▶ (?P<title>.*?)(?P<time> \([\d.]+ms\))?")
SPEC_RESULT = re.compile(
    r"(?P<indent> *)(?P<mark>[✔✖﹣]) (?P<title>.*?)(?: \([\d.]+ms\))?(?: # (?P<directive>SKIP|TODO).*)?"
)
FAILING_TESTS = "✖ failing tests:"


def read_printed(text: str) -> Reading | None:
    """The reading of the first runner whose summary is in the output; None if there is none."""
    for read in (read_jest, read_vitest, read_mocha, read_node):
        reading = read(text)
        if reading is not None:
            return reading
    return None


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
    tree = list(_tree(text[: counts["passing"].start()].split("\n")))
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


def _tree(lines: Iterable[str]) -> Iterator[tuple[str, Outcome]]:
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
            yield from ((f"{file}{SEPARATOR}{name}", outcome) for name, outcome in _tree(listing) if file)
            file, listing = (shown["file"] if shown else ""), []
        else:
            listing.append(line)


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


def read_node(text: str) -> Reading | None:
    """Read the output of `node --test`; None without its counts. Names are `suite > test`; a file that broke is its
    path.
    """
    counts = {match[1]: int(match[2]) for match in COUNT.finditer(text)}
    if not {"tests", "pass", "fail"} <= counts.keys():
        return None
    body = text.partition(FAILING_TESTS)[0]
    tap = bool(re.search(r"^ *(?:not )?ok \d+ - ", body, re.MULTILINE))
    listed = list(_tap(body.split("\n")) if tap else _spec(body.split("\n")))
    failures = _failures(listed, {} if tap else _details(text.partition(FAILING_TESTS)[2]))
    shown = [outcome for _, outcome, _ in listed]
    red = counts["fail"] + counts.get("cancelled", 0)
    return Reading(
        report=TestReport(
            runner="node",
            outcomes=merge((name, outcome) for name, outcome, _ in listed),
            collected=counts["tests"],
            passed=counts["pass"],
            named=shown.count("passed") >= counts["pass"] and shown.count("failed") >= red,
        ),
        failures=failures,
    )


def _failures(listed: list[tuple[str, Outcome, str]], details: dict[str, list[str]]) -> tuple[Failure, ...]:
    """One failure per red name; details are by the test's own title, in order of appearance."""
    found = []
    for name, outcome, detail in listed:
        if outcome != "failed":
            continue
        later = details.get(name.rpartition(SEPARATOR)[2], [])
        found.append(Failure(name=name, detail=later.pop(0) if later else detail))
    return tuple(found)


def _tap(lines: list[str]) -> Iterator[tuple[str, Outcome, str]]:
    """(name, outcome, the YAML that follows) of each test that has no tests of its own."""
    stack: list[str] = []
    leaf = False
    for index, line in enumerate(lines):
        if opened := TAP_OPEN.fullmatch(line):
            del stack[len(opened["indent"]) // 4 :]
            stack.append(opened["title"])
            leaf = True
        elif (result := TAP_RESULT.fullmatch(line)) and stack:
            depth = len(result["indent"]) // 4
            if leaf or depth == len(stack):
                name = SEPARATOR.join((*stack[:depth], result["title"]))
                yield name, _outcome(result["word"] == "ok", result["directive"]), _yaml(lines, index + 1)
            del stack[depth:]
            leaf = False


def _yaml(lines: list[str], start: int) -> str:
    """The indented block between `---` and `...` from line `start` on, its stack as frames."""
    block: list[str] = []
    for line in (lines[at] for at in range(start, len(lines))):
        if line.strip() == "...":
            break
        if not line.strip().startswith(("---", "duration_ms", "failureType", "code:", "type:", "location:")):
            block.append(re.sub(r"^( +)(.*\S:\d+:\d+\)?)$", r"\1at \2", line))
        if not line.startswith(" "):
            return ""
    return "\n".join(block)


def _spec(lines: list[str]) -> Iterator[tuple[str, Outcome, str]]:
    """(name, outcome, "") of each test; the line that closes a suite repeats its title and does not count."""
    suites: list[str] = []
    for line in lines:
        opened = SPEC_OPEN.fullmatch(line)
        result = SPEC_RESULT.fullmatch(line)
        found = opened or result
        if found is None:
            continue
        depth = len(found["indent"]) // 2
        closing = len(suites) > depth and suites[depth] == found["title"]
        del suites[depth:]
        if opened and not opened["time"]:
            suites.append(opened["title"])
        elif result and not closing:
            outcome = _outcome(
                result["mark"] == "✔", "SKIP" if result["mark"] == "﹣" else result["directive"]
            )
            yield SEPARATOR.join((*suites, result["title"])), outcome, ""


def _details(text: str) -> dict[str, list[str]]:
    """The entries in the list of failing tests, by title, in order."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.split("\n"):
        if line.startswith("test at "):
            title = ""
        elif not title and (result := SPEC_RESULT.fullmatch(line)):
            title = result["title"]
            found.setdefault(title, []).append("")
        elif title:
            found[title][-1] += line + "\n"
    return found


def _outcome(good: bool, directive: str | None) -> Outcome:
    if directive == "SKIP":
        return "skipped"
    if directive == "TODO":
        return "passed" if good else "xfailed"
    return "passed" if good else "failed"
