"""The model client, the only way to ask a model: resolve, measure, send, record, then read."""

import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.model_calls import (
    AnswerReading,
    BiasKey,
    CallSink,
    CallSite,
    CallUnreadable,
    CallWatcher,
    unwatched,
)
from clean_room_agent.errors import ServerFailed, WindowExceeded
from clean_room_agent.llm.answer_rules import COPIED, brief, describe_repetition
from clean_room_agent.llm.answers import (
    AnswerT,
    Choice,
    FaultKind,
    ParseFault,
    repair_prompt,
    thinking_only,
    thinks,
    visible,
)
from clean_room_agent.llm.probes import ABOUT_NOTHING, PROBE_NAME, BiasStore, ProofStore, WindowProbe
from clean_room_agent.llm.prompt import InputsT, Prompt, Shape
from clean_room_agent.llm.request_sender import Exchanged, ModelQuestion, RequestSender, Timing
from clean_room_agent.llm.router import ModelConfig, ModelRouter, Window
from clean_room_agent.llm.transport import RawAnswer, Sampling, Transport

if TYPE_CHECKING:
    from clean_room_agent.llm.filling import FillReply, FillRequest, MadeUpGap

EXAMPLE_LEFT_OUT = "(left out here: answer about the task below)"
"""Stands for a prompt's example once the model has copied one in the task."""
TOOL_CALL = "the model answered with a tool call, and there are no tools; write the answer as text"
WARM_TOP_K = 40
WARM_TOP_P = 0.95
"""Bounds on the draw where the temperature is above 0."""
AGAIN = Sampling(temperature=0.6, seed=2, top_k=WARM_TOP_K, top_p=WARM_TOP_P)
"""How to draw after an unreadable answer: the likeliest tokens would give the same one again."""


class Reply(Struct, Generic[AnswerT], frozen=True, kw_only=True):
    """An answer that was read: exactly one of `value` and `bad` is set. Figures are those of the last call."""

    value: AnswerT | None
    bad: ParseFault | None
    call_id: int
    """The recorded call that gave `value` or `bad`."""
    text: str
    finish: str
    """As `Finish`."""
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int
    attempts: int
    """Calls made: 1, and those of retries and of a repair."""
    endless: bool = False
    """Whether the answer, and its repair, repeated itself or copied the prompt's example."""
    repaired: bool = False
    """Whether `value` is the repair's."""
    waited_ms: int = 0
    """Of the answer and its repair together."""


