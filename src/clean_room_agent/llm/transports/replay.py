"""Transports that answer from a recording, by the identity of a call; its prompt must be the same as then."""

import json
from collections.abc import Callable, Iterable
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent import errors
from clean_room_agent.artifacts.model_calls import (
    CallAnswer,
    CallCost,
    CalledModel,
    CallEnding,
    CallIdentity,
    CallRequest,
    CallSite,
    ModelCall,
)
from clean_room_agent.errors import ArtifactError, ModelError, ReplayMismatch, ServerFailed, WindowExceeded
from clean_room_agent.json_values import from_json, to_plain
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.llm.transport import (
    ChatRequest,
    Finish,
    RawAnswer,
    Transport,
    WindowRefusal,
    load_logprobs,
)

FORMAT_VERSION = 1
SHOWN_CHARS = 200
SHOWN_BEFORE = 60


class _Line(Struct, frozen=True, kw_only=True):
    """A call in the file of a recording; the parts of `ModelCall` describe the fields of the same name."""

    call_id: int
    identity: CallIdentity
    system_prompt: str
    prompt: str
    prompt_hash: str
    request_body: str
    response: str
    thinking: str
    logprobs: str
    finish: str
    error: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None
    model_digest: str = ""
    model: str = ""
    """Its tag; "" in recordings of older programs."""

    @staticmethod
    def of(call: ModelCall) -> "_Line":
        return _Line(
            call_id=call.id,
            identity=call.site.identity,
            system_prompt=call.request.system_prompt,
            prompt=call.request.prompt,
            prompt_hash=call.request.prompt_hash,
            request_body=call.request.request_body,
            response=call.answer.response,
            thinking=call.answer.thinking,
            logprobs=call.answer.logprobs,
            finish=call.ending.finish,
            error=call.ending.error,
            prompt_tokens=call.cost.prompt_tokens,
            completion_tokens=call.cost.completion_tokens,
            cached_tokens=call.cost.cached_tokens,
            model_digest=call.model.digest,
            model=call.model.tag,
        )

    def call(self) -> ModelCall:
        """The call, without what a recording leaves out: its task, its model's role, its estimate and its times."""
        return ModelCall(
            id=self.call_id,
            site=CallSite(
                pass_id=f":{self.identity.pass_id}" if self.identity.pass_id else "",
                call_type=self.identity.prompt,
                item=self.identity.item,
                attempt=self.identity.attempt,
            ),
            model=CalledModel(tag=self.model, role="reasoning", provider="", digest=self.model_digest),
            request=CallRequest(
                system_prompt=self.system_prompt,
                prompt=self.prompt,
                prompt_hash=self.prompt_hash,
                request_body=self.request_body,
            ),
            answer=CallAnswer(response=self.response, thinking=self.thinking, logprobs=self.logprobs),
            ending=CallEnding(finish=self.finish, error=self.error),
            cost=CallCost(
                estimated_tokens=0,
                prompt_tokens=self.prompt_tokens,
                completion_tokens=self.completion_tokens,
                cached_tokens=self.cached_tokens,
                latency_ms=0,
                timestamp="",
            ),
        )


class ReplayTransport(Transport):
    """Answers as recorded, including errors. Of two calls with the same identity (in a resumed run), the later counts."""

    provider = "replay"
    live = False

    def __init__(self, calls: Iterable[ModelCall]) -> None:
        self._calls = {call.site.identity: call for call in calls if call.site.call_type != PROBE_NAME}

    def send(self, request: ChatRequest) -> RawAnswer:
        """The recorded answer.

        Raises:
            ReplayMismatch: no such call was recorded, or its prompt was different.
        """
        call = self._calls.get(request.identity)
        if call is None:
            raise ReplayMismatch(
                f"the recording holds no call for {request.identity}{self._describe_nearest(request.identity)}",
                hint="the run now differs from the recorded one; `cra replay` needs the same program, "
                "configuration and repository state",
                call=str(request.identity),
            )
        if call.request.prompt_hash != request.prompt_hash:
            raise _mismatch_error(call, request)
        finish, error = _recorded_outcome(call)
        return RawAnswer(
            request_body=call.request.request_body,
            text=call.answer.response,
            thinking=call.answer.thinking,
            finish=finish,
            prompt_tokens=call.cost.prompt_tokens,
            completion_tokens=call.cost.completion_tokens,
            cached_tokens=call.cost.cached_tokens,
            tokens=load_logprobs(call.answer.logprobs),
            error=error,
            refusal=self._window_refusal(request, error),
            model_digest=call.model.digest,
            replayed_from=call.id,
        )

    def is_settled(self, request: ChatRequest) -> bool:
        """Whether it holds this very question, and no failure at which the recorded run ended."""
        call = self._calls.get(request.identity)
        if call is None or (call.request.prompt_hash, call.model.tag) != (
            request.prompt_hash,
            request.model.tag,
        ):
            return False
        return not call.ending.error or self._is_asked_again(request)

    def _is_asked_again(self, request: ChatRequest) -> bool:
        again = self._calls.get(replace(request.identity, attempt=request.identity.attempt + 1))
        return again is not None and again.request.prompt_hash == request.prompt_hash

    def _window_refusal(self, request: ChatRequest, error: ModelError | None) -> WindowRefusal | None:
        """Figures, which are not recorded, that lead to the shorter answer that was asked for next; None if none was."""
        if not isinstance(error, WindowExceeded) or not self._is_asked_again(request):
            return None
        return WindowRefusal(prompt_tokens=1, window=request.max_tokens)

    def _describe_nearest(self, identity: CallIdentity) -> str:
        same_pass = [known for known in self._calls if known.pass_id == identity.pass_id]
        if not same_pass:
            return "; none for that pass at all"
        same_prompt = [known for known in same_pass if known.prompt == identity.prompt]
        if not same_prompt:
            return f"; for that pass it holds: {', '.join(sorted({known.prompt for known in same_pass}))}"
        near = sorted(f"item {known.item or '(none)'} attempt {known.attempt}" for known in same_prompt)
        return f"; for that prompt it holds: {', '.join(near[:5])}{', ...' if len(near) > 5 else ''}"


