"""Asks another model a stage's recorded questions again, word for word, and compares the answers."""

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from clean_room_agent.app import wiring
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.model_calls import AnswerReading, CallReading, ModelCall
from clean_room_agent.artifacts.names import new_task_id, relative_pass
from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_call_summaries, list_calls
from clean_room_agent.db.raw.passes import list_decisions
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError, WindowExceeded
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.answers import BadAnswer, Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import load_logprobs
from clean_room_agent.workspace import Workspace

KNOWN = {prompt.name: prompt for prompt in PROMPTS}


class RecordedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt's text below its title, word for word."""

    text: str


class Side(Struct, frozen=True, kw_only=True):
    """One answer, the recorded or the new one."""

    answer: Any
    """As JSON has it; of a verdict its word; None if it is unreadable."""
    unreadable: str
    """Why; "" if it is readable."""
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int


class ComparedAnswers(Struct, frozen=True, kw_only=True):
    """One question with both its answers."""

    pass_id: str
    """Relative to the task."""
    prompt: str
    item: str
    call_id: int
    """The recorded call that asked it."""
    decides: tuple[str, ...]
    """The paths that were included or left out by the recorded answer."""
    then: Side
    now: Side

    @property
    def agree(self) -> bool:
        """Whether both answers say the same; two unreadable answers do."""
        return bool(self.then.answer == self.now.answer)


class WhatIf(Struct, frozen=True, kw_only=True):
    """All questions of one stage."""

    replay_of: str
    """The task id of the recorded run."""
    stage: str
    model: str
    recorded: tuple[str, ...]
    """The models that gave the recorded answers."""
    task_id: str
    """The task under which the new answers are recorded."""
    compared: tuple[ComparedAnswers, ...]


def ask_other(
    workspace: Workspace,
    settings: Settings,
    *,
    stage: str,
    model: str,
    run: str,
    progress: Callable[[int, int], None],
) -> WhatIf:
    """Ask `model` at the configured server the questions of `stage` (a stage's name or a prompt's) in `run`.

    Raises:
        UsageError: there is no such run, or it has no such stage; the hint names those that it has.
        ModelError: the server's failure.
    """
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        replay_of = find_task(conn, run)
        calls = [call for call in list_calls(conn, replay_of) if call.site.call_type in KNOWN]
        readings = {call.id: call.read for call in list_call_summaries(conn, replay_of)}
        decisions = list_decisions(conn, replay_of)
    questions = _questions([call for call in calls if stage in {call.site.call_type, call.site.stage_name}])
    if not questions:
        has = sorted({name for call in calls for name in (call.site.call_type, call.site.stage_name) if name})
        raise UsageError(
            f"the run asked nothing in {stage!r}", hint=f"it asked in: {', '.join(has) or 'nothing at all'}"
        )
    names = {question[0].site.call_type for question in questions}
    models = {**settings.data["models"], "overrides": dict.fromkeys(sorted(names), model)}
    other = Settings(source=settings.source, data={**settings.data, "models": models})
    task_id = new_task_id()
    compared = []
    with wiring.open_model_access(workspace, other, task_id=task_id) as access:
        for number, question in enumerate(questions):
            progress(number, len(questions))
            first, ids = question[0], {call.id for call in question}
            paths = (row.subject.path for row in decisions if row.judgment.call_id in ids)
            compared.append(
                ComparedAnswers(
                    pass_id=relative_pass(first.site.pass_id),
                    prompt=first.site.call_type,
                    item=first.site.item,
                    call_id=first.id,
                    decides=tuple(dict.fromkeys(filter(None, paths))),
                    then=_recorded(question, readings[question[-1].id]),
                    now=_ask(access.models, first, task_id),
                )
            )
    return WhatIf(
        replay_of=replay_of,
        stage=stage,
        model=model,
        recorded=tuple(sorted({question[0].model.tag for question in questions})),
        task_id=task_id,
        compared=tuple(compared),
    )


def _questions(calls: Sequence[ModelCall]) -> list[list[ModelCall]]:
    """The calls of each question, in order: its retries and repairs begin with its own text."""
    newest: dict[tuple[str, str, str], list[ModelCall]] = {}
    found: list[list[ModelCall]] = []
    for call in calls:
        key = (call.site.pass_id, call.site.call_type, call.site.item)
        question = newest.get(key)
        if question is not None and call.request.prompt.startswith(question[0].request.prompt):
            question.append(call)
        else:
            newest[key] = [call]
            found.append(newest[key])
    return found


def _recorded(question: Sequence[ModelCall], read: CallReading | None) -> Side:
    last = question[-1]
    answer: Any = BadAnswer(
        kind="empty", fault=last.ending.error or (read.fault if read else "it was not read")
    )
    if read is not None and read.reading is not AnswerReading.UNREADABLE:
        logprobs = load_logprobs(last.answer.logprobs)
        answer, _ = KNOWN[last.site.call_type].read(last.answer.response, logprobs, asked=last.request.prompt)
    latency = sum(call.cost.latency_ms for call in question)
    return _side(answer, last.cost.prompt_tokens, last.cost.completion_tokens, latency)


def _ask(models: ModelClient, call: ModelCall, task_id: str) -> Side:
    """The answer to exactly the recorded text; if that does not fit the other model's window, there is no answer."""
    relative = relative_pass(call.site.pass_id)
    try:
        reply = models.ask(
            _verbatim(call),
            RecordedPrompt(text=SourcedText(call.request.prompt, call.request.spans or ())),
            pass_id=f"{task_id}:{relative}" if relative else task_id,
            stage=call.site.stage_name,
            item=call.site.item,
        )
    except WindowExceeded as error:
        return _side(BadAnswer(kind="empty", fault=error.message), None, None, 0)
    answer = reply.bad if reply.value is None else reply.value
    return _side(answer, reply.prompt_tokens, reply.completion_tokens, reply.latency_ms)


def _verbatim(call: ModelCall) -> Prompt[RecordedPrompt, Any]:
    """The prompt of a recorded call with its recorded text, whatever its template says now."""
    body = json.loads(call.request.request_body) if call.request.request_body else {}
    limit = body.get("max_tokens") or body.get("options", {}).get("num_predict")
    prompt = KNOWN[call.site.call_type]
    return replace(
        prompt,
        system=call.request.system_prompt,
        template="{{ text }}",
        narrow=None,
        grammar=None,
        editable=None,
        max_answer_tokens=limit or prompt.max_answer_tokens,
    )


def _side(answer: Any, prompt_tokens: int | None, completion_tokens: int | None, latency_ms: int) -> Side:
    unreadable = answer.fault if isinstance(answer, BadAnswer) else ""
    if isinstance(answer, Choice):
        plain: Any = answer.word
    elif isinstance(answer, BaseModel):
        plain = answer.model_dump(mode="json")
    else:
        plain = None if isinstance(answer, BadAnswer) else to_shown(answer)
    return Side(
        answer=plain,
        unreadable=unreadable,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        latency_ms=latency_ms,
    )
