"""Asks another model a stage's recorded questions again, word for word, and compares the answers."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from clean_room_agent.app import wiring
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import new_task_id, relative_pass
from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError, WindowExceeded
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.answer_rules import COPIED, describe_repetition
from clean_room_agent.llm.answers import BadAnswer, Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import load_logprobs
from clean_room_agent.workspace import Workspace

KNOWN = {prompt.name: prompt for prompt in PROMPTS}
OPTION = re.compile(r"^={5,} candidate (\d+): (.+)$", re.MULTILINE)


class Asked(Struct, frozen=True, kw_only=True):
    """A prompt's text below its title, word for word."""

    text: str


class Side(Struct, frozen=True, kw_only=True):
    """One answer, the recorded or the new one."""

    answer: Any
    """The parsed answer; a `BadAnswer` if it is unreadable."""
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int


class Compared(Struct, frozen=True, kw_only=True):
    """One question with both its answers."""

    pass_id: str
    """Relative to the task."""
    prompt: str
    item: str
    call_id: int
    """The recorded call that asked it."""
    options: Mapping[int, str]
    """What the numbers in an answer refer to: the numbered lines of the question."""
    decides: tuple[str, ...]
    """The paths that were included or left out by the recorded answer."""
    then: Side
    now: Side

    @property
    def agree(self) -> bool:
        """Whether both answers say the same; verdicts may have different probabilities, and two unreadable answers
        count as the same.
        """
        return bool(_essence(self.then.answer) == _essence(self.now.answer))


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
    compared: tuple[Compared, ...]


class _Question(Struct, kw_only=True):
    """A recorded question with all its tries, including repairs."""

    rows: list[ModelCall]

    @property
    def first(self) -> ModelCall:
        return self.rows[0]


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
        calls, decisions = list_calls(conn, replay_of), list_decisions(conn, replay_of)
    questions = list(_questions(stage, calls))
    if not questions:
        has = sorted(
            {
                name
                for row in calls
                for name in (row.site.call_type, row.site.stage_name)
                if row.site.call_type in KNOWN and name
            }
        )
        raise UsageError(
            f"the run asked nothing in {stage!r}", hint=f"it asked in: {', '.join(has) or 'nothing at all'}"
        )
    task_id = new_task_id()
    compared = []
    with wiring.open_model_access(
        workspace, _with_model(settings, questions, model), task_id=task_id
    ) as access:
        for number, question in enumerate(questions):
            progress(number, len(questions))
            compared.append(_compare(access.models, question, task_id, decisions))
    return WhatIf(
        replay_of=replay_of,
        stage=stage,
        model=model,
        recorded=tuple(sorted({question.first.model.tag for question in questions})),
        task_id=task_id,
        compared=tuple(compared),
    )


def _questions(stage: str, calls: Sequence[ModelCall]) -> Iterator[_Question]:
    """The stage's questions, in order. A retry or a repair begins with the question's own text."""
    open_ones: dict[tuple[str, str, str], _Question] = {}
    found: list[_Question] = []
    for row in calls:
        if stage not in {row.site.call_type, row.site.stage_name} or row.site.call_type not in KNOWN:
            continue
        key = (row.site.pass_id, row.site.call_type, row.site.item)
        question = open_ones.get(key)
        if question is not None and row.request.prompt.startswith(question.first.request.prompt):
            question.rows.append(row)
        else:
            open_ones[key] = _Question(rows=[row])
            found.append(open_ones[key])
    yield from found


def _with_model(settings: Settings, questions: Sequence[_Question], model: str) -> Settings:
    names = {question.first.site.call_type for question in questions}
    models = {**settings.data["models"], "overrides": dict.fromkeys(sorted(names), model)}
    return Settings(source=settings.source, data={**settings.data, "models": models})


def _compare(
    models: ModelClient, question: _Question, task_id: str, decisions: Sequence[DecisionRow]
) -> Compared:
    first = question.first
    ids = {row.id for row in question.rows}
    return Compared(
        pass_id=relative_pass(first.site.pass_id),
        prompt=first.site.call_type,
        item=first.site.item,
        call_id=first.id,
        options={int(number): name for number, name in OPTION.findall(first.request.prompt)},
        decides=tuple(
            dict.fromkeys(
                row.subject.path for row in decisions if row.judgment.call_id in ids and row.subject.path
            )
        ),
        then=_recorded(question),
        now=_ask(models, first, task_id),
    )


def _recorded(question: _Question) -> Side:
    last = question.rows[-1]
    prompt = KNOWN[last.site.call_type]
    if last.ending.error:
        answer: Any = BadAnswer(kind="empty", fault=last.ending.error)
    elif last.ending.finish == "repeated":
        answer = BadAnswer(
            kind="repeated", fault=describe_repetition(last.answer.response or last.answer.thinking)
        )
    elif last.ending.finish == "copied":
        answer = BadAnswer(kind="copied", fault=COPIED)
    elif last.ending.finish == "length" and not prompt.answer.reads_cut_answers:
        answer = BadAnswer(kind="truncated", fault="the answer was cut off")
    else:
        answer, _ = prompt.read(
            last.answer.response, load_logprobs(last.answer.logprobs), asked=last.request.prompt
        )
    return Side(
        answer=answer,
        prompt_tokens=last.cost.prompt_tokens,
        completion_tokens=last.cost.completion_tokens,
        latency_ms=sum(row.cost.latency_ms for row in question.rows),
    )


def _ask(models: ModelClient, row: ModelCall, task_id: str) -> Side:
    """The answer to exactly the recorded text; if that does not fit the other model's window, there is no answer."""
    relative = relative_pass(row.site.pass_id)
    try:
        reply = models.ask(
            _verbatim(row),
            Asked(text=_as_asked(row)),
            pass_id=f"{task_id}:{relative}" if relative else task_id,
            stage=row.site.stage_name,
            item=row.site.item,
        )
    except WindowExceeded as error:
        unfit = BadAnswer(kind="empty", fault=error.message)
        return Side(answer=unfit, prompt_tokens=None, completion_tokens=None, latency_ms=0)
    return Side(
        answer=reply.bad if reply.value is None else reply.value,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        latency_ms=reply.latency_ms,
    )


def _as_asked(row: ModelCall) -> SourcedText:
    """The recorded prompt, with the recorded source of each line."""
    return SourcedText(row.request.prompt, row.request.spans or ())


def _verbatim(row: ModelCall) -> Prompt[Asked, Any]:
    """The prompt of a recorded call with its recorded text, whatever its template says now."""
    body = json.loads(row.request.request_body) if row.request.request_body else {}
    limit = body.get("max_tokens") or body.get("options", {}).get("num_predict")
    prompt = KNOWN[row.site.call_type]
    return replace(
        prompt,
        system=row.request.system_prompt,
        template="{{ text }}",
        narrow=None,
        grammar=None,
        editable=None,
        max_answer_tokens=limit or prompt.max_answer_tokens,
    )


def _essence(answer: Any) -> Any:
    """The part of an answer that counts in a comparison."""
    if isinstance(answer, Choice):
        return answer.word
    return BadAnswer if isinstance(answer, BadAnswer) else plain_answer(answer)


def plain_answer(answer: Any) -> Any:
    """An answer as JSON has it."""
    return answer.model_dump(mode="json") if isinstance(answer, BaseModel) else to_shown(answer)
