"""The summary at the end of a run: verdict, what changed, also in the tests themselves, tests before and after, cost,
and next commands.
"""

import re
import shlex
from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.goals import GoalOutcome, GoalSource
from clean_room_agent.artifacts.names import counted, listed, relative_pass, short_id
from clean_room_agent.artifacts.outcomes import EventKind, OrchestratorResult, RunStatus
from clean_room_agent.db.raw.failure_causes import CauseCount
from clean_room_agent.db.raw.runs import EventRow
from clean_room_agent.git.history import FileStat
from clean_room_agent.json_values import from_json
from clean_room_agent.orchestrator.changed_tests import Touched
from clean_room_agent.report.run_list import COLOURS
from clean_room_agent.report.trace import RunTrace
from clean_room_agent.report.validation import counts_of

SHOWN = 6
SHOWN_FILES = 12
COMMAND_WIDTH = 32
WOULD_HELP = (
    "what would show it: `cra solve --check 'assert …'` (a statement, or sh: and a command, that fails now)"
)
COMMAND = re.compile(r"`(cra [^`]*)`")


class TestsTouched(Struct, frozen=True, kw_only=True):
    """The files of a result that decide whether tests pass, and the tests that no longer say whether they do."""

    __test__ = False

    files: tuple[Touched, ...] = ()
    gone: tuple[str, ...] = ()
    """Tests that ran at the start and are missing now."""
    skipped: tuple[str, ...] = ()
    """Tests that ran at the start and are skipped now, or expected to fail."""
    not_restored: str = ""
    """Why there was no run with the tests restored; "" if there was one, or it is unknown."""


def touched_on_record(events: Iterable[EventRow]) -> TestsTouched:
    """The touched tests of a recorded run."""
    known = {event.kind: event.detail for event in events}
    touched = from_json(known.get(EventKind.TESTS_TOUCHED, "{}"), TestsTouched)
    return replace(touched, not_restored=known.get(EventKind.RESTORED_SKIPPED, ""))


def touched_lines(touched: TestsTouched) -> list[Text]:
    """A line for each kind of change; empty if tests are unchanged."""
    lines = []
    for kind in ("test", "test support", "test configuration", "CI"):
        for change in ("changed", "deleted", "created"):
            paths = [one.path for one in touched.files if (one.kind, one.change) == (kind, change)]
            if not paths:
                continue
            noun = "tests" if kind == "test" else kind
            if (kind, change) == ("test", "created"):
                lines.append(Text(f"  new tests: {listed(paths, SHOWN)}"))
            else:
                lines.append(Text(f"  look at {change} {noun}: {listed(paths, SHOWN)}", style="yellow"))
    if touched.gone:
        lines.append(Text(f"  tests that are gone: {listed(touched.gone, SHOWN)}", style="yellow"))
    if touched.skipped:
        lines.append(Text(f"  tests that are now skipped: {listed(touched.skipped, SHOWN)}", style="yellow"))
    if touched.not_restored:
        lines.append(Text(f"  not run with the tests restored: {touched.not_restored}", style="dim"))
    return lines


class Ending(Struct, frozen=True, kw_only=True):
    """Why a task is unfinished, as far as its calls, attempts and searches show it."""

    counts: tuple[CauseCount, ...] = ()
    """Nearest to the end of the task first: attempts, then answers by kind of work, then searches."""
    lines: tuple[str, ...] = ()
    """One for each reported count, in words."""
    advice: str = ""
    """What to do about it; "" if nothing was counted."""
    weak: bool = False
    """Whether the counts show that the model is too weak for the work."""

    def sentences(self) -> tuple[str, ...]:
        """The lines, then the advice."""
        return (*self.lines, self.advice) if self.advice else self.lines


class RunSummary(Struct, frozen=True, kw_only=True):
    """A run that has just ended."""

    result: OrchestratorResult
    trace: RunTrace
    """The run in the record, without the texts that are not shown at a glance."""
    files: tuple[FileStat, ...]
    calls: int
    tokens: int
    seconds: float
    ending: Ending = field(default_factory=Ending)
    """Why it is not complete, by the outcomes of its calls and attempts."""
    applied: tuple[str, ...] | None = None
    """Paths applied to the working tree; None if that was not requested, or not possible."""
    not_applied: str = ""
    """Why they could not be applied, if that was requested."""

    @property
    def fullest(self) -> tuple[int, int]:
        """(tokens, window) of the fullest prompt; (0, 0) if there was none."""
        sizes = (entry.fullest for entry in self.trace.passes)
        return max(sizes, key=lambda size: size[0] / max(size[1], 1), default=(0, 0))

    @property
    def carries_uncommitted(self) -> bool:
        """Whether the branch carries the user's uncommitted work."""
        run = self.trace.run
        return run is not None and run.snapshot_commit != run.base_commit


