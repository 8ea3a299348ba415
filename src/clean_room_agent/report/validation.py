"""The test runs of a task, for a person."""

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.report.trace import Chosen, RunTrace


class ValidationLine(Struct, frozen=True, kw_only=True):
    """One run of the test command."""

    kind: str
    place: str
    """The attempt that was judged; "" for a test run of the run itself."""
    success: bool
    counts: str
    command: str
    exit_code: int | None
    timed_out: bool
    seconds: float
    failing: tuple[FailingTest, ...]
    newly_failing: tuple[str, ...]
    output: str
    lint_output: str | None
    type_check_output: str | None


def validation_lines(trace: RunTrace, chosen: Chosen) -> tuple[ValidationLine, ...]:
    """The test runs of the chosen passes, in order, with the baseline and the final run if everything is chosen."""
    places = {entry.pass_id: entry.place for entry in chosen.passes}
    if not chosen.place:
        places.setdefault(trace.task_id, "")
    return tuple(
        ValidationLine(
            kind=row.kind,
            place=places[row.task_id],
            success=row.success,
            counts=counts(row),
            command=row.command,
            exit_code=row.exit_code,
            timed_out=row.timed_out,
            seconds=row.duration_ms / 1000,
            failing=row.failing_tests,
            newly_failing=row.newly_failing,
            output=row.test_output,
            lint_output=row.lint_output,
            type_check_output=row.type_check_output,
        )
        for row in trace.tests
        if row.task_id in places
    )


def render_validations(lines: tuple[ValidationLine, ...], *, whole: bool) -> Group:
    """Each test run with its failures; `whole`: with its complete output."""
    parts: list[Text] = []
    for line in lines:
        mark = ("✓ ", "green") if line.success else ("· ", "yellow")
        name = line.kind if not line.place else f"{line.kind} {line.place}"
        parts.append(
            Text.assemble(
                mark, (name, "bold"), f"  {line.counts}, {line.seconds:.1f} s  ", (line.command, "dim")
            )
        )
        for test in line.failing:
            new = "  newly failing" if test.name in line.newly_failing else ""
            parts.append(Text.assemble(f"    {test.name}", (new, "red")))
            parts += [Text(f"      {text}", style="dim") for text in test.message.splitlines()]
        if whole:
            parts += _outputs(line)
    return Group(*(parts or [Text("no test run is recorded here")]))


def counts(row: ValidationRow) -> str:
    """The result of the run, in a few words."""
    if row.timed_out:
        return "timed out"
    if row.tests_passed is None:
        return f"exit {row.exit_code}"
    return f"{row.tests_passed} passed, {len(row.failing_tests)} failed"


def _outputs(line: ValidationLine) -> list[Text]:
    parts = []
    for name, output in (
        ("output", line.output),
        ("lint", line.lint_output),
        ("types", line.type_check_output),
    ):
        if output:
            parts += [Text(f"    --- {name}", style="dim"), Text(output.rstrip("\n"))]
    return parts
