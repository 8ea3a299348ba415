"""Reading what Python's unittest prints, with `-v` or without."""

import re

from clean_room_agent.orchestrator.testing.results import RED, Failure, Outcome, Reading, TestReport, merge

RAN = re.compile(r"^Ran (\d{1,9}) tests? in [\d.]+s$", re.MULTILINE)
VERDICT = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[^)]*)\))?$", re.MULTILINE)
COUNT = re.compile(r"([a-z ]+)=(\d{1,9})(?!\d)")
RULE = "=" * 70
THIN_RULE = "-" * 70
HEADING = re.compile(
    r"(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<method>\S+) \((?P<where>[\w.]+)\)(?P<sub> [(\[].*)?"
)
TEST = re.compile(r"(?P<method>\w+) \((?P<where>[\w.]+)\)(?: \.\.\. ?(?P<rest>.*))?")
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


def read_unittest(text: str) -> Reading | None:
    """What `text` says, or None where it holds no summary of unittest's.

    Without `-v` only failing names are known. A class or module that could not be set up counts as one error.
    """
    ran = list(RAN.finditer(text))
    verdict = VERDICT.search(text, ran[-1].end()) if ran else None
    if verdict is None:
        return None
    collected = int(ran[-1][1])
    counts = {name.strip(): int(number) for name, number in COUNT.findall(verdict["counts"] or "")}
    failures, red = _failures(text[: ran[-1].start()])
    listed = _listed(text[: ran[-1].start()])
    outcomes = merge([*listed, *red])
    unhappy = ("failures", "errors", "skipped", "expected failures", "unexpected successes")
    return Reading(
        report=TestReport(
            runner="unittest",
            outcomes=outcomes,
            collected=collected,
            passed=max(0, collected - sum(counts.get(name, 0) for name in unhappy)),
            named=collected > 0 and len({name for name, _ in listed}) >= collected,
        ),
        failures=failures,
    )


def test_name(method: str, where: str) -> str:
    """`module.Class.method` from both ways in which Python versions print it."""
    return where if where.endswith("." + method) else f"{where}.{method}"


def _failures(text: str) -> tuple[tuple[Failure, ...], list[tuple[str, Outcome]]]:
    """The blocks that follow a line of `=`: (the failures, their names and outcomes)."""
    failures: list[Failure] = []
    red: list[tuple[str, Outcome]] = []
    for block in text.split(RULE + "\n")[1:]:
        head, _, rest = block.partition("\n")
        heading = HEADING.fullmatch(head)
        if heading is None:
            continue
        name = test_name(heading["method"], heading["where"])
        message = "unexpected success" if heading["kind"].startswith("UNEXPECTED") else ""
        failures.append(
            Failure(
                name=name,
                detail=rest.partition(THIN_RULE + "\n")[2].removesuffix(THIN_RULE + "\n"),
                message=message,
            )
        )
        red.append((name, "error" if heading["kind"] == "ERROR" else "failed"))
    return tuple(failures), red


def _listed(text: str) -> list[tuple[str, Outcome]]:
    """The names and outcomes that `-v` prints, one a line or, with a docstring or other output, over several."""
    found: list[tuple[str, Outcome]] = []
    name = ""
    for line in text.partition(RULE)[0].split("\n"):
        test = TEST.match(line.strip())
        if test:
            name = test_name(test["method"], test["where"])
        status = STATUS.fullmatch(line.strip())
        if status and name:
            outcome = WORDS["skipped" if status["word"].startswith("skipped") else status["word"]]
            found.append((name, outcome))
            if outcome not in RED:
                name = ""
    return found
