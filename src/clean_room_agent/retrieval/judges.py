"""Judges decide whether a file or a piece of code is needed: a model or, without one, a threshold on scores.

All judgment prompts begin alike, so that a server can cache their common prefix.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextRequest, Judgment, RefinementRequest, fence_for, frame
from clean_room_agent.artifacts.evidence import LEAST_CHARACTERS, describe_evidence
from clean_room_agent.artifacts.names import parse_item_name, quoted
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, joined, sourced
from clean_room_agent.db.session import States
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.probes import NOTHING, CalibratedChoice, calibrate_choice, lets_in, needs_bias
from clean_room_agent.llm.prompt import CONTEXT, SHOWN_NOW, Prompt
from clean_room_agent.retrieval.prompts import BatchInputs, SingleInputs
from clean_room_agent.retrieval.stage import Option, SortedT, Verdict

MAX_ERRORS = 6
"""Of what an earlier attempt missed."""
OUT = ""
NO_MODEL = "no model asked"
EVEN = 0.5
NOTHING_ASKED: Final = SingleInputs(
    question=compose((CONTEXT, sourced(NOTHING, PromptSource.TASK))),
    option=frame(f"candidate: {NOTHING}", NOTHING, fence_for((NOTHING,))),
    others=(NOTHING,),
)
"""A question without content, the same for every task: it measures what the model is inclined to answer anyway."""


def question_text(request: ContextRequest, missing: RefinementRequest | None = None) -> SourcedText:
    """Task, evidence, focus and what a failed attempt lacked, under headings; without a line break at the end."""
    task, focus = request.task.strip(), request.focus.strip()
    parts = [(CONTEXT, sourced(task, PromptSource.TASK))]
    if evidence := describe_evidence(request.evidence, bound=LEAST_CHARACTERS):
        parts.append((SHOWN_NOW, sourced(evidence, PromptSource.EVIDENCE)))
    if focus not in {"", task}:
        parts.append(("## The part of it to do now\n", sourced(focus, PromptSource.PART)))
    if missing is not None:
        words = (missing.reason, *missing.error_signatures[:MAX_ERRORS])
        said = "\n".join(word.strip() for word in words if word.strip())
        parts.append(("## What an earlier attempt missed\n", sourced(said, PromptSource.FAILURE)))
    return joined("\n\n", map(compose, parts))


class ModelJudge:
    """Asks a model on behalf of one pass; what was judged earlier in the task is not asked again.

    The verdicts are kept in the task's session. Each is valid until the question or the shown option changes.
    """

    def __init__(
        self,
        models: ModelClient,
        states: States,
        *,
        question: str,
        pass_id: str,
        batch_size: int,
        threshold: float,
    ) -> None:
        """`states`: the task's, which outlive a pass."""
        self._models = models
        self._states = states
        self._question = question
        self._pass_id = pass_id
        self._batch_size = batch_size
        self._threshold = threshold

    def sort(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        /,
        *,
        labels: tuple[str, ...],  # noqa: ARG002 - the answer itself holds the labels; the judge by scores needs them
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Verdict, ...]:
        """Spread the options evenly over as few calls as the window and the batch size allow.

        Raises:
            WindowExceeded: a single option does not fit beside the question.
        """

        def judge(new: Sequence[Option]) -> Iterator[Verdict]:
            batches = self._split_batches(prompt, new, chosen, remark)
            replies = self._models.ask_each(
                prompt,
                [self._batch_inputs(batch, chosen, remark) for batch in batches],
                items=[f"{stage}:{number}" for number in range(len(batches))],
                pass_id=self._pass_id,
                stage=stage,
            )
            for batch, reply in zip(batches, replies, strict=True):
                if reply.value is None:
                    yield from (_omitted_verdict(reply) for _ in batch)
                else:
                    yield from _verdicts_of(reply.value.numbers(), len(batch), reply.call_id)

        return self._with_known(f"{prompt.name}\n{remark}", options, judge)

    def choose(
        self,
        prompt: Prompt[SingleInputs, Choice],
        options: Sequence[Option],
        /,
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
    ) -> tuple[Verdict, ...]:
        """Ask one question per option.

        If the server gives probabilities, what counts is how far they are from those of the same question about nothing;
        otherwise, the word counts.
        """

        def judge(new: Sequence[Option]) -> Iterator[Verdict]:
            names = tuple(option.name for option in new)
            replies = self._models.ask_each(
                prompt,
                [
                    SingleInputs(
                        question=self._question, option=frame_option(option), chosen=chosen, others=names
                    )
                    for option in new
                ],
                items=[option.key for option in new],
                pass_id=self._pass_id,
                stage=stage,
            )
            neutral = None
            if needs_bias([reply.value for reply in replies], labels):
                neutral = self._models.neutral(prompt, NOTHING_ASKED, pass_id=self._pass_id, stage=stage)
            yield from (self._verdict_on(reply, neutral, labels) for reply in replies)

        return self._with_known(prompt.name, options, judge)

    def _with_known(
        self, asked: str, options: Sequence[Option], judge: Callable[[Sequence[Option]], Iterable[Verdict]]
    ) -> tuple[Verdict, ...]:
        """The verdicts given when the same was `asked` about the options before, completed by those of `judge`."""
        keys = [self._verdict_key(asked, option) for option in options]
        known = [self._states.get_state(key) for key in keys]
        new = list(judge([option for option, kept in zip(options, known, strict=True) if kept is None]))
        following = iter(new)
        verdicts = [next(following) if kept is None else from_plain(kept, Verdict) for kept in known]
        # All at once: if a run resumed with only some, its next question would differ.
        self._states.set_states(
            {
                key: to_plain(verdict)
                for key, kept, verdict in zip(keys, known, verdicts, strict=True)
                if kept is None and verdict.judgment.call_id is not None
            }
        )
        return tuple(verdicts)

    def _verdict_key(self, asked: str, option: Option) -> str:
        content = json.dumps([asked, self._question, option.name, option.text])
        return f"verdict:{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()}"

    def _verdict_on(self, reply: Reply[Choice], neutral: Choice | None, labels: tuple[str, ...]) -> Verdict:
        choice = reply.value
        if choice is None:
            return _omitted_verdict(reply)
        calibrated = calibrate_choice(choice, neutral, labels)
        if calibrated is None:
            label = choice.word if choice.word in labels else OUT
            said = f"judged {choice.word}"
            return Verdict(label=label, reason=said, judgment=Judgment(call_id=reply.call_id))
        label = calibrated.word if lets_in(calibrated.score, self._threshold) else OUT
        said = f"judged {choice.word} ({choice.confidence:.2f})"
        if label != (choice.word if choice.word in labels else OUT):
            said += f", but {self._threshold_reason(calibrated)}"
        return Verdict(
            label=label,
            reason=said,
            judgment=Judgment(
                call_id=reply.call_id,
                confidence=choice.confidence,
                probability=calibrated.probability,
                neutral=calibrated.neutral,
                calibrated=calibrated.score,
            ),
        )

    def _threshold_reason(self, calibrated: CalibratedChoice) -> str:
        """Why a word other than the likeliest counts."""
        if calibrated.neutral is None:
            return f"{calibrated.word} ({calibrated.probability:.2f}) counts from {self._threshold:.2f}"
        shares = f"{calibrated.word} has {calibrated.probability:.2f} here and {calibrated.neutral:.2f} about nothing"
        return shares if self._threshold == EVEN else f"{shares}, and counts from {self._threshold:.2f}"

    def _split_batches(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        chosen: tuple[str, ...],
        remark: str,
    ) -> list[Sequence[Option]]:
        if not options:
            return []
        window = self._models.window(prompt).context - prompt.max_answer_tokens
        size = min(self._batch_size, len(options))
        while True:
            count = -(-len(options) // size)
            even = -(-len(options) // count)
            batches = [options[start : start + even] for start in range(0, len(options), even)]
            requests = (self._batch_inputs(batch, chosen, remark) for batch in batches)
            if even == 1 or all(self._models.measure(prompt, request) <= window for request in requests):
                return batches
            size = even // 2

    def _batch_inputs(self, batch: Sequence[Option], chosen: tuple[str, ...], remark: str) -> BatchInputs:
        fence = fence_for(option.text for option in batch)
        shown = tuple(
            _framed_option(f"candidate {number}", option, fence) for number, option in enumerate(batch, 1)
        )
        return BatchInputs(question=self._question, options=shown, chosen=chosen, remark=remark)


def frame_option(option: Option) -> str:
    """The option as a question about it alone shows it."""
    return _framed_option("candidate", option, fence_for((option.text,)))


def _framed_option(word: str, option: Option, fence: str) -> SourcedText:
    item = parse_item_name(option.name)
    shown = sourced(option.text, PromptSource.CANDIDATE, path=item.path, symbol=item.symbol)
    return frame(f"{word}: {quoted(option.name)}", shown, fence, path=item.path, symbol=item.symbol)


class ThresholdJudge:
    """Judges by score, for `--no-model`; every verdict says so."""

    def __init__(self, *, threshold: float) -> None:
        self._threshold = threshold

    def sort(
        self, _prompt: object, options: Sequence[Option], /, *, labels: tuple[str, ...], **_asked: object
    ) -> tuple[Verdict, ...]:
        """Give the first label from the threshold on, and the others at even steps below it."""
        return tuple(self._by_score(option, labels) for option in options)

    choose = sort

    def _by_score(self, option: Option, labels: tuple[str, ...]) -> Verdict:
        for place, label in enumerate(labels):
            bound = self._threshold * (len(labels) - place) / len(labels)
            if option.score >= bound:
                return Verdict(
                    label=label, reason=f"{NO_MODEL}: score {option.score:.2f} is at least {bound:.2f}"
                )
        return Verdict(label=OUT, reason=f"{NO_MODEL}: score {option.score:.2f} is too low")


def _omitted_verdict(reply: Reply[Any]) -> Verdict:
    fault = reply.bad.fault if reply.bad is not None else "no answer"
    return Verdict(
        label=OUT, reason=f"left out: unreadable verdict ({fault})", judgment=Judgment(call_id=reply.call_id)
    )


def _verdicts_of(numbers: tuple[tuple[str, tuple[int, ...]], ...], count: int, call_id: int) -> list[Verdict]:
    chosen: dict[int, str] = {}
    stray: list[int] = []
    for label, picked in numbers:
        for number in picked:
            if 1 <= number <= count:
                chosen.setdefault(number, label)
            else:
                stray.append(number)
    note = (
        f"; the answer also held numbers that are not in the list: {sorted(set(stray))[:5]}" if stray else ""
    )
    return [
        Verdict(
            label=chosen.get(number, OUT),
            reason=(f"judged {chosen[number]}" if number in chosen else "judged not needed") + note,
            judgment=Judgment(call_id=call_id),
        )
        for number in range(1, count + 1)
    ]


def take_best(
    options: Sequence[Option], verdicts: Sequence[Verdict], label: str, *, threshold: float
) -> tuple[Verdict, ...]:
    """Return the verdicts; if none lets anything in, let in the best options anyway and give that as the reason.

    These are all options whose ranking score reaches the threshold, but at least one: those with the model's best
    calibrated scores or, without these, the best ranking scores.
    """
    if any(verdict.label for verdict in verdicts):
        return tuple(verdicts)

    def order(place: int) -> tuple[bool, float, float]:
        calibrated = verdicts[place].judgment.calibrated
        return (calibrated is None, -(calibrated or 0.0), -options[place].score)

    count = max(sum(option.score >= threshold for option in options), 1)
    best = sorted(range(len(options)), key=order)[:count]
    return tuple(
        replace(verdict, label=label, reason=f"{verdict.reason}; {_taken_by(verdict)}", taken=True)
        if place in best
        else verdict
        for place, verdict in enumerate(verdicts)
    )


def _taken_by(verdict: Verdict) -> str:
    if verdict.judgment.call_id is None:
        return "nothing else is in: taken by rank"
    return f"all judged no: taken by {'rank' if verdict.judgment.calibrated is None else 'calibrated score'}"
