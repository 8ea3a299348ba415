"""Sends requests to the model server: slots, retries, the probe of its window, and the record of every request."""

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property, partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.model_calls import (
    BiasKey,
    CallAnswer,
    CallCost,
    CalledModel,
    CallEnding,
    CallFinished,
    CallProgress,
    CallRequest,
    CallSink,
    CallSite,
    CallStarted,
    CallWatcher,
    ModelCall,
    ProbedServer,
    ServerAwaited,
    unwatched,
)
from clean_room_agent.artifacts.prompt_sources import SourcedText, plain_text
from clean_room_agent.errors import CallInterrupted, ModelError, ServerBusy, ServerUnreachable, WindowExceeded
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.probes import (
    PROBE_NAME,
    ProofStore,
    WindowProbe,
    cut_error,
    oversized_prompt,
    read_probe,
    small_window_error,
    still_holds,
    truncating_error,
)
from clean_room_agent.llm.prompt import Shape
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import (
    ChatRequest,
    Gap,
    RawAnswer,
    Sampling,
    Transport,
    dump_logprobs,
    prompt_hash,
)

AskedT = TypeVar("AskedT")
BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 10.0
DOUBTFUL = 3
"""A prompt whose estimate fits so many times is not counted by the server before it is sent."""
LEAST_SHARE = 0.5
"""Share of the wanted answer that must fit for a request to be sent again with a shorter one."""


class Timing(Struct, frozen=True, kw_only=True):
    """Clock and sleep; tests pass their own."""

    clock: Callable[[], str]
    """UTC ISO 8601."""
    timer: Callable[[], float]
    """Seconds from any start."""
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    """0 to 1."""


class ModelQuestion(Struct, frozen=True, kw_only=True, dict=True):
    """What is asked, and of which model."""

    model: ModelConfig
    system: str
    text: SourcedText
    shape: Shape
    wants_logprobs: bool
    max_tokens: int
    sampling: Sampling
    opening: str = ""
    """As `ChatRequest.opening`."""
    shown: str = ""
    """As `ChatRequest.shown`."""
    gap: Gap | None = None
    """As `ChatRequest.gap`."""

    @cached_property
    def estimated(self) -> int:
        """Tokens of the request, without the answer."""
        return self.model.estimator.request(self.system, self.text)


class Exchanged(Struct, frozen=True, kw_only=True):
    """A recorded exchange; one that a caller gets has no error."""

    raw: RawAnswer
    call_id: int
    latency_ms: int
    sent: int
    """Requests made, the failed ones before it included."""