class ModelClient:
    """Asks models. Thread-safe; at most `[models].parallel` requests run at a time."""

    def __init__(
        self,
        router: ModelRouter,
        transport: Transport,
        sink: CallSink,
        clock: Callable[[], str],
        *,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,  # noqa: S311 - spreads retries, guards nothing
        proofs: ProofStore | None = None,
        biases: BiasStore | None = None,
        copiers: Callable[[str], Collection[str]] = lambda _pass_id: (),
        watch: CallWatcher = unwatched,
    ) -> None:
        """`proofs` remembers which servers refuse too long prompts, and `biases` what models answer about nothing.

        Without them, each client asks once. `copiers` gives the models that copied an example in other passes of a pass's task.
        """
        self._router = router
        self._sink = sink
        self._clock = clock
        self._biases = biases
        self._neutral: dict[tuple[str, str], Choice | None] = {}
        self._neutral_lock = threading.Lock()
        self._fills_gaps: bool | None = None
        """Whether the coding model does; None until it was found out."""
        self._fills_lock = threading.Lock()
        self._known_copiers = copiers
        self._watch = watch
        self._copiers: dict[str, set[str]] = {}
        timing = Timing(clock=clock, timer=timer, sleep=sleep, jitter=jitter)
        self._sender = RequestSender(router.models, transport, sink, timing, proofs, watch)

    def ask(
        self,
        prompt: Prompt[InputsT, AnswerT],
        inputs: InputsT,
        *,
        pass_id: str,
        stage: str = "",
        item: str = "",
        sampling: Sampling | None = None,
        repair: bool = True,
        max_answer_tokens: int | None = None,
        thinking_tokens: int = 0,
        tag: str = "",
    ) -> Reply[AnswerT]:
        """Ask the prompt and read its answer.

        If the answer cannot be read, the model is shown its fault once (`repair`), in a separate prompt. That is skipped if the
        answer was cut off and the prompt's reader expects nothing from asking again, or if the repair would not fit the window.
        `max_answer_tokens` replaces the prompt's own limit, and `tag` the configured model. A model that thinks first, although
        it is told not to, and reaches that limit is asked once more with `thinking_tokens` as the limit.

        Raises:
            WindowExceeded: the request does not fit the model's window; nothing was sent.
            ModelError: the server failed, even after the configured retries.
            ReplayMismatch: the recording holds another call here.
        """
        model = self._router.resolve(prompt.role, prompt.name, stage, tag=tag)
        site = CallSite(pass_id=pass_id, stage_name=stage, call_type=prompt.name, item=item)
        question = _build_question(prompt, model, inputs, sampling, max_answer_tokens)
        if model.tag in self._copiers_of(pass_id) and self._is_held(question):
            question = replace(question, text=prompt.render(inputs, example=EXAMPLE_LEFT_OUT))
        _require_fit(question, prompt.name)
        first = self._sender.exchange(question, site)
        longer = _limit_tokens(thinking_tokens, question.model)
        if (
            first.raw.finish == "length"
            and thinks(first.raw.text, first.raw.thinking)
            and longer > question.max_tokens
        ):
            fault = thinking_only(question.max_tokens)
            self._note_unreadable(first.call_id, ParseFault(kind="truncated", fault=fault))
            cut, question = first, replace(question, max_tokens=longer)
            first = self._sender.exchange(question, site)
            first = replace(first, sent=cut.sent + first.sent, latency_ms=cut.latency_ms + first.latency_ms)
        read = _read_answer(prompt, first.raw, question, asked=question.text)
        value, note = read
        if not isinstance(value, ParseFault):
            self._sink.reading(first.call_id, AnswerReading.PARSED, note)
            return _build_reply(first, first.sent, value=value)
        if value.kind == "copied":
            self._copiers_of(pass_id).add(model.tag)
        self._note_unreadable(first.call_id, value)
        again = self._repair_question(question, prompt, inputs, first.raw.text, value) if repair else None
        if again is None:
            return _build_reply(first, first.sent, bad=value, endless=value.endless)
        second = self._sender.exchange(again, site)
        sent, waited = first.sent + second.sent, first.latency_ms + second.latency_ms
        reread = _read_answer(prompt, second.raw, again, asked=question.text)
        repaired, note = reread
        if isinstance(repaired, ParseFault):
            self._note_unreadable(second.call_id, repaired)
            endless = value.endless and repaired.endless
            return replace(_build_reply(second, sent, bad=repaired, endless=endless), waited_ms=waited)
        self._sink.reading(second.call_id, AnswerReading.REPAIRED, note)
        return replace(_build_reply(second, sent, value=repaired), repaired=True, waited_ms=waited)

    def fill(self, request: "FillRequest", *, pass_id: str, item: str = "") -> "FillReply":
        """Ask the coding model for the text of a gap, if it `can_fill`.

        Raises:
            WindowExceeded: the request does not fit the model's window, or the server would cut it; nothing of it counts.
            ModelError: the server failed, even after the configured retries.
            ReplayMismatch: the recording holds another call here.
        """
        from clean_room_agent.llm.filling import FILL_NAME, FillReply, mean_logprob

        model = self._router.resolve("coding", FILL_NAME)
        question = _gap_question(request, model)
        _require_fit(question, FILL_NAME)
        site = CallSite(pass_id=pass_id, call_type=FILL_NAME, item=item)
        done = self._sender.exchange(question, site)
        text, stopped = request.up_to_stop(done.raw.text)
        finish = "stop" if stopped else done.raw.finish
        if finish == "stop":
            self._sink.reading(done.call_id, AnswerReading.PARSED, "")
        else:
            fault = f"it did not end within {question.max_tokens} tokens"
            self._note_unreadable(done.call_id, ParseFault(kind="truncated", fault=fault))
        return FillReply(
            text=text,
            finish=finish,
            call_id=done.call_id,
            prompt_tokens=done.raw.prompt_tokens,
            completion_tokens=done.raw.completion_tokens,
            latency_ms=done.latency_ms,
            mean_logprob=mean_logprob(done.raw),
        )

    def can_fill(self, *, pass_id: str) -> bool:
        """Whether the model that gaps are given to, on its server, fills gaps rightly: most of those that are made up to find out.

        Found out once for a server, a model and its digest. The calls that show it are recorded in each run, so that a replay
        finds out the same.

        Raises:
            ModelError: the server cannot be asked, or does not have the model.
            ReplayMismatch: the recording holds no such calls.
        """
        from clean_room_agent.llm.filling import FILL_NAME

        with self._fills_lock:
            if self._fills_gaps is None:
                self._fills_gaps = self._passes_fill_probe(self._router.resolve("coding", FILL_NAME), pass_id)
            return self._fills_gaps

    def _passes_fill_probe(self, model: ModelConfig, pass_id: str) -> bool:
        from clean_room_agent.llm.filling import LEAST_RIGHT, MADE_UP_GAPS

        right = 0
        for number, gap in enumerate(MADE_UP_GAPS):
            if right + len(MADE_UP_GAPS) - number < LEAST_RIGHT:
                return False
            try:
                right += self._is_filled(gap, model, pass_id)
            except ServerFailed:  # it has no such request, or no such marks for this model
                return False
        return right >= LEAST_RIGHT

    def _is_filled(self, gap: "MadeUpGap", model: ModelConfig, pass_id: str) -> bool:
        from clean_room_agent.llm.filling import FILL_PROBE_NAME

        question = _gap_question(gap.request, model)
        site = CallSite(pass_id=pass_id, call_type=FILL_PROBE_NAME, item=gap.name)
        done, key = self._measure_or_recall(question, site)
        right = gap.is_right(gap.request.up_to_stop(done.raw.text)[0])
        shares = (("right", float(right)), ("wrong", float(not right)))
        self._store_measured(key, done, Choice(word="right" if right else "wrong", shares=shares))
        return right

    def ask_each(
        self,
        prompt: Prompt[InputsT, AnswerT],
        inputs: Sequence[InputsT],
        *,
        items: Sequence[str],
        pass_id: str,
        stage: str = "",
    ) -> tuple[Reply[AnswerT], ...]:
        """`ask` for each of the inputs, up to `[models].parallel` at a time; answers in the order of the inputs.

        Raises:
            ValueError: two items have the same name.
            CraError: what `ask` raised for the first input, in order, that failed; calls not yet started are dropped.
        """
        if len(set(items)) != len(items):
            raise ValueError(f"prompt {prompt.name}: two items to judge have the same key")

        def ask_one(index: int) -> Reply[AnswerT]:
            return self.ask(prompt, inputs[index], pass_id=pass_id, stage=stage, item=items[index])

        workers = min(self._router.models.parallel, len(items))
        if workers <= 1:
            return tuple(map(ask_one, range(len(items))))
        return tuple(_in_order(ask_one, len(items), workers=workers))

    def neutral(
        self, prompt: Prompt[InputsT, Choice], inputs: InputsT, *, pass_id: str, stage: str = ""
    ) -> Choice | None:
        """The prompt's answer if `inputs` contain nothing to answer about, with its probabilities.

        None if it has no probabilities or cannot be read. Measured once per prompt and model, as a recorded call of the pass
        that needs it first.

        Raises:
            ModelError: the server failed, even after the configured retries.
            ReplayMismatch: the recording holds no such call.
        """
        model = self._router.resolve(prompt.role, prompt.name, stage)
        question = _build_question(prompt, model, inputs, None, None)
        key = (model.tag, question.text)
        with self._neutral_lock:
            if key not in self._neutral:
                site = CallSite(pass_id=pass_id, stage_name=stage, call_type=prompt.name, item=ABOUT_NOTHING)
                self._neutral[key] = self._measure_neutral(prompt, question, site)
            return self._neutral[key]

    def _measure_neutral(
        self, prompt: Prompt[InputsT, Choice], question: ModelQuestion, site: CallSite
    ) -> Choice | None:
        _require_fit(question, prompt.name)
        done, key = self._measure_or_recall(question, site)
        read = _read_answer(prompt, done.raw, question, asked=question.text)
        value = read[0]
        if isinstance(value, ParseFault):
            self._note_unreadable(done.call_id, value)
            return None
        self._sink.reading(done.call_id, AnswerReading.PARSED, "")
        if not value.shares:
            return None
        self._store_measured(key, done, value)
        return value

    def _measure_or_recall(self, question: ModelQuestion, site: CallSite) -> tuple[Exchanged, BiasKey | None]:
        """The answer to a question that measures the model, an earlier command's as long as that holds; and its key."""
        key = None if self._biases is None else self._sender.bias_key(question, site.call_type)
        known = None if self._biases is None or key is None else self._biases.newest(key, self._clock())
        if known is None:
            return self._sender.exchange(question, site), key
        return self._sender.repeat(question, site, known), key

    def _store_measured(self, key: BiasKey | None, done: Exchanged, choice: Choice) -> None:
        if self._biases is not None and key is not None and done.raw.replayed_from is None:
            self._biases.keep(key, done.call_id, choice)

    def _note_unreadable(self, call_id: int, bad: ParseFault) -> None:
        self._sink.reading(call_id, AnswerReading.UNREADABLE, bad.fault)
        self._watch(CallUnreadable(call_id=call_id, fault=bad.fault))

    def _repair_question(
        self,
        question: ModelQuestion,
        prompt: Prompt[InputsT, AnswerT],
        inputs: InputsT,
        said: str,
        bad: ParseFault,
    ) -> ModelQuestion | None:
        if bad.kind == "truncated" and not prompt.answer.repairs_truncated:
            return None
        shape, package = question.shape, question.max_tokens
        if shape.schema is not None and bad.kind in {"truncated", "repeated"}:
            shape = shape._replace(schema=brief(shape.schema, package))
        asked = question.text
        if bad.kind == "copied" and self._is_held(question):
            asked = prompt.render(inputs, example=EXAMPLE_LEFT_OUT)
        text = repair_prompt(asked, said, bad, max_tokens=package)
        again = replace(question, text=text, shape=shape, sampling=AGAIN)
        return again if _fits_window(again) else None

    def _is_held(self, question: ModelQuestion) -> bool:
        """Whether the server holds the answer to its form, so that no example has to show it."""
        shape = question.shape
        return shape.schema is not None or bool(
            shape.grammar and self._router.models.at(question.model.tag, question.model.role).grammar
        )

    def _copiers_of(self, pass_id: str) -> set[str]:
        """Tags of models that have copied an example, in this pass or an earlier one, and would do so again.

        A resumed or replayed pass asks as it did before: what it knows at its start comes from other passes only.
        """
        if pass_id not in self._copiers:
            self._copiers[pass_id] = set(self._known_copiers(pass_id))
        return self._copiers[pass_id]

    def stronger(self, role: Role) -> tuple[str, ...]:
        """Tags of the models to escalate to, in order."""
        return self._router.escalation(role)

    def measure(self, prompt: Prompt[InputsT, AnswerT], inputs: InputsT) -> int:
        """Estimated tokens of the whole request, including framing but not the answer."""
        model = self._router.resolve(prompt.role, prompt.name)
        return model.estimator.request(prompt.system, prompt.render(inputs))

    def count(self, text: str, role: Role) -> int:
        """Estimated tokens of the text for the role's model."""
        return self._router.count(text, role)

    @property
    def parallel(self) -> int:
        """How many requests run at a time."""
        return self._router.models.parallel

    def has_limit(self, prompt: Prompt[Any, Any]) -> bool:
        """Whether the configuration says how long an answer to the prompt may be."""
        return self._router.resolve(prompt.role, prompt.name).max_tokens is not None

    def window(self, reader: Prompt[Any, Any] | Role) -> Window:
        """The window of the model that reads the prompt, or that has the role."""
        return self._router.window(reader.role if isinstance(reader, Prompt) else reader)

    def probe(self, role: Role, *, pass_id: str) -> WindowProbe:
        """Find out what the server does with a prompt that is too long for the role's model; one recorded request.

        Raises:
            ModelError: the server runs the model with a smaller window, or failed in another way.
        """
        model = self._router.resolve(role, PROBE_NAME)
        return self._sender.probe(model, CallSite(pass_id=pass_id, call_type=PROBE_NAME))