def render(summary: RunSummary, elsewhere: str = "") -> Group:
    """The rendered summary; `elsewhere` is the repository's path, quoted for a shell, if commands need it."""
    result = summary.result
    words = result.status.value
    if result.status is RunStatus.COMPLETE:
        words = ": ".join(filter(None, (words, shown_by(result.evidence))))
    elif result.status is RunStatus.NEEDS_HUMAN:
        words = "waits for you"
    head = Text.assemble(
        "\n", (words, f"bold {COLOURS.get(result.status, 'white')}"), f"  {short_id(result.task_id)}"
    )
    if result.reason:
        head.append(f"\n  {result.reason}")
    there, in_folder = (f" --repo {elsewhere}", f" -C {elsewhere}") if elsewhere else ("", "")
    lines = [head, *ending_lines(summary.ending, there)]
    if result.status is RunStatus.UNPROVEN and not any(one.trust != "hint" for one in result.evidence):
        check = next((one.check for one in result.evidence if one.check), "")
        helps = f"if this is what you want: `cra solve --check {_in_quotes(check)}`" if check else WOULD_HELP
        lines.append(Text(f"  {with_flag(helps, there)}", style="yellow"))
    lines += [Text(f"  goal    {line}") for line in goal_lines(result.evidence)]
    lines.extend(_change_lines(summary.files))
    before, after, restored = (counts_of(summary.trace, kind) for kind in ("baseline", "final", "restored"))
    with_old_tests = f"; with the tests restored {restored}" if restored else ""
    lines.append(Text(f"  tests   {before} -> {after or 'not run'}{with_old_tests}"))
    used, window = summary.fullest
    fill = f", fullest window {used:,} of {window:,} ({used / window:.0%})" if window else ""
    lines.append(
        Text(
            f"  cost    {counted(summary.calls, 'call')}, {counted(summary.tokens, 'token')}, {duration(summary.seconds)}{fill}"
        )
    )
    lines.extend(
        Text(f"  plan    {relative_pass(entry.pass_id)}: {entry.detail}", style="yellow")
        for entry in result.passes
        if entry.fallback
    )
    touched = touched_on_record(summary.trace.events)
    lines.extend(touched_lines(replace(touched, not_restored="")))  # `cra show` says why
    if summary.carries_uncommitted and result.branch:
        lines.append(
            Text("  the branch also carries your uncommitted work, in its first commit", style="yellow")
        )
    lines.extend(_next_commands(summary, there, in_folder))
    return Group(*lines)


def shown_by(evidence: Sequence[GoalOutcome]) -> str:
    """Which goal test shows that the task is done, with what it gave before and gives now; "" if none does."""
    shown = [one for one in evidence if one.shows]
    if not shown:
        return ""
    more = f" (and by {counted(len(shown) - 1, 'more test')})" if len(shown) > 1 else ""
    return f"shown by {shown[0].words}{more}"


def goal_lines(evidence: Sequence[GoalOutcome]) -> list[str]:
    """A line for each goal test, those that are red first; none if the only one is told as what shows it. Red tests of the
    repository are told if no other is green, since the task need not be about them; hints, if they were run.
    """
    shown = [one for one in evidence if one.green]
    red = [
        one
        for one in evidence
        if not one.green
        and (one.source is not GoalSource.REPOSITORY or not shown)
        and (one.trust != "hint" or one.after)
    ]
    told = [*red, *shown] if red or len(shown) > 1 else []
    lines = [f"{'green' if one.green else 'red'}: {one.words}" for one in told[:SHOWN]]
    return [*lines, f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else lines


def _in_quotes(code: str) -> str:
    """The code as one word of a shell: in double quotes where it has single ones, and nothing that means something there."""
    return f'"{code}"' if "'" in code and not set(code) & set('"$`\\!') else shlex.quote(code)


def _change_lines(files: Sequence[FileStat]) -> list[Text]:
    lines = []
    for file in files[:SHOWN_FILES]:
        counts = "binary" if file.added is None else f"+{file.added} -{file.deleted}"
        lines.append(Text.assemble(f"  {file.path}  ", (counts, "cyan")))
    if len(files) > SHOWN_FILES:
        lines.append(Text(f"  and {counted(len(files) - SHOWN_FILES, 'more file')}"))
    return lines


def _next_commands(summary: RunSummary, there: str, in_folder: str) -> list[Text]:
    result = summary.result
    run = short_id(result.task_id)
    lines = [Text("")]
    if summary.applied is not None:
        lines.append(Text(f"  applied to your working tree: {', '.join(summary.applied) or 'nothing to do'}"))
    if summary.not_applied:
        lines.append(Text(f"  not applied: {summary.not_applied}", style="red"))
    rows = []
    if result.status is RunStatus.PARTIAL:
        rows.append((f"cra solve --resume {run}{there}", "continue where it stopped"))
    if result.status in {RunStatus.PARTIAL, RunStatus.FAILED}:
        rows.append((f"cra solve --resume {run}{there} --hint TEXT", "try again with a hint"))
    if result.status is RunStatus.NEEDS_HUMAN:
        rows.append((f'cra solve --resume {run}{there} --hint "..."', "answer, and continue"))
    if result.branch:
        rows.append((f"cra show {run}{there} --diff", "look at it"))
        if summary.applied is None:
            rows.append((f"cra apply {run}{there}", "bring it into your working tree"))
        # Merged, the user's own uncommitted work would come as a commit.
        if not summary.carries_uncommitted:
            rows.append((f"git{in_folder} merge {result.branch}", "merge it"))
    rows.append((f"cra show {run}{there}", "see how it came about"))
    rows.append((f"cra discard {run}{there}", "throw it away"))
    width = max(COMMAND_WIDTH, *(len(command) + 2 for command, _ in rows))
    lines.extend(Text.assemble("  ", (f"{command:<{width}}", "bold"), what) for command, what in rows)
    return lines


def duration(seconds: float) -> str:
    """A duration in words for people."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def ending_lines(ending: Ending, there: str = "") -> list[Text]:
    """The ending for a person: a line for each count, then the advice, with the flag `there` after each command."""
    lines = [Text(f"  {line}") for line in ending.lines]
    return [*lines, Text(f"  {with_flag(ending.advice, there)}", style="yellow")] if ending.advice else lines


def with_flag(text: str, flag: str) -> str:
    """The text with the flag (such as ` --repo PATH`; "" for none) at the end of each command in it."""
    return COMMAND.sub(lambda command: f"`{command[1]}{flag}`", text)
