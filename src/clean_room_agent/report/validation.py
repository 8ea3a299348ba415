"""The test runs of a task, for a person."""

from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.json_values import to_shown
from clean_room_agent.languages.printed_values import strip_escapes
from clean_room_agent.report.trace import RunTrace

PlacedTests = tuple[tuple[str, ValidationRow], ...]
"""Test runs, each with the place of its pass; "" for those of the run itself."""


def placed_tests(trace: RunTrace) -> PlacedTests:
    """The test runs of the run, in order."""
    places = trace.places
    return tuple((places[row.task_id], row) for row in trace.tests if row.task_id in places)


def tests_object(tests: PlacedTests) -> list[dict[str, Any]]:
    """The test runs as `--json` answers them."""
    return [
        {
            "kind": row.kind,
            "place": place,
            "success": row.success,
            "counts": counts(row),
            "command": row.command,
            "exit_code": row.exit_code,
            "timed_out": row.timed_out,
            "seconds": row.duration_ms / 1000,
            "failing": to_shown(row.failing_tests),
            "newly_failing": row.newly_failing,
            "output": row.test_output,
            "lint_output": row.lint_output,
            "type_check_output": row.type_check_output,
        }
        for place, row in tests
    ]


def render_tests(tests: PlacedTests, *, whole: bool) -> Group:
    """Each test run with its failures; `whole`: with its complete output."""
    parts: list[Text] = []
    for place, row in tests:
        mark = ("✓ ", "green") if row.success else ("· ", "yellow")
        name = f"{row.kind} {place}".rstrip()
        said = f"  {counts(row)}, {row.duration_ms / 1000:.1f} s  "
        parts.append(Text.assemble(mark, (name, "bold"), said, (row.command, "dim")))
        for test in row.failing_tests:
            new = "  newly failing" if test.name in row.newly_failing else ""
            parts.append(Text.assemble(f"    {test.name}", (new, "red")))
            parts += [Text(f"      {text}", style="dim") for text in test.message.splitlines()]
        for title, output in outputs(row) if whole else ():
            parts += [Text(f"    --- {title}", style="dim"), Text(output.rstrip("\n"))]
    return Group(*(parts or [Text("no test run is recorded here")]))


def outputs(row: ValidationRow) -> list[tuple[str, str]]:
    """(name, text) of what the run printed, without a terminal's colours."""
    found = (("output", row.test_output), ("lint", row.lint_output), ("types", row.type_check_output))
    return [(name, strip_escapes(text)) for name, text in found if text]


def counts(row: ValidationRow) -> str:
    """The result of the run, in a few words."""
    if row.timed_out:
        return "timed out"
    if row.tests_passed is None:
        return f"exit {row.exit_code}"
    return f"{row.tests_passed} passed, {len(row.failing_tests)} failed"


def last_of(trace: RunTrace, kind: str) -> ValidationRow | None:
    """The run's own last test run of this kind; None if there was none."""
    found = [row for row in trace.tests if (row.task_id, row.kind) == (trace.task_id, kind)]
    return found[-1] if found else None


def counts_of(trace: RunTrace, kind: str) -> str:
    """Its result in a few words; "" if there was none."""
    row = last_of(trace, kind)
    return "" if row is None else counts(row)