def _build_question(
    prompt: Prompt[InputsT, AnswerT],
    model: ModelConfig,
    inputs: InputsT,
    sampling: Sampling | None,
    max_tokens: int | None,
) -> ModelQuestion:
    text = prompt.render(inputs)
    package = max_tokens or prompt.max_answer_tokens
    return ModelQuestion(
        model=model,
        system=prompt.system,
        text=text,
        shape=prompt.shape(inputs),
        opening=prompt.opening(text),
        shown=prompt.unasked(inputs, text),
        wants_logprobs=prompt.answer.wants_logprobs,
        max_tokens=_limit_tokens(package, model),
        sampling=sampling or _configured_sampling(model),
    )


def _gap_question(request: "FillRequest", model: ModelConfig) -> ModelQuestion:
    text = request.shown
    return ModelQuestion(
        model=model,
        system="",
        text=text,
        shape=Shape(None),
        gap=request.gap,
        wants_logprobs=request.wants_logprobs,
        max_tokens=_limit_tokens(request.max_tokens, model),
        sampling=request.sampling,
    )


def _limit_tokens(tokens: int, model: ModelConfig) -> int:
    return tokens if model.max_tokens is None else min(tokens, model.max_tokens)


def _configured_sampling(model: ModelConfig) -> Sampling:
    if model.temperature == 0:
        return Sampling()
    return Sampling(temperature=model.temperature, top_k=WARM_TOP_K, top_p=WARM_TOP_P)