class RequestSender:
    """Sends questions, at most `[models].parallel` at a time; each is recorded before its answer, or Ctrl-C, has effect."""

    def __init__(
        self,
        config: ModelsConfig,
        transport: Transport,
        sink: CallSink,
        timing: Timing,
        proofs: ProofStore | None = None,
        watch: CallWatcher = unwatched,
    ) -> None:
        self._config = config
        self._transport = transport
        self._sink = sink
        self._timing = timing
        self._proofs = proofs
        self._watch = watch
        self._numbers = itertools.count(1)
        self._slots = threading.BoundedSemaphore(config.parallel)
        self._attempts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._attempts_lock = threading.Lock()
        self._probed: set[tuple[str, int]] = set()
        self._probe_lock = threading.Lock()

    def exchange(self, question: ModelQuestion, site: CallSite) -> Exchanged:
        """Send the question; every try, also of a refused connection, a full queue or a break, is recorded.

        Raises:
            ModelError: that of the last try.
            ReplayMismatch: from a recording.
        """
        if self._transport.live:
            self._require_refusal(question.model, site)
            question = self._within_count(question, site.call_type)
        done = self._send_with_retries(question, site)
        refusal = done.raw.refusal
        if refusal is not None and _is_worth(refusal.left, question):
            # Some servers refuse when prompt and answer together do not fit, although the prompt alone does.
            shorter = self._send_with_retries(replace(question, max_tokens=refusal.left), site)
            done = replace(shorter, sent=done.sent + shorter.sent)
        if done.raw.error is not None:
            raise done.raw.error
        return done

    def repeat(self, question: ModelQuestion, site: CallSite, known: ModelCall) -> Exchanged:
        """Reuse what another run was answered; recorded here too, so that the record holds all that was used."""
        raw, call_id, latency_ms = self._send_once(question, site, known)
        return Exchanged(raw=raw, call_id=call_id, latency_ms=latency_ms, sent=0)

    def bias_key(self, question: ModelQuestion, prompt: str) -> BiasKey | None:
        """What the question, asked by the prompt of this name, measures the bias of; None without a server or its digest."""
        digest = self._transport.digest(question.model.tag) if self._transport.live else None
        if digest is None:
            return None
        return BiasKey(
            base_url=self._config.at(question.model.tag, question.model.role).base_url,
            model=question.model.tag,
            model_digest=digest,
            prompt=prompt,
            prompt_hash=prompt_hash(question.system, question.text),
        )

    def probe(self, model: ModelConfig, site: CallSite) -> WindowProbe:
        """Find out what the server does with a prompt that exceeds the model's window; one recorded request.

        Raises:
            WindowExceeded: the server runs the model with a smaller window than configured.
            ModelError: the server failed in another way.
        """
        served = self._served_window(model)
        text = oversized_prompt(max(model.window, served or 0))
        question = ModelQuestion(
            model=model,
            system="",
            text=SourcedText(text),
            shape=Shape(None),
            wants_logprobs=False,
            max_tokens=1,
            sampling=Sampling(),
        )
        there = replace(site, call_type=PROBE_NAME, item=model.tag)
        # If no server answers at all, say so at once; but a busy one is waited for.
        done = self._send_with_retries(question, there, retries=0)
        found = read_probe(done.raw, model, text)
        if found.proven:
            self._probed.add((model.tag, model.window))
            if self._proofs is not None and (server := self._probed_server(model)) is not None:
                self._proofs.keep(server, done.call_id)
        return found

    def _served_window(self, model: ModelConfig) -> int | None:
        """The window that the server gives the model, if it says. Raises WindowExceeded if it is smaller than configured."""
        served = self._ask_when_free(lambda: self._transport.window(model.tag))
        if served is not None and served < model.window:
            raise small_window_error(served, model.tag, model.window)
        return served

    def _probed_server(self, model: ModelConfig) -> ProbedServer | None:
        """The server that a probe is about; None if it has digests but does not give the model's."""
        digest = self._transport.digest(model.tag)
        if digest is None:
            return None
        return ProbedServer(
            provider=model.provider,
            base_url=self._config.at(model.tag, model.role).base_url,
            model=model.tag,
            model_digest=digest,
            window=model.window,
        )

    def _is_known(self, model: ModelConfig) -> bool:
        """Whether an earlier command proved the same server, and the model's window has not shrunk since."""
        server = None if self._proofs is None else self._probed_server(model)
        if self._proofs is None or server is None:
            return False
        proven_at = self._proofs.newest(server)
        if proven_at is None or not still_holds(server.model_digest, proven_at, self._timing.clock()):
            return False
        self._served_window(model)
        return True

    def _within_count(self, question: ModelQuestion, prompt: str) -> ModelQuestion:
        """The question, its answer shorter where the server's count of the prompt leaves less for it; none that fits by far is counted.

        Raises:
            WindowExceeded: the count leaves too little room; nothing was sent.
        """
        model = question.model
        if DOUBTFUL * question.estimated + question.max_tokens <= model.window:
            return question
        counted = self._transport.count(model.tag, question.system, question.text)
        if counted is None or counted + question.max_tokens <= model.window:
            return question
        if _is_worth(model.window - counted, question):
            return replace(question, max_tokens=model.window - counted)
        raise WindowExceeded(
            f"prompt {prompt} has {counted} tokens by the server's count, and {question.max_tokens} are for its "
            f"answer; {model.tag} has a window of {model.window}",
            hint=f"the estimate was {question.estimated}: raise reserved_tokens or context_window in [budget] (or "
            "token_factor in [models], while few calls of this model are known)",
        )

    def _require_refusal(self, model: ModelConfig, site: CallSite) -> None:
        # Held while the probe runs: of several first calls at once, one probes, and the others wait for what it finds.
        with self._probe_lock:
            if (model.tag, model.window) in self._probed:
                return
            proven = self._is_known(model) or self.probe(model, site).proven
            if not proven and not self._config.allow_truncating_server:
                raise truncating_error(model)
            self._probed.add((model.tag, model.window))  # also where cutting is allowed

    def _send_with_retries(
        self, question: ModelQuestion, site: CallSite, *, retries: int | None = None
    ) -> Exchanged:
        """The last try's outcome, error or not, after the waits that its error is worth; `retries` replaces the configured
        ones.
        """
        wait = self._retry_waits(self._config.retries if retries is None else retries)
        sent = 0
        while True:
            raw, call_id, latency_ms = self._send_once(question, site)
            sent += 1
            if raw.error is None or not wait(raw.error):
                return Exchanged(raw=raw, call_id=call_id, latency_ms=latency_ms, sent=sent)

    def _ask_when_free(self, ask: Callable[[], AskedT]) -> AskedT:
        """What `ask` finds out, as soon as the server is not too busy to say; the last try's error passes."""
        wait = self._retry_waits(0)
        while True:
            try:
                return ask()
            except ServerBusy as error:
                if not wait(error):
                    raise

    def _retry_waits(self, retries: int) -> Callable[[ModelError], bool]:
        """Waits after an error, longer each time, and says whether to try again: so many times where nobody answers, and
        where the server is busy, for about as long as for an answer. How often depends on no clock, so that a replay tries
        as often.
        """
        tries, waited = 0, 0.0

        def wait(error: ModelError) -> bool:
            nonlocal tries, waited
            seconds = min(BACKOFF_SECONDS * 2**tries, BACKOFF_MAX_SECONDS)
            tries, waited = tries + 1, waited + seconds
            patience = self._config.timeouts.first_byte
            busy = isinstance(error, ServerBusy) and waited <= patience
            if not (busy or (isinstance(error, ServerUnreachable) and tries <= retries)):
                return False
            if busy and tries == 1:
                self._watch(ServerAwaited(said=error.message))
            if self._transport.live:
                self._timing.sleep(seconds * (0.5 + self._timing.jitter() / 2))
            return True

        return wait

    def _send_once(
        self, question: ModelQuestion, site: CallSite, known: ModelCall | None = None
    ) -> tuple[RawAnswer, int, int]:
        number = next(self._numbers)
        site = self._next_attempt(site)
        request = ChatRequest(
            identity=site.identity,
            model=question.model,
            system=question.system,
            prompt=plain_text(question.text),
            schema=question.shape.schema,
            grammar=question.shape.grammar,
            opening=question.opening,
            shown=question.shown,
            gap=question.gap,
            wants_logprobs=question.wants_logprobs,
            max_tokens=question.max_tokens,
            sampling=question.sampling,
            heard=partial(self._watch, CallProgress(number=number)),
        )
        way = self._transport
        if known is not None:
            from clean_room_agent.llm.transports.replay import ReplayTransport

            way = ReplayTransport((replace(known, site=site),))
        with self._slots:
            self._watch(_started_event(number, question, site))
            timestamp, start = self._timing.clock(), self._timing.timer()
            try:
                raw = way.send(request)
            except KeyboardInterrupt:
                raw = RawAnswer(request_body="", error=CallInterrupted("interrupted"))
            latency_ms = round((self._timing.timer() - start) * 1000)
        if raw.error is None and way.live and site.call_type != PROBE_NAME:
            raw = replace(raw, error=cut_error(question.system, question.text, raw, question.model))
        cost = CallCost(
            estimated_tokens=question.estimated,
            prompt_tokens=raw.prompt_tokens,
            completion_tokens=raw.completion_tokens,
            cached_tokens=raw.cached_tokens,
            latency_ms=latency_ms,
            timestamp=timestamp,
        )
        provider = question.model.provider if self._transport.live else self._transport.provider
        call = _call_record(site, question, request, raw, cost, provider=provider)
        call_id = self._sink.record(call)
        self._watch(_finished_event(number, call_id, call))
        if isinstance(raw.error, CallInterrupted) and raw.replayed_from is None:
            raise KeyboardInterrupt
        return raw, call_id, latency_ms

    def _next_attempt(self, site: CallSite) -> CallSite:
        with self._attempts_lock:
            key = (site.pass_id, site.call_type, site.item)
            attempt = self._attempts[key]
            self._attempts[key] += 1
        return replace(site, attempt=attempt)


