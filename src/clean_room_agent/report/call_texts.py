"""The texts of a task: what a model read and answered, call by call, and the resulting diffs."""

from typing import Any

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallSummary, ModelCall
from clean_room_agent.artifacts.names import model_name
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError
from clean_room_agent.git.history import diff
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.trace import RunTrace
from clean_room_agent.workspace import Workspace


class CallTexts(Struct, frozen=True, kw_only=True):
    """One call with its texts, exactly as they were sent and received."""

    place: str
    head: CallSummary
    call: ModelCall


class AttemptDiff(Struct, frozen=True, kw_only=True):
    """What one attempt changed."""

    place: str
    attempt: int
    outcome: str
    stands: bool
    """Whether it is part of the result."""
    diff: str


def call_texts(conn: Connection, trace: RunTrace) -> tuple[CallTexts, ...]:
    """The texts of the calls, in order."""
    places = {call.id: entry.place for entry in trace.passes for call in entry.calls}
    found = ((head, get_call(conn, head.id)) for head in trace.calls)
    return tuple(
        CallTexts(place=places[head.id], head=head, call=call) for head, call in found if call is not None
    )


def texts_object(texts: tuple[CallTexts, ...]) -> list[dict[str, Any]]:
    """The texts as `--json` answers them."""
    return [
        {
            "call_id": text.head.id,
            "place": text.place,
            "call_type": text.head.site.call_type,
            "item": text.head.site.item,
            "model": text.head.model.tag,
            "system_prompt": text.call.request.system_prompt,
            "prompt": text.call.request.prompt,
            "response": text.call.answer.response,
            "thinking": text.call.answer.thinking,
            "finish": text.call.ending.finish,
            "reading": text.head.read.reading if text.head.read else "",
            "fault": text.head.read.fault if text.head.read else "",
            "error": text.call.ending.error,
        }
        for text in texts
    ]


def render_prompts(texts: tuple[CallTexts, ...]) -> Group:
    """System prompt and prompt of each call."""
    parts: list[Text] = []
    for text in texts:
        request = text.call.request
        parts += [_head(text), Text("--- system", style="dim"), _exact(request.system_prompt)]
        parts += [Text("--- prompt", style="dim"), _exact(request.prompt), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def render_responses(texts: tuple[CallTexts, ...]) -> Group:
    """The answer of each call, why it ended and how it was read."""
    parts: list[Text] = []
    for text in texts:
        parts.append(_head(text))
        answer, ending, read = text.call.answer, text.call.ending, text.head.read
        if answer.thinking:
            parts += [Text("--- thinking", style="dim"), _exact(answer.thinking)]
        reading = ": ".join(filter(None, (read.reading, read.fault))) if read else ""
        said = ", ".join(filter(None, (ending.finish, reading, ending.error)))
        parts += [Text(f"--- answer ({said})", style="dim"), _exact(answer.response), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def attempt_diffs(trace: RunTrace, *, accepted_only: bool) -> tuple[AttemptDiff, ...]:
    """What the attempts changed, in order, without those that changed nothing."""
    return tuple(
        AttemptDiff(
            place=entry.place,
            attempt=row.attempt,
            outcome=row.outcome.value,
            stands=entry.is_accepted(row),
            diff=row.diff,
        )
        for entry in trace.passes
        for row in entry.attempts
        if row.diff and (entry.is_accepted(row) or not accepted_only)
    )


def result_diffs(workspace: Workspace, trace: RunTrace) -> tuple[AttemptDiff, ...]:
    """The whole run's change as git has it; for a part of the run, or if the commits are gone, attempt by attempt."""
    run = trace.run
    if trace.place or run is None or not run.result_commit:
        return attempt_diffs(trace, accepted_only=not trace.place)
    try:
        text = diff(open_repository(workspace.repo), run.snapshot_commit, run.result_commit)
    except GitError:
        return attempt_diffs(trace, accepted_only=True)
    return (AttemptDiff(place="", attempt=0, outcome=run.status.value, stands=True, diff=text),)


def render_diffs(diffs: tuple[AttemptDiff, ...]) -> Group:
    """The diffs, each under the attempt that made it; the whole run's diff has no heading."""
    parts: list[RenderableType] = []
    for entry in diffs:
        if entry.place:
            words = f"{entry.place}: {entry.outcome.replace('_', ' ')}{'' if entry.stands else ', undone'}"
            parts.append(Text(words, style="bold green" if entry.stands else "bold yellow"))
        code = entry.diff.rstrip("\n")
        parts.append(Syntax(code, "diff", theme="ansi_dark", background_color="default"))
    return Group(*(parts or [Text("no change is recorded here")]))


def _exact(text: str) -> Text:
    """Lines as they are, whatever the width."""
    return Text(text.rstrip("\n"), no_wrap=True)


def _head(text: CallTexts) -> Text:
    site = text.head.site
    item = f" {site.item}" if site.item else ""
    said = f"=== call {text.head.id}  {text.place}  {site.call_type}{item}  {model_name(text.head.model.tag)}"
    return Text(said, style="bold cyan")
