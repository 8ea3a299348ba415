"""Repeats a recorded run with its own answers, or with a live server from a given pass on; asks another model a stage's recorded
questions again, word for word, and compares the answers.
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from clean_room_agent.app import wiring
from clean_room_agent.app.leftovers import delete_refs
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.resumption import given_to, recorded_config
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.solving import SolveRequest, run_solve
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import BRANCHES, new_task_id, relative_pass, short_id
from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.analysis import ReadCall, list_read_calls
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.passes import list_decisions
from clean_room_agent.db.raw.runs import OrchestratorRunRow, find_task, get_orchestrator_run
from clean_room_agent.errors import GitError, ReplayMismatch, RepositoryError, UsageError, WindowExceeded
from clean_room_agent.git.history import diff
from clean_room_agent.git.refs import branch_tip, delete_branch
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.answers import Choice, ParseFault
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Verbatim, verbatim
from clean_room_agent.llm.transport import Transport, load_logprobs
from clean_room_agent.llm.transports.replay import RecordThenLive, ReplayTransport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.summary import RunSummary
from clean_room_agent.training.examples import questions
from clean_room_agent.workspace import Workspace


class Recording(Struct, frozen=True, kw_only=True):
    """A run as the record keeps it."""

    row: OrchestratorRunRow
    calls: tuple[ModelCall, ...]
    given: PlanGiven

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes with calls, relative to the task, in the order in which they began."""
        return tuple(
            dict.fromkeys(call.site.identity.pass_id for call in self.calls if call.site.identity.pass_id)
        )


def require_same(row: OrchestratorRunRow, before: str, summary: RunSummary) -> None:
    """Check that the replay ended as the run did, with the diff `before`.

    Raises:
        ReplayMismatch: it did not.
    """
    replayed = summary.result
    if (replayed.cumulative_diff, replayed.status) == (before, row.status):
        return
    raise ReplayMismatch(
        f"the replay ended {replayed.status.value} with a different result from the recorded run ({row.status.value})",
        hint="the tests gave different results this time; compare "
        f"`cra show {short_id(row.task_id)} --tests` and `cra show {short_id(replayed.task_id)} --tests`",
        part="result",
        recorded=before,
        now=replayed.cumulative_diff,
    )


def run_again(
    workspace: Workspace,
    found: Recording,
    settings: Settings,
    transport: Callable[[Settings], Transport],
    observer: Observer,
) -> RunSummary:
    """Repeat the run from its recorded snapshot, with another transport; no refs of it are left."""
    row = found.row
    request = SolveRequest(task=row.task_description, given=found.given, command="replay", replay_of=row)
    repository = open_repository(workspace.repo)
    task_id = new_task_id()
    try:
        _, summary = run_solve(workspace, settings, request, observer, transport, task_id)
    finally:
        _leave_nothing(repository, task_id)
    return summary


def recorded_settings(row: OrchestratorRunRow) -> Settings:
    """The configuration that the run had."""
    return Settings(source=f"the configuration of run {short_id(row.task_id)}", data=json.loads(row.config))


def recorded_diff(repository: Repository, row: OrchestratorRunRow) -> str:
    """The run's diff.

    Raises:
        UsageError: git has deleted its commits, as it does some weeks after `cra discard`.
    """
    try:
        commit = row.result_commit or row.snapshot_commit
        return diff(repository, row.snapshot_commit, commit)
    except GitError as exc:
        raise UsageError(
            f"git no longer has the commits of run {short_id(row.task_id)}",
            hint="a discarded run can be replayed only until git collects its garbage",
        ) from exc


def _leave_nothing(repository: Repository, task_id: str) -> None:
    delete_refs(repository, task_id)
    name = f"{BRANCHES}/{short_id(task_id)}"
    with contextlib.suppress(RepositoryError):  # somebody has checked it out
        delete_branch(repository, name, branch_tip(repository, name))


def read_recording(workspace: Workspace, prefix: str) -> Recording:
    """The run whose id begins with `prefix`, with its answers.

    Raises:
        UsageError: there is none, or it is not a solve that started.
    """
    with read_record(workspace.repo) as conn:
        task_id = find_task(conn, prefix)
        row = get_orchestrator_run(conn, task_id)
        if row is None or row.command not in {"solve", "replay"} or not row.snapshot_commit:
            raise UsageError(
                f"{short_id(task_id)} is not a solve that started", hint="`cra runs` lists the runs"
            )
        row = replace(
            row, config=json.dumps(recorded_config(conn, row))
        )  # a resumed run ended with the newest
        return Recording(row=row, calls=list_calls(conn, task_id), given=given_to(conn, task_id))


def replay_same(workspace: Workspace, found: Recording, observer: Observer) -> tuple[RunSummary, str]:
    """Repeat the run with its recorded answers; returns its summary, and the diff that both have.

    Raises:
        ReplayMismatch: a question or the result was different.
    """
    before = recorded_diff(open_repository(workspace.repo), found.row)
    summary = run_again(
        workspace, found, recorded_settings(found.row), lambda _: ReplayTransport(found.calls), observer
    )
    require_same(found.row, before, summary)
    return summary, before


