"""The texts of a task: what a model read and answered, call by call, and the resulting diffs."""

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from clean_room_agent.artifacts.names import model_name
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError
from clean_room_agent.git.history import diff
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.trace import Chosen, RunTrace
from clean_room_agent.workspace import Workspace


class CallTexts(Struct, frozen=True, kw_only=True):
    """One call's texts, exactly as they were sent and received."""

    call_id: int
    place: str
    call_type: str
    item: str
    model: str
    system_prompt: str
    prompt: str
    response: str
    thinking: str
    finish: str
    reading: str
    """"" if it was not read."""
    fault: str
    error: str


class AttemptDiff(Struct, frozen=True, kw_only=True):
    """What one attempt changed."""

    place: str
    attempt: int
    outcome: str
    stands: bool
    """Whether it is part of the result."""
    diff: str


def call_texts(conn: Connection, chosen: Chosen) -> tuple[CallTexts, ...]:
    """The texts of the chosen calls, in order."""
    places = {call.id: entry.place for entry in chosen.passes for call in entry.calls}
    heads = [(head, get_call(conn, head.id)) for head in chosen.calls]
    return tuple(
        CallTexts(
            call_id=row.id,
            place=places[row.id],
            call_type=row.site.call_type,
            item=row.site.item,
            model=row.model.tag,
            system_prompt=row.request.system_prompt,
            prompt=row.request.prompt,
            response=row.answer.response,
            thinking=row.answer.thinking,
            finish=row.ending.finish,
            reading=head.read.reading if head.read else "",
            fault=head.read.fault if head.read else "",
            error=row.ending.error,
        )
        for head, row in heads
        if row is not None
    )


def render_prompts(texts: tuple[CallTexts, ...]) -> Group:
    """System prompt and prompt of each call."""
    parts: list[Text] = []
    for text in texts:
        parts += [_head(text), Text("--- system", style="dim"), _exact(text.system_prompt)]
        parts += [Text("--- prompt", style="dim"), _exact(text.prompt.rstrip("\n")), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def render_responses(texts: tuple[CallTexts, ...]) -> Group:
    """The answer of each call, why it ended and how it was read."""
    parts: list[Text] = []
    for text in texts:
        parts.append(_head(text))
        if text.thinking:
            parts += [Text("--- thinking", style="dim"), _exact(text.thinking.rstrip("\n"))]
        read = ": ".join(word for word in (text.reading, text.fault) if word)
        said = ", ".join(word for word in (text.finish, read, text.error) if word)
        parts += [Text(f"--- answer ({said})", style="dim"), _exact(text.response.rstrip("\n")), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def attempt_diffs(chosen: Chosen, *, accepted_only: bool) -> tuple[AttemptDiff, ...]:
    """What the chosen attempts changed, in order, without those that changed nothing."""
    found = (
        AttemptDiff(
            place=entry.place,
            attempt=row.attempt,
            outcome=row.outcome.value,
            stands=entry.is_accepted(row),
            diff=row.diff,
        )
        for entry in chosen.passes
        for row in entry.attempts
        if not accepted_only or entry.is_accepted(row)
    )
    return tuple(entry for entry in found if entry.diff)


def render_diffs(diffs: tuple[AttemptDiff, ...]) -> Group:
    """The diffs, each under the attempt that made it; the whole run's diff has no heading."""
    parts: list[RenderableType] = []
    for entry in diffs:
        if entry.place:
            words = f"{entry.place}: {entry.outcome.replace('_', ' ')}{'' if entry.stands else ', undone'}"
            parts.append(Text(words, style="bold green" if entry.stands else "bold yellow"))
        parts.append(
            Syntax(
                entry.diff.rstrip("\n"),
                "diff",
                theme="ansi_dark",
                background_color="default",
                word_wrap=False,
            )
        )
    return Group(*(parts or [Text("no change is recorded here")]))


def _exact(text: str) -> Text:
    """Lines as they are, whatever the width."""
    return Text(text, no_wrap=True)


def _head(text: CallTexts) -> Text:
    item = f" {text.item}" if text.item else ""
    return Text(
        f"=== call {text.call_id}  {text.place}  {text.call_type}{item}  {model_name(text.model)}",
        style="bold cyan",
    )


def result_diffs(workspace: Workspace, trace: RunTrace, chosen: Chosen) -> tuple[AttemptDiff, ...]:
    """The whole run's change as git has it; for a part of the run, or if the commits are gone, attempt by attempt."""
    run = trace.run
    if chosen.place or run is None or not run.result_commit:
        return attempt_diffs(chosen, accepted_only=not chosen.place)
    try:
        text = diff(open_repository(workspace.repo), run.snapshot_commit, run.result_commit)
    except GitError:
        return attempt_diffs(chosen, accepted_only=True)
    return (AttemptDiff(place="", attempt=0, outcome=run.status.value, stands=True, diff=text),)
