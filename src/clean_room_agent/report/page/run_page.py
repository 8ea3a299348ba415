"""The content of the page of a run, before it is rendered: a function of the record."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.names import item_name, short_id
from clean_room_agent.artifacts.prompt_sources import PromptSpan
from clean_room_agent.db.raw.passes import DecisionRow, PlanDecisionRow, RecoveryRow, RefinementRow
from clean_room_agent.report.call_texts import CallTexts
from clean_room_agent.report.page.plan_graph import PlanGraph, plan_graph
from clean_room_agent.report.page.shared_prefixes import Beginning, OwnText, share_beginnings
from clean_room_agent.report.page.time_line import TimeLine, time_line
from clean_room_agent.report.prompt_lines import framed
from clean_room_agent.report.run_view import PassLine, RunView, event_words, pass_line, run_view
from clean_room_agent.report.summary import Ending, TestsTouched, touched_on_record
from clean_room_agent.report.time_lanes import TimeLanes, time_lanes
from clean_room_agent.report.trace import Chosen, PassTrace, RunTrace, context_passes
from clean_room_agent.report.validation import ValidationLine, validation_lines
from clean_room_agent.report.windows import WindowAccount
from clean_room_agent.unified_diff import FileDiff, file_diffs

OF_RUN = frozenset({"baseline", "final", "restored"})
"""Kinds of test runs whose whole output is on the page; for an attempt, only the failures are."""


class RunSources(Struct, frozen=True, kw_only=True):
    """The sources of a page."""

    trace: RunTrace
    ending: Ending
    texts: tuple[CallTexts, ...]
    spans: Mapping[int, tuple[PromptSpan, ...] | None]
    """Of each call's prompt; None if they were not stored yet."""
    accounts: tuple[WindowAccount, ...]
    result_diff: str
    """The whole run's change; "" if there is none."""


class ShownItem(Struct, frozen=True, kw_only=True):
    """One item of code in a prompt."""

    name: str
    kind: str
    first: int
    """1-based, in its file; 0 if it is not shown line by line."""
    last: int
    tokens: int
    """An estimate: its share of the prompt's tokens, by characters."""
    reason: str
    """Of the decision that included it; "" if none is recorded."""


class CallPage(Struct, frozen=True, kw_only=True):
    """One call of a model."""

    account: WindowAccount
    system: int
    """1-based, of the page's system texts."""
    prompt: OwnText
    items: tuple[ShownItem, ...]
    response: str
    thinking: str


class AttemptPage(Struct, frozen=True, kw_only=True):
    """One attempt at a step."""

    number: int
    outcome: str
    stands: bool
    error: str
    call_id: int | None
    refused: tuple[EditReport, ...]
    files: tuple[FileDiff, ...]


class PassPage(Struct, frozen=True, kw_only=True):
    """One pass with all its decisions."""

    line: PassLine
    model: str
    context_of: str
    not_chosen: str
    decisions: tuple[DecisionRow, ...]
    plan_decisions: tuple[PlanDecisionRow, ...]
    attempts: tuple[AttemptPage, ...]
    tests: tuple[ValidationLine, ...]
    recoveries: tuple[RecoveryRow, ...]
    refinements: tuple[RefinementRow, ...]
    notes: tuple[tuple[str, str], ...]
    calls: tuple[CallPage, ...]


class ChangedTest(Struct, frozen=True, kw_only=True):
    """A test that failed at the start or at the end."""

    name: str
    before: str
    after: str
    message: str
    """The message of its last failure."""
    good: bool


class RunPage(Struct, frozen=True, kw_only=True):
    """The page of one run."""

    view: RunView
    result: tuple[FileDiff, ...]
    plan: PlanGraph | None
    lanes: TimeLanes | None
    times: TimeLine | None
    passes: tuple[PassPage, ...]
    tests: tuple[ValidationLine, ...]
    """Of the run itself: before, after, and with the tests restored."""
    changed_tests: tuple[ChangedTest, ...]
    touched: TestsTouched
    systems: tuple[str, ...]
    beginnings: tuple[Beginning, ...]
    notes: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...] = field(default=())
    """(command, what it does) to look further."""

    @property
    def calls(self) -> tuple[CallPage, ...]:
        """Of all passes, in order."""
        return tuple(call for entry in self.passes for call in entry.calls)


def run_page(sources: RunSources, safe: Callable[[str], str]) -> RunPage:
    """The page. Texts that are split here went through `safe` before, since a secret may span lines.

    Raises:
        RecordError: the record holds a value that this program never writes.
    """
    trace = sources.trace
    chosen = Chosen(place="", passes=trace.passes)
    prompts = {text.call_id: safe(text.prompt) for text in sources.texts}
    beginnings, own = share_beginnings(prompts)
    systems = tuple(dict.fromkeys(text.system_prompt for text in sources.texts))
    accounts = {account.call.call_id: account for account in sources.accounts}
    calls = {
        text.call_id: CallPage(
            account=accounts[text.call_id],
            system=systems.index(text.system_prompt) + 1,
            prompt=own[text.call_id],
            items=_items(
                text.prompt,
                sources.spans.get(text.call_id) or (),
                accounts[text.call_id],
                _reasons(trace, text.call_id),
            ),
            response=text.response,
            thinking=text.thinking,
        )
        for text in sources.texts
        if text.call_id in accounts
    }
    tests = validation_lines(trace, chosen)
    touched = touched_on_record(trace.events)
    return RunPage(
        view=run_view(trace, sources.ending),
        result=file_diffs(safe(sources.result_diff)),
        plan=plan_graph(trace),
        lanes=time_lanes(trace),
        times=time_line(trace),
        passes=tuple(_pass(entry, trace, tests, calls, safe) for entry in trace.passes),
        tests=tuple(line for line in tests if not line.place and line.kind in OF_RUN),
        changed_tests=changed_tests(tests, touched),
        touched=touched,
        systems=systems,
        beginnings=beginnings,
        notes=_notes(trace, trace.task_id),
        commands=_commands(trace),
    )


