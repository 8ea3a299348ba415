"""Which tests a result changes, removes or skips, of those that judge it, as a person reads it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw.runs import EventRow
from clean_room_agent.orchestrator.finishing import Solved
from clean_room_agent.orchestrator.testing.result_changes import Touched

SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsTouched:
    """The files of a result that decide whether tests pass, and the tests that no longer say whether they do."""

    __test__ = False

    files: tuple[Touched, ...] = ()
    gone: tuple[str, ...] = ()
    """Tests that ran at the start and are not there now."""
    skipped: tuple[str, ...] = ()
    """Tests that ran at the start and are skipped now, or expected to fail."""
    not_restored: str = ""
    """Why there was no run with the tests restored; "" where there was one, or it is not known."""


def touched_of(solved: Solved) -> TestsTouched:
    """Of a run that has just ended."""
    verdict = solved.verdict
    return TestsTouched(
        files=solved.touched,
        gone=verdict.gone if verdict else (),
        skipped=verdict.skipped if verdict else (),
    )


def touched_on_record(events: Iterable[EventRow]) -> TestsTouched:
    """Of a run that the record tells of."""
    known = {
        event.kind: event.detail
        for event in events
        if event.kind in {EventKind.TESTS_TOUCHED, EventKind.RESTORED_SKIPPED}
    }
    account = json.loads(known.get(EventKind.TESTS_TOUCHED, "{}"))
    return TestsTouched(
        files=tuple(
            Touched(path=one["path"], kind=one["kind"], change=one["change"], asked=one["asked"])
            for one in account.get("files", ())
        ),
        gone=tuple(account.get("gone", ())),
        skipped=tuple(account.get("skipped", ())),
        not_restored=known.get(EventKind.RESTORED_SKIPPED, ""),
    )


def touched_lines(touched: TestsTouched) -> list[Text]:
    """A line for each kind of change; nothing where tests are as they were."""
    lines = []
    for kind in ("test", "test configuration", "CI"):
        for change in ("changed", "deleted", "created"):
            paths = [one.path for one in touched.files if (one.kind, one.change) == (kind, change)]
            if not paths:
                continue
            noun = "tests" if kind == "test" else kind
            if (kind, change) == ("test", "created"):
                lines.append(Text(f"  new tests: {_some(paths)}"))
            else:
                lines.append(Text(f"  look at {change} {noun}: {_some(paths)}", style="yellow"))
    if touched.gone:
        lines.append(Text(f"  tests that are gone: {_some(touched.gone)}", style="yellow"))
    if touched.skipped:
        lines.append(Text(f"  tests that are now skipped: {_some(touched.skipped)}", style="yellow"))
    if touched.not_restored:
        lines.append(Text(f"  no run with the tests restored: {touched.not_restored}", style="dim"))
    return lines


def render_touched(touched: TestsTouched) -> Group:
    """The lines, to stand below the test runs."""
    return Group(*touched_lines(touched))


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