class RecordThenLive:
    """Answers from a recording what `recorded` says, and asks a server everything else."""

    def __init__(
        self, recording: ReplayTransport, recorded: Callable[[ChatRequest], bool], server: Transport
    ) -> None:
        self._recording, self._recorded, self._server = recording, recorded, server
        self.provider, self.live = server.provider, server.live
        self.window, self.count, self.digest = server.window, server.count, server.digest

    def send(self, request: ChatRequest) -> RawAnswer:
        """The recorded answer or the server's.

        Raises:
            ReplayMismatch: the recording was to answer something else.
        """
        if request.identity.prompt != PROBE_NAME and self._recorded(request):
            return self._recording.send(request)
        return self._server.send(request)


def resuming(calls: Iterable[ModelCall], server: Transport) -> RecordThenLive:
    """Answers from the record what a resumed run asked before; a failure is asked again, unless the run went on after it."""
    recording = ReplayTransport(calls)
    return RecordThenLive(recording, recording.is_settled, server)


def dump_calls(calls: Iterable[ModelCall]) -> str:
    """The calls as JSON lines, the first naming the format."""
    lines = [json.dumps({"format": "cra-recording", "version": FORMAT_VERSION})]
    lines += [json.dumps(to_plain(_Line.of(call)), ensure_ascii=False, sort_keys=True) for call in calls]
    return "\n".join(lines) + "\n"


def load_calls(text: str, *, source: str) -> tuple[ModelCall, ...]:
    """The inverse of `dump_calls`; `source` is named in errors.

    Raises:
        ArtifactError: names the line that is not of the format.
    """
    header, *lines = text.split("\n")
    if header != json.dumps({"format": "cra-recording", "version": FORMAT_VERSION}):
        raise ArtifactError(
            f"{source}: not a recording of version {FORMAT_VERSION}",
            hint="record it again with this version of cra",
        )
    calls = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            calls.append(from_json(line, _Line).call())
        except ValueError as exc:
            raise ArtifactError(f"{source}, line {number}: {exc}") from exc
    return tuple(calls)


def _recorded_outcome(call: ModelCall) -> tuple[Finish, ModelError | None]:
    name = call.ending.finish.removeprefix("error:")
    if name == call.ending.finish:
        return next((finish for finish in get_args(Finish) if finish == call.ending.finish), "stop"), None
    kind = getattr(errors, name, ServerFailed)
    if not (isinstance(kind, type) and issubclass(kind, ModelError)):
        kind = ServerFailed
    return "stop", kind(call.ending.error, hint="this failure was recorded, and is replayed")


def _mismatch_error(call: ModelCall, request: ChatRequest) -> ReplayMismatch:
    """The error that shows the first line in which the prompt differs from the recorded one."""
    begin = f"{request.identity} asks something else than recorded call {call.id}: "
    hint = "the program, its configuration or the repository differ from the recorded run at this point"
    for part, recorded, asked in (
        ("system text", call.request.system_prompt, request.system),
        ("prompt", call.request.prompt, request.prompt),
    ):
        if recorded == asked:
            continue
        then, now = recorded.split("\n"), asked.split("\n")
        number = next(
            (n for n, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now))
        )
        was = then[number] if number < len(then) else None
        is_now = now[number] if number < len(now) else None
        column = next(
            (n for n, (a, b) in enumerate(zip(was or "", is_now or "", strict=False)) if a != b),
            min(len(was or ""), len(is_now or "")),
        )
        return ReplayMismatch(
            f"{begin}line {number + 1} of the {part} was {_excerpt_around(was, column)} and now is {_excerpt_around(is_now, column)}",
            hint=hint,
            call=str(request.identity),
            part=part,
            line=number + 1,
            recorded=was,
            now=is_now,
        )
    return ReplayMismatch(
        f"{begin}the recording's own hash does not match its text", hint=hint, call=str(request.identity)
    )


def _excerpt_around(line: str | None, column: int) -> str:
    """The line, or the part of a long one around the column."""
    if line is None:
        return "(not there)"
    start = column - SHOWN_BEFORE if column > SHOWN_CHARS - SHOWN_BEFORE else 0
    return f"{'...' if start else ''}{line[start : start + SHOWN_CHARS]!r}"
