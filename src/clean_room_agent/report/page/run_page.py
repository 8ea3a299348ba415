"""The content of the page of a run, before it is rendered: a function of the record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.names import item_name, short_id
from clean_room_agent.artifacts.prompt_sources import PromptSpan
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import recorded_evidence
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.call_texts import CallTexts, call_texts
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.page.plan_list import PlannedPart, planned_parts
from clean_room_agent.report.prompt_lines import framed
from clean_room_agent.report.run_view import run_object
from clean_room_agent.report.summary import Ending, TestsTouched, touched_on_record
from clean_room_agent.report.time_lanes import TimeLanes, time_lanes
from clean_room_agent.report.trace import RunTrace, context_passes
from clean_room_agent.report.windows import WindowUse, window_uses

OF_RUN = {"baseline": "before", "final": "after", "restored": "after, with the tests restored"}
"""Kinds of test runs whose whole output is on the page; for an attempt, only the failures are."""
WORTH = 240
"""Characters from which on a beginning that two prompts share is shown once."""


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

    use: WindowUse
    system: int
    """1-based, of the page's system texts."""
    begins_as: int | None
    """The earlier call whose prompt begins with the same lines; None if it shares no long beginning."""
    shared_lines: int
    """How many lines these are."""
    prompt: str | None
    """The lines after these; None if there are none."""
    items: tuple[ShownItem, ...]
    response: str
    thinking: str


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

    trace: RunTrace
    view: dict[str, Any]
    """The run as `cra show --json` answers it."""
    ending: Ending
    evidence: tuple[Any, ...]
    result: str
    """The whole run's change as a diff; "" if there is none."""
    plan: tuple[PlannedPart, ...]
    lanes: TimeLanes | None
    calls: dict[int, CallPage]
    """By id, in order."""
    tests: tuple[ValidationRow, ...]
    """Of the run itself: before, after, and with the tests restored."""
    changed_tests: tuple[ChangedTest, ...]
    touched: TestsTouched
    systems: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    """(command, what it does) to look further."""


def run_page(conn: Connection, trace: RunTrace, result: str, safe: Callable[[str], str]) -> RunPage:
    """The page, in which every text went through `safe`; `result` is the change that the run made.

    Raises:
        RecordError: the record holds a value that this program never writes.
    """
    texts, ending = call_texts(conn, trace), ending_on_record(conn, trace)
    touched = touched_on_record(trace.events)
    page = RunPage(
        trace=trace,
        view=run_object(trace, ending),
        ending=ending,
        evidence=recorded_evidence(trace.events) or (),
        result=result,
        plan=planned_parts(trace),
        lanes=time_lanes(trace),
        calls=_calls(conn, trace, texts, safe),
        tests=tuple(row for row in trace.tests if row.task_id == trace.task_id and row.kind in OF_RUN),
        changed_tests=changed_tests(trace.tests, touched),
        touched=touched,
        systems=_systems(texts),
        commands=_commands(trace),
    )
    return change_texts(page, safe)  # type: ignore[no-any-return]


def shared_beginnings(prompts: Mapping[int, str]) -> dict[int, tuple[int | None, int]]:
    """For each prompt, the earlier one with the longest common beginning in whole lines, and how many lines that is; None
    and 0 if it is not worth a reference.

    It is the earliest one that has these lines, so a reference rarely leads to another.
    """
    found: dict[int, tuple[int | None, int]] = {}
    before: list[tuple[int, list[str]]] = []
    for number, prompt in prompts.items():
        lines = prompt.split("\n")
        best: tuple[int | None, int] = (None, 0)
        for other, earlier in before:
            end = next(
                (at for at, (one, two) in enumerate(zip(lines, earlier, strict=False)) if one != two),
                min(len(lines), len(earlier)),
            )
            if end > best[1]:
                best = (other, end)
        found[number] = best if len("\n".join(lines[: best[1]])) >= WORTH else (None, 0)
        before.append((number, lines))
    return found


def changed_tests(tests: Sequence[ValidationRow], touched: TestsTouched) -> tuple[ChangedTest, ...]:
    """The tests that failed in the first or the last full run of the tests: those that do not pass now first, then by name."""
    before = next((row for row in tests if row.kind == "baseline"), None)
    after = next((row for row in reversed(tests) if row.kind == "final"), None)
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


def _failing(row: ValidationRow | None) -> Mapping[str, FailingTest]:
    return {} if row is None else {test.name: test for test in row.failing_tests}


def _systems(texts: Sequence[CallTexts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.call.request.system_prompt for text in texts))


def _calls(
    conn: Connection, trace: RunTrace, texts: Sequence[CallTexts], safe: Callable[[str], str]
) -> dict[int, CallPage]:
    systems = _systems(texts)
    uses = {use.call.id: use for use in window_uses(conn, trace)}
    # Made safe before they are divided, since a secret may span lines.
    prompts = {text.head.id: safe(text.call.request.prompt) for text in texts}
    beginnings = shared_beginnings(prompts)
    found = {}
    for text in texts:
        number, request = text.head.id, text.call.request
        begins_as, lines = beginnings[number]
        own = prompts[number].split("\n")[lines:]
        found[number] = CallPage(
            use=uses[number],
            system=systems.index(request.system_prompt) + 1,
            begins_as=begins_as,
            shared_lines=lines,
            prompt="\n".join(own) if own else None,
            items=_items(request.prompt, request.spans or (), uses[number], _reasons(trace, number)),
            response=text.call.answer.response,
            thinking=text.call.answer.thinking,
        )
    return found


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
    prompt: str, spans: tuple[PromptSpan, ...], use: WindowUse, reasons: Mapping[str, str]
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
                tokens=round(use.call.cost.read_tokens * letters / max(len(prompt), 1)),
                reason=reasons.get(name) or reasons.get(span.path, ""),
            )
        )
    return tuple(found)


def _commands(trace: RunTrace) -> tuple[tuple[str, str], ...]:
    run, row = short_id(trace.task_id), trace.run
    rows = [(f"cra show {run}", "look into it in the terminal")]
    if row is None:
        return tuple(rows)
    if row.branch:
        rows += [
            (f"cra apply {run}", "bring it into your working tree"),
            (f"git diff {row.base_commit[:10]}..{row.branch}", "what it changes, as git says it"),
        ]
    if row.status.value in {"partial", "failed", "interrupted", "needs_human"}:
        rows.append((f"cra solve --resume {run}", "continue where it stopped"))
    return (*rows, (f"cra replay {run}", "the same run again, from its recorded answers"))