def replay_from(
    workspace: Workspace, found: Recording, name: str, observer: Observer
) -> tuple[RunSummary, str]:
    """Repeat the run with recorded answers up to the pass `name`, and the configured server's from there on; returns
    its summary, and the diff of the recorded run.

    Raises:
        UsageError: the run has no such pass.
        ModelError: the server's failure.
    """
    if name not in found.passes:
        raise UsageError(f"the run has no pass {name!r}", hint=f"its passes: {', '.join(found.passes)}")
    before = recorded_diff(open_repository(workspace.repo), found.row)
    now, then = load_settings(workspace.config, Overrides()), recorded_settings(found.row)
    settings = Settings(source=now.source, data={**then.data, "models": now.data["models"]})
    # The task itself is no pass of an order: what is asked under it comes first.
    kept = {"", *found.passes[: found.passes.index(name)]}

    def transport(given: Settings) -> Transport:
        return RecordThenLive(
            ReplayTransport(found.calls),
            lambda request: request.identity.pass_id in kept,
            wiring.live_transport(given),
        )

    return run_again(workspace, found, settings, transport, observer), before


KNOWN = {prompt.name: prompt for prompt in PROMPTS}


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
    with read_record(workspace.repo) as conn:
        replay_of = find_task(conn, run)
        calls = [each for each in list_read_calls(conn, replay_of) if each.call.site.call_type in KNOWN]
        decisions = list_decisions(conn, replay_of)
    named = [(each, {each.call.site.call_type, each.call.site.stage_name}) for each in calls]
    asked = questions(tuple(each for each, names in named if stage in names))
    if not asked:
        has = sorted(filter(None, set().union(*(names for _, names in named))))
        raise UsageError(
            f"the run asked nothing in {stage!r}", hint=f"it asked in: {', '.join(has) or 'nothing at all'}"
        )
    names = {tries[0].call.site.call_type for tries in asked}
    models = {**settings.data["models"], "overrides": dict.fromkeys(sorted(names), model)}
    other = Settings(source=settings.source, data={**settings.data, "models": models})
    task_id = new_task_id()
    compared = []
    with wiring.open_model_access(workspace, other, task_id=task_id) as access:
        for number, tries in enumerate(asked):
            progress(number, len(asked))
            first, ids = tries[0].call, {each.call.id for each in tries}
            paths = (row.subject.path for row in decisions if row.judgment.call_id in ids)
            compared.append(
                ComparedAnswers(
                    pass_id=relative_pass(first.site.pass_id),
                    prompt=first.site.call_type,
                    item=first.site.item,
                    call_id=first.id,
                    decides=tuple(dict.fromkeys(filter(None, paths))),
                    then=_recorded_side(tries),
                    now=_ask_again(access.models, first, task_id),
                )
            )
    return WhatIf(
        replay_of=replay_of,
        stage=stage,
        model=model,
        recorded=tuple(sorted({tries[0].call.model.tag for tries in asked})),
        task_id=task_id,
        compared=tuple(compared),
    )


def _recorded_side(tries: Sequence[ReadCall]) -> Side:
    last, read = tries[-1].call, tries[-1].read
    answer: Any = ParseFault(
        kind="empty", fault=last.ending.error or (read.fault if read else "it was not read")
    )
    if tries[-1].is_readable:
        logprobs = load_logprobs(last.answer.logprobs)
        answer, _ = KNOWN[last.site.call_type].read(last.answer.response, logprobs, asked=last.request.prompt)
    latency = sum(each.call.cost.latency_ms for each in tries)
    return _make_side(answer, last.cost.prompt_tokens, last.cost.completion_tokens, latency)


def _ask_again(models: ModelClient, call: ModelCall, task_id: str) -> Side:
    """The answer to exactly the recorded text; if that does not fit the other model's window, there is no answer."""
    relative, prompt = relative_pass(call.site.pass_id), KNOWN[call.site.call_type]
    body = json.loads(call.request.request_body) if call.request.request_body else {}
    limit = body.get("max_tokens") or body.get("options", {}).get("num_predict") or prompt.max_answer_tokens
    try:
        reply = models.ask(
            verbatim(prompt, call.request.system_prompt, max_answer_tokens=limit),
            Verbatim(text=SourcedText(call.request.prompt, call.request.spans or ())),
            pass_id=f"{task_id}:{relative}" if relative else task_id,
            stage=call.site.stage_name,
            item=call.site.item,
        )
    except WindowExceeded as error:
        return _make_side(ParseFault(kind="empty", fault=error.message), None, None, 0)
    answer = reply.bad if reply.value is None else reply.value
    return _make_side(answer, reply.prompt_tokens, reply.completion_tokens, reply.latency_ms)


def _make_side(
    answer: Any, prompt_tokens: int | None, completion_tokens: int | None, latency_ms: int
) -> Side:
    unreadable = answer.fault if isinstance(answer, ParseFault) else ""
    if isinstance(answer, Choice):
        plain: Any = answer.word
    elif isinstance(answer, BaseModel):
        plain = answer.model_dump(mode="json")
    else:
        plain = None if isinstance(answer, ParseFault) else to_shown(answer)
    return Side(
        answer=plain,
        unreadable=unreadable,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        latency_ms=latency_ms,
    )
