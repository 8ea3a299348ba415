"""The judges: a model, one that remembers its verdicts, and score thresholds where no model is asked."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter

from clean_room_agent.artifacts.package import fence_for, frame, quoted
from clean_room_agent.db.session import States
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.bias import NOTHING, Weighed, lets_in, needs_leaning, weigh
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import BatchInputs, Judge, Option, Ruling, SingleInputs, SortedT, Weight

OUT = ""
NO_MODEL = "no model asked"
EVEN = 0.5
RULING: Final = TypeAdapter(Ruling)
NOTHING_ASKED: Final = SingleInputs(
    question=f"## Task\n{NOTHING}",
    option=frame(f"candidate: {NOTHING}", NOTHING, fence_for((NOTHING,))),
    others=(NOTHING,),
)
"""A question about nothing. It is the same for every task: what is measured with it holds for all."""


class ModelJudge:
    """Asks the model, about one pass's question."""

    def __init__(
        self, models: ModelClient, *, question: str, pass_id: str, batch_size: int, threshold: float
    ) -> None:
        self._models = models
        self._question = question
        self._pass_id = pass_id
        self._batch_size = batch_size
        self._threshold = threshold

    def sort(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],  # noqa: ARG002 - the answer itself holds the labels; thresholds need to be told
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Ruling, ...]:
        """As `Judge.sort`; the options are spread evenly over as few calls as the window and the batch size allow.

        Raises:
            WindowExceeded: a single option does not fit beside the question.
        """

        def inputs(batch: Sequence[Option]) -> BatchInputs:
            fence = fence_for(option.text for option in batch)
            shown = tuple(
                frame(f"candidate {number}: {quoted(option.name)}", option.text, fence)
                for number, option in enumerate(batch, 1)
            )
            return BatchInputs(question=self._question, options=shown, chosen=chosen, remark=remark)

        batches = self._batches(prompt, options, inputs)
        replies = self._models.ask_each(
            prompt,
            [inputs(batch) for batch in batches],
            items=[f"{stage}:{number}" for number in range(len(batches))],
            pass_id=self._pass_id,
            stage=stage,
        )
        rulings: list[Ruling] = []
        for batch, reply in zip(batches, replies, strict=True):
            if reply.value is None:
                rulings.extend(_omitted(reply) for _ in batch)
            else:
                rulings.extend(_rule(reply.value.numbers(), len(batch), reply.call_id))
        return tuple(rulings)

    def choose(
        self,
        prompt: Prompt[SingleInputs, Choice],
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
    ) -> tuple[Ruling, ...]:
        """As `Judge.choose`. Where probabilities are given, what counts is how far they are from those about nothing; else
        the word.
        """
        names = tuple(option.name for option in options)

        def inputs(option: Option) -> SingleInputs:
            return SingleInputs(
                question=self._question, option=frame_option(option), chosen=chosen, others=names
            )

        replies = self._models.ask_each(
            prompt,
            [inputs(option) for option in options],
            items=[option.key for option in options],
            pass_id=self._pass_id,
            stage=stage,
        )
        neutral = None
        if needs_leaning([reply.value for reply in replies], labels):
            neutral = self._models.neutral(prompt, NOTHING_ASKED, pass_id=self._pass_id, stage=stage)
        return tuple(self._ruled(reply, neutral, labels) for reply in replies)

    def _ruled(self, reply: Reply[Choice], neutral: Choice | None, labels: tuple[str, ...]) -> Ruling:
        choice = reply.value
        if choice is None:
            return _omitted(reply)
        weighed = weigh(choice, neutral, labels)
        if weighed is None:
            label = choice.word if choice.word in labels else OUT
            return Ruling(label=label, reason=f"judged {choice.word}", call_id=reply.call_id)
        label = weighed.word if lets_in(weighed.score, self._threshold) else OUT
        said = f"judged {choice.word} ({choice.confidence:.2f})"
        if label != (choice.word if choice.word in labels else OUT):
            said += f", but {self._against(weighed)}"
        return Ruling(
            label=label,
            reason=said,
            call_id=reply.call_id,
            confidence=choice.confidence,
            weight=Weight(probability=weighed.probability, neutral=weighed.neutral, calibrated=weighed.score),
        )

    def _against(self, weighed: Weighed) -> str:
        """Why another word counts than the likeliest."""
        if weighed.neutral is None:
            return f"{weighed.word} ({weighed.probability:.2f}) counts from {self._threshold:.2f}"
        told = f"{weighed.word} has {weighed.probability:.2f} here and {weighed.neutral:.2f} about nothing"
        return told if self._threshold == EVEN else f"{told}, and counts from {self._threshold:.2f}"

    def _batches(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        inputs: Callable[[Sequence[Option]], BatchInputs],
    ) -> list[Sequence[Option]]:
        if not options:
            return []
        window = self._models.window(prompt).context - prompt.max_answer_tokens
        size = min(self._batch_size, len(options))
        while True:
            count = -(-len(options) // size)
            even = -(-len(options) // count)
            batches = [options[start : start + even] for start in range(0, len(options), even)]
            if even == 1 or all(self._models.measure(prompt, inputs(batch)) <= window for batch in batches):
                return batches
            size = even // 2


def frame_option(option: Option) -> str:
    """The option as a question about it alone shows it."""
    return frame(f"candidate: {quoted(option.name)}", option.text, fence_for((option.text,)))


class RememberingJudge:
    """Asks another judge, and nothing twice: a verdict holds until the question or what is shown of an option changes."""

    def __init__(self, judge: Judge, states: States, *, question: str) -> None:
        """`states` outlive a pass: they are those of the task."""
        self._judge = judge
        self._states = states
        self._question = question

    def sort(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Ruling, ...]:
        """As `Judge.sort`."""

        def ask(new: Sequence[Option]) -> tuple[Ruling, ...]:
            return self._judge.sort(prompt, new, labels=labels, stage=stage, chosen=chosen, remark=remark)

        return self._once(f"{prompt.name}\n{remark}", options, ask)

    def choose(
        self,
        prompt: Prompt[SingleInputs, Choice],
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
    ) -> tuple[Ruling, ...]:
        """As `Judge.choose`."""

        def ask(new: Sequence[Option]) -> tuple[Ruling, ...]:
            return self._judge.choose(prompt, new, labels=labels, stage=stage, chosen=chosen)

        return self._once(prompt.name, options, ask)

    def _once(
        self, kind: str, options: Sequence[Option], ask: Callable[[Sequence[Option]], Iterable[Ruling]]
    ) -> tuple[Ruling, ...]:
        keys = [self._key(kind, option) for option in options]
        known = {key: self._recall(key) for key in keys}
        new = [option for option, key in zip(options, keys, strict=True) if known[key] is None]
        if not new:
            asked: dict[str, Ruling] = {}
        else:
            asked = dict(zip((self._key(kind, option) for option in new), ask(new), strict=True))
        # At once: a run that goes on with some of them would ask about the others by another prompt.
        self._states.set_states(
            {
                key: RULING.dump_python(ruling, mode="json")
                for key, ruling in asked.items()
                if ruling.call_id is not None
            }
        )
        return tuple(known[key] or asked[key] for key in keys)

    def _key(self, kind: str, option: Option) -> str:
        content = json.dumps([kind, self._question, option.name, option.text])
        return f"verdict:{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()}"

    def _recall(self, key: str) -> Ruling | None:
        kept = self._states.get_state(key)
        return None if kept is None else RULING.validate_python(kept)


class ThresholdJudge:
    """Scores in place of a model's opinion, for `--no-model`; every ruling says so."""

    def __init__(self, *, threshold: float) -> None:
        self._threshold = threshold

    def sort(
        self,
        prompt: Prompt[BatchInputs, SortedT],  # noqa: ARG002 - the signature of Judge
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,  # noqa: ARG002
        chosen: tuple[str, ...] = (),  # noqa: ARG002
        remark: str = "",  # noqa: ARG002
    ) -> tuple[Ruling, ...]:
        """As `Judge.sort`: the first label from the threshold on, the others at even steps below it."""
        return tuple(self._rule(option, labels) for option in options)

    def choose(
        self,
        prompt: Prompt[SingleInputs, Choice],  # noqa: ARG002 - the signature of Judge
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,  # noqa: ARG002
        chosen: tuple[str, ...] = (),  # noqa: ARG002
    ) -> tuple[Ruling, ...]:
        """As `Judge.choose`: like `sort`."""
        return tuple(self._rule(option, labels) for option in options)

    def _rule(self, option: Option, labels: tuple[str, ...]) -> Ruling:
        for place, label in enumerate(labels):
            bound = self._threshold * (len(labels) - place) / len(labels)
            if option.score >= bound:
                return Ruling(
                    label=label, reason=f"{NO_MODEL}: score {option.score:.2f} is at least {bound:.2f}"
                )
        return Ruling(label=OUT, reason=f"{NO_MODEL}: score {option.score:.2f} is too low")


def _omitted(reply: Reply[Any]) -> Ruling:
    fault = reply.bad.fault if reply.bad is not None else "no answer"
    return Ruling(label=OUT, reason=f"left out: unreadable verdict ({fault})", call_id=reply.call_id)


def _rule(numbers: tuple[tuple[str, tuple[int, ...]], ...], count: int, call_id: int) -> list[Ruling]:
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
        Ruling(
            label=chosen.get(number, OUT),
            reason=(f"judged {chosen[number]}" if number in chosen else "judged not needed") + note,
            call_id=call_id,
        )
        for number in range(1, count + 1)
    ]


def take_best(
    options: Sequence[Option], rulings: Sequence[Ruling], label: str, *, threshold: float
) -> tuple[Ruling, ...]:
    """The rulings; where none lets anything in, with the best let in after all, and a reason that says so.

    As many as the ranking's own scores would let in from the threshold on, and at least one: by the model's calibrated
    score where it gave one, else by the ranking's.
    """
    if any(ruling.label for ruling in rulings):
        return tuple(rulings)

    def order(place: int) -> tuple[bool, float, float]:
        weight = rulings[place].weight
        return (weight is None, -weight.calibrated if weight else 0.0, -options[place].score)

    count = max(sum(option.score >= threshold for option in options), 1)
    best = sorted(range(len(options)), key=order)[:count]
    return tuple(
        replace(ruling, label=label, reason=f"{ruling.reason}; {_taken_by(ruling)}", taken=True)
        if place in best
        else ruling
        for place, ruling in enumerate(rulings)
    )


def _taken_by(ruling: Ruling) -> str:
    if ruling.call_id is None:
        return "nothing else is in: taken by rank"
    return f"all judged no: taken by {'rank' if ruling.weight is None else 'calibrated score'}"
