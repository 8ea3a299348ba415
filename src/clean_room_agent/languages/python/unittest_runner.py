"""unittest: what it prints, in which it is asked to name its tests, with what the guard recorded.

A test is named `module.Class.test`; a module that could not be loaded by `unittest.loader._FailedTest.module`. The module begins at
the top of the tree, where the guard is loaded; else where discovery did.
"""

import re
import shlex
from collections.abc import Collection, Iterator

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import (
    RED,
    Failure,
    Outcome,
    Reading,
    TestReport,
    merge,
    unreadable,
)
from clean_room_agent.languages.python import project
from clean_room_agent.languages.python.frames import frames_in, words_after_frames
from clean_room_agent.languages.python.test_log import read_test_log, with_logged, with_records_of_unittest
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_runner import EndedCommand, TestRunner

RAN = re.compile(r"^Ran (\d{1,9}) tests? in [\d.]+s$", re.MULTILINE)
VERDICT = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[^)]*)\))?$", re.MULTILINE)
COUNT = re.compile(r"([a-z ]+)=(\d{1,9})(?!\d)")
STARTED = re.compile(r"-m unittest(?: +discover)?(?=\s|$)")
VERBOSITY = re.compile(r"(?<=\s)(?:-[a-z]*[vq][a-z]*|--verbose|--quiet)(?=\s|$)")
NAMED_PARTS = 3
"""Of a name, its last parts that unittest knows it by: where its own name begins is not known here."""
RULE = "=" * 70
THIN_RULE = "-" * 70
HEADING = re.compile(
    r"(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<method>\S+)(?: \((?P<where>[\w.-]+)\)(?P<sub> [(\[].*)?)?"
)
TEST = re.compile(r"(?P<method>\w+) \((?P<where>[\w.-]+)\)(?: \.\.\. ?(?P<rest>.*))?")
NAMED = re.compile(r"(?P<method>[\w.]+\.\w+(?::\d+)?)(?P<where>)(?: \.\.\. (?P<rest>\w.*))?")
"""A function as nose2 prints it: by its full name, and the number of its arguments, which stand in the next line."""
STATUS = re.compile(
    r"(?:.*? \.\.\. ?)?(?P<word>ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)"
)
WORDS: dict[str, Outcome] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "skipped": "skipped",
    "expected failure": "xfailed",
    "unexpected success": "failed",
}


ENDED_EARLY = unreadable("unittest", "unittest ended before it printed its summary")


class UnittestRunner(TestRunner):
    """See `TestRunner`."""

    name = "unittest"
    has_log = True
    traced = "tests"
    holder = r"\b_FailedTest\b|\.(?:setUp|tearDown)(?:Class|Module)\Z"

    def detect(self, files: RepositoryFiles) -> str:
        return project.unittest_command(files)

    def asked(self, command: str) -> str:
        """`command`, with unittest told to name its tests unless it sets its own verbosity."""
        if len(STARTED.findall(command)) != 1 or VERBOSITY.search(command):
            return command
        return STARTED.sub(r"\g<0> -v", command)

    def read(self, ended: EndedCommand) -> Reading | None:
        return _read_logged(ended) or ENDED_EARLY if "unittest" in ended.started else None

    def read_printed(self, ended: EndedCommand) -> Reading | None:
        """What it printed; where the command starts it and it printed no summary, that it ended early."""
        return _read_logged(ended) or (ENDED_EARLY if STARTED.search(ended.command) else None)

    def only(self, command: str, names: Collection[str]) -> str | None:
        if not STARTED.search(command):
            return None
        ends = dict.fromkeys(".".join(name.split(".")[-NAMED_PARTS:]) for name in names)
        return " ".join([command, *(f"-k {shlex.quote(end)}" for end in ends)])

    def full_name(self, path: str, test: str) -> str:
        """The end of the name alone: where discovery began is not known here."""
        return test.replace("::", ".")

    def frames(self, text: str) -> Iterator[StackFrame]:
        return frames_in(text)


def _read_logged(ended: EndedCommand) -> Reading | None:
    """What was printed, with what the guard recorded; None without a summary."""
    reading = read_unittest(ended.text)
    if reading is None:
        return None
    return with_logged(
        with_records_of_unittest(reading, ended.report), read_test_log(ended.report), every=True
    )


def read_unittest(text: str) -> Reading | None:
    """Read unittest's output; None if it has no summary.

    Without `-v` only failing names are known. A class or module that could not be set up counts as one error.
    """
    ran = list(RAN.finditer(text))
    verdict = VERDICT.search(text, ran[-1].end()) if ran else None
    if verdict is None:
        return None
    collected = int(ran[-1][1])
    counts = {name.strip(): int(number) for name, number in COUNT.findall(verdict["counts"] or "")}
    failures, red = _printed_failures(text[: ran[-1].start()])
    listed = _listed_outcomes(text[: ran[-1].start()])
    outcomes = merge([*listed, *red])
    failing = sum(counts.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    problem = (
        f"unittest names no failing test, and its last line says {verdict[0]}" if failing and not red else ""
    )
    unhappy = ("failures", "errors", "skipped", "expected failures", "unexpected successes")
    return Reading(
        report=TestReport(
            runner="unittest",
            outcomes=outcomes,
            collected=collected,
            passed=max(0, collected - sum(counts.get(name, 0) for name in unhappy)),
            named=collected > 0 and len({name for name, _ in listed}) >= collected,
            whole=not problem,
            problem=problem,
        ),
        failures=failures,
    )


def test_name(method: str, where: str | None) -> str:
    """`module.Class.method` from either form that Python versions print, or from the full name alone."""
    if not where:
        return method
    return where if where.endswith("." + method) else f"{where}.{method}"


def _printed_failures(text: str) -> tuple[tuple[Failure, ...], list[tuple[str, Outcome]]]:
    """The blocks that follow a line of `=`: (the failures, their names and outcomes)."""
    failures: list[Failure] = []
    red: list[tuple[str, Outcome]] = []
    for block in text.split(RULE + "\n")[1:]:
        head, _, rest = block.partition("\n")
        heading = HEADING.fullmatch(head)
        if heading is None:
            continue
        name = test_name(heading["method"], heading["where"])
        detail = rest.partition(THIN_RULE + "\n")[2].removesuffix(THIN_RULE + "\n")
        is_success = heading["kind"].startswith("UNEXPECTED")
        message = "unexpected success" if is_success else words_after_frames(detail)
        failures.append(Failure(name=name, detail=detail, message=message))
        red.append((name, "error" if heading["kind"] == "ERROR" else "failed"))
    return tuple(failures), red


def _listed_outcomes(text: str) -> list[tuple[str, Outcome]]:
    """The names and outcomes that `-v` prints, one per line or, with a docstring or other output, over several lines."""
    found: list[tuple[str, Outcome]] = []
    name = ""
    for line in text.partition(RULE)[0].split("\n"):
        test = TEST.match(line.strip()) or NAMED.fullmatch(line.strip())
        if test:
            name = test_name(test["method"], test["where"])
        status = STATUS.fullmatch(line.strip())
        if status and name:
            outcome = WORDS["skipped" if status["word"].startswith("skipped") else status["word"]]
            found.append((name, outcome))
            if outcome not in RED:
                name = ""
    return found