def changed_tests(tests: Sequence[ValidationLine], touched: TestsTouched) -> tuple[ChangedTest, ...]:
    """The tests that failed in the first or the last full run of the tests: those that do not pass now first, then by name."""
    before = next((line for line in tests if line.kind == "baseline"), None)
    after = next((line for line in reversed(tests) if line.kind == "final"), None)
    failed, still = _failing(before), _failing(after)
    found = []
    for name in {**failed, **still}:
        now = "passes"
        if after is None:
            now = "not run"
        elif name in still:
            now = "fails"
        elif name in {*touched.gone, *touched.skipped}:
            now = "is gone" if name in touched.gone else "is skipped"
        found.append(
            ChangedTest(
                name=name,
                before="fails" if name in failed else "passes, or is new",
                after=now,
                message=(still.get(name) or failed[name]).message,
                good=now == "passes",
            )
        )
    return tuple(sorted(found, key=lambda test: (test.good, test.name)))


def _failing(line: ValidationLine | None) -> Mapping[str, FailingTest]:
    return {} if line is None else {test.name: test for test in line.failing}


def _reasons(trace: RunTrace, call_id: int) -> Mapping[str, str]:
    """Why the items shown to the call are in its context, by path and symbol: the newest reason of each included one."""
    entry = next(one for one in trace.passes for call in one.calls if call.id == call_id)
    return {
        item_name(row.subject.path, row.subject.symbol): row.reason
        for one in context_passes(trace, entry)
        for row in one.decisions
        if row.included
    }


def _items(
    prompt: str, spans: tuple[PromptSpan, ...], account: WindowAccount, reasons: Mapping[str, str]
) -> tuple[ShownItem, ...]:
    """The framed items in the prompt: files, or pieces of files."""
    lines = prompt.split("\n")
    found = []
    for span in framed(spans):
        name = item_name(span.path, span.symbol)
        letters = sum(len(line) + 1 for line in lines[span.first - 1 : span.last])
        found.append(
            ShownItem(
                name=name,
                kind=span.source.value,
                first=span.number or 0,
                last=span.from_line(span.last).number or 0,
                tokens=round(account.call.tokens.used * letters / max(len(prompt), 1)),
                reason=reasons.get(name) or reasons.get(span.path, ""),
            )
        )
    return tuple(found)


def _pass(
    entry: PassTrace,
    trace: RunTrace,
    tests: Sequence[ValidationLine],
    calls: Mapping[int, CallPage],
    safe: Callable[[str], str],
) -> PassPage:
    return PassPage(
        line=pass_line(entry),
        model=entry.row.execute_model,
        context_of=entry.context_of,
        not_chosen=entry.not_chosen,
        decisions=entry.decisions,
        plan_decisions=entry.plan_decisions,
        attempts=tuple(
            AttemptPage(
                number=row.attempt,
                outcome=row.outcome.value.replace("_", " "),
                stands=entry.is_accepted(row),
                error=row.error,
                call_id=row.call_id if row.call_id in calls else None,
                refused=tuple(report for report in row.edit_report if not report.code.accepted),
                files=file_diffs(safe(row.diff)),
            )
            for row in entry.attempts
        ),
        tests=tuple(line for line in tests if entry.place and line.place == entry.place),
        recoveries=entry.recoveries,
        refinements=entry.refinements,
        notes=_notes(trace, entry.pass_id) if entry.pass_id != trace.task_id else (),
        calls=tuple(calls[call.id] for call in entry.calls if call.id in calls),
    )


def _notes(trace: RunTrace, pass_id: str) -> tuple[tuple[str, str], ...]:
    """(kind, words) of events outside the passes, without duplicates."""
    told = (
        (event.kind.replace("_", " "), words)
        for event in trace.events
        if event.task_id == pass_id and (words := event_words(event.kind, event.detail))
    )
    return tuple(dict.fromkeys(told))


def _commands(trace: RunTrace) -> tuple[tuple[str, str], ...]:
    run, row = short_id(trace.task_id), trace.run
    rows = [(f"cra show {run}", "look into it in the terminal")]
    if row is not None and row.branch:
        rows += [
            (f"cra apply {run}", "bring it into your working tree"),
            (f"git diff {row.base_commit[:10]}..{row.branch}", "what it changes, as git says it"),
        ]
    if row is not None and row.status.value in {"partial", "failed", "interrupted", "needs_human"}:
        rows.append((f"cra solve --resume {run}", "continue where it stopped"))
    if row is not None:
        rows.append((f"cra replay {run}", "the same run again, from its recorded answers"))
    return tuple(rows)