def _call_record(
    site: CallSite,
    question: ModelQuestion,
    request: ChatRequest,
    raw: RawAnswer,
    cost: CallCost,
    *,
    provider: str,
) -> ModelCall:
    return ModelCall(
        site=site,
        model=CalledModel(
            tag=request.model.tag, role=request.model.role, provider=provider, digest=raw.model_digest
        ),
        request=CallRequest(
            system_prompt=request.system,
            prompt=request.prompt,
            prompt_hash=request.prompt_hash,
            request_body=raw.request_body,
            spans=question.text.spans,
        ),
        answer=CallAnswer(response=raw.text, thinking=raw.thinking, logprobs=dump_logprobs(raw.tokens)),
        ending=CallEnding(
            finish=raw.finish if raw.error is None else f"error:{type(raw.error).__name__}",
            error="" if raw.error is None else raw.error.message,
            replayed_from=raw.replayed_from,
        ),
        cost=cost,
    )


def _started_event(number: int, question: ModelQuestion, site: CallSite) -> CallStarted:
    return CallStarted(
        number=number,
        prompt=site.call_type,
        item=site.item,
        model=question.model.tag,
        estimated_tokens=question.estimated,
        max_tokens=question.max_tokens,
    )


def _finished_event(number: int, call_id: int, call: ModelCall) -> CallFinished:
    return CallFinished(
        number=number,
        call_id=call_id,
        prompt=call.site.call_type,
        item=call.site.item,
        model=call.model.tag,
        prompt_tokens=call.cost.prompt_tokens or call.cost.estimated_tokens,
        completion_tokens=call.cost.completion_tokens or 0,
        seconds=call.cost.latency_ms / 1000,
        ending=call.ending.error or call.ending.finish,
        recalled=call.ending.replayed_from is not None,
    )


def _is_worth(left: int, question: ModelQuestion) -> bool:
    """Whether an answer of so many tokens is shorter than wanted, but still long enough to be useful."""
    return LEAST_SHARE * question.max_tokens <= left < question.max_tokens
