"""Node's own runner: the report of the guard's reporter, else what its spec and TAP reporters print, which name no files."""

import re
import shlex
from collections.abc import Collection, Iterator

from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge
from clean_room_agent.languages.ecmascript.package_json import mentions_in_tests
from clean_room_agent.languages.ecmascript.script_runner import NODE_TESTS, ScriptRunner, titles_pattern
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_names import SEPARATOR

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


class NodeRunner(ScriptRunner):
    """See `TestRunner`."""

    name = "node"
    start = ""
    titles_option = ""
    traced = "tests"

    def detect(self, files: RepositoryFiles) -> str:
        is_used = mentions_in_tests(files, "node:test")
        return super().detect(files) or ("node --test" if is_used else "")

    def printed(self, text: str) -> Reading | None:
        return read_node(text)

    def only(self, command: str, names: Collection[str]) -> str | None:
        found = NODE_TESTS.search(command)
        if found is None:
            return None
        return f"{command[: found.end()]} --test-name-pattern={shlex.quote(titles_pattern(names))}{command[found.end() :]}"


def read_node(text: str) -> Reading | None:
    """Read the output of `node --test`; None without its counts. Names are `suite > test`; a file that broke is its
    path.
    """
    counts = {match[1]: int(match[2]) for match in COUNT.finditer(text)}
    if not {"tests", "pass", "fail"} <= counts.keys():
        return None
    body = text.partition(FAILING_TESTS)[0]
    tap = bool(re.search(r"^ *(?:not )?ok \d+ - ", body, re.MULTILINE))
    listed = list(_parse_tap(body.split("\n")) if tap else _parse_spec(body.split("\n")))
    failures = _failures(listed, {} if tap else _failure_details(text.partition(FAILING_TESTS)[2]))
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


def _parse_tap(lines: list[str]) -> Iterator[tuple[str, Outcome, str]]:
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
                yield (
                    name,
                    _test_outcome(result["word"] == "ok", result["directive"]),
                    _yaml_block(lines, index + 1),
                )
            del stack[depth:]
            leaf = False


def _yaml_block(lines: list[str], start: int) -> str:
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


def _parse_spec(lines: list[str]) -> Iterator[tuple[str, Outcome, str]]:
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
            outcome = _test_outcome(
                result["mark"] == "✔", "SKIP" if result["mark"] == "﹣" else result["directive"]
            )
            yield SEPARATOR.join((*suites, result["title"])), outcome, ""


def _failure_details(text: str) -> dict[str, list[str]]:
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


def _test_outcome(good: bool, directive: str | None) -> Outcome:
    if directive == "SKIP":
        return "skipped"
    if directive == "TODO":
        return "passed" if good else "xfailed"
    return "passed" if good else "failed"
