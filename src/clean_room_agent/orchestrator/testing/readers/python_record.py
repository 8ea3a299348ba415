"""What the guard recorded of failing tests in Python: the compared values, and the frames."""

import contextlib
import dataclasses
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.orchestrator.testing.guard_watch import Reader, TooMuchError, guard_folder
from clean_room_agent.orchestrator.testing.results import Failure, Reading

PROPERTY = "cra_failure"
"""Of a test case in pytest's report."""
MAX_BYTES = 30_000_000
"""Of all that one command left; failures beyond have no record."""


class Record(BaseModel):
    """One failure as the guard wrote it; nothing of it is normalised."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    operator: str
    left: str
    right: str
    frames: list[tuple[str, int, str]]
    when: str = ""
    """pytest's phase, or unittest's ERROR and FAIL."""
    name: str = ""
    """unittest's id of the test."""


def read_records(lines: Iterable[str | bytes]) -> tuple[Record, ...]:
    """Those of `lines` that are records, in order."""
    found = []
    for line in lines:
        try:
            found.append(Record.model_validate_json(line))
        except ValidationError:
            continue
    return tuple(found)


def with_record(failure: Failure, record: Record) -> Failure:
    """The failure with what was recorded of it."""
    return dataclasses.replace(
        failure,
        operator=record.operator,
        actual=record.left,
        expected=record.right,
        frames=tuple(StackFrame(path=path, line=line, function=name) for path, line, name in record.frames),
    )


def with_records_of_unittest(reading: Reading, report: Path) -> Reading:
    """The failures that unittest printed with what the guard recorded of each.

    unittest prints errors before failures, each kind in the order in which they came, as the records of a name are
    taken here.
    """
    waiting: dict[str, deque[Record]] = defaultdict(deque)
    for record in sorted(_left_by_unittest(guard_folder(report)), key=lambda record: record.when):
        waiting[record.name].append(record)
    failures = tuple(
        with_record(failure, waiting[failure.name].popleft()) if waiting.get(failure.name) else failure
        for failure in reading.failures
    )
    return dataclasses.replace(reading, failures=failures)


def _left_by_unittest(folder: Path) -> tuple[Record, ...]:
    lines: list[bytes] = []
    reader = Reader(folder, max_bytes=MAX_BYTES)
    with contextlib.suppress(TooMuchError):
        for name in reader.names("python-*.failures"):
            with contextlib.suppress(OSError):
                lines += reader.read(name).splitlines()
    return read_records(lines)