def _require_fit(question: ModelQuestion, prompt: str) -> None:
    model = question.model
    if not _fits_window(question):
        raise WindowExceeded(
            f"prompt {prompt} needs about {question.estimated} tokens and {question.max_tokens} for its answer; "
            f"{model.tag} has a window of {model.window}",
            hint="raise context_window in [budget] if the model allows it, or take a model with a larger window",
        )


def _fits_window(question: ModelQuestion) -> bool:
    return question.estimated + question.max_tokens <= question.model.window


def _read_answer(
    prompt: Prompt[InputsT, AnswerT], raw: RawAnswer, question: ModelQuestion, *, asked: str
) -> tuple[AnswerT | ParseFault, str]:
    """The answer as understood; `asked` is the prompt without what a repair adds to it."""
    if raw.finish == "repeated":
        return ParseFault(kind="repeated", fault=describe_repetition(raw.text or raw.thinking)), ""
    if raw.finish == "copied":
        return ParseFault(kind="copied", fault=COPIED), ""
    if raw.finish == "tool_call":
        return ParseFault(kind="format", fault=TOOL_CALL), ""
    if thinks(raw.text, raw.thinking) and not visible(raw.text):
        kind: FaultKind = "truncated" if raw.finish == "length" else "empty"
        return ParseFault(kind=kind, fault=thinking_only(raw.completion_tokens)), ""
    if raw.finish == "length" and not prompt.answer.reads_cut_answers:
        cut = f"the answer was cut off after {question.max_tokens} tokens"
        return ParseFault(kind="truncated", fault=cut), ""
    return prompt.read(raw.text, raw.tokens, asked=asked)


def _build_reply(
    last: Exchanged,
    sent: int,
    *,
    value: AnswerT | None = None,
    bad: ParseFault | None = None,
    endless: bool = False,
) -> Reply[AnswerT]:
    return Reply(
        value=value,
        bad=bad,
        call_id=last.call_id,
        text=last.raw.text,
        finish=last.raw.finish,
        prompt_tokens=last.raw.prompt_tokens,
        completion_tokens=last.raw.completion_tokens,
        latency_ms=last.latency_ms,
        attempts=sent,
        endless=endless,
        waited_ms=last.latency_ms,
    )


ResultT = TypeVar("ResultT")


def _in_order(work: Callable[[int], ResultT], count: int, *, workers: int) -> list[ResultT]:
    """The results of `work(0..count-1)`; on the first failure in order, work not yet started is dropped."""
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="judge") as pool:
        futures: list[Future[ResultT]] = [pool.submit(work, index) for index in range(count)]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
