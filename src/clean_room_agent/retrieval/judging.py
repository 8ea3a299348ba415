"""The two judges: a model, and score thresholds where no model is asked."""

from collections.abc import Sequence

from clean_room_agent.llm.answers import Verdict
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import BatchInputs, Option, Ruling, SingleInputs, SortedT

OUT = ""
NO_MODEL = "no model asked"


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
        remark: str = "",
    ) -> tuple[Ruling, ...]:
        """As `Judge.sort`; the options are spread evenly over as few calls as the window and the batch size allow.

        Raises:
            WindowExceeded: a single option does not fit beside the question.
        """
        batches = self._batches(prompt, options, remark)
        replies = self._models.ask_each(
            prompt,
            [self._inputs(batch, remark) for batch in batches],
            items=[f"{stage}:{number}" for number in range(len(batches))],
            pass_id=self._pass_id,
            stage=stage,
        )
        rulings: list[Ruling] = []
        for batch, reply in zip(batches, replies, strict=True):
            if reply.value is None:
                fault = reply.bad.fault if reply.bad is not None else "no answer"
                omitted = Ruling(
                    label=OUT, reason=f"left out: unreadable verdict ({fault})", call_id=reply.call_id
                )
                rulings.extend(omitted for _ in batch)
            else:
                rulings.extend(_rule(reply.value.numbers(), len(batch), reply.call_id))
        return tuple(rulings)

    def each(
        self, prompt: Prompt[SingleInputs, Verdict], options: Sequence[Option], *, label: str, stage: str
    ) -> tuple[Ruling, ...]:
        """As `Judge.each`; where probabilities are given, yes counts from the threshold on."""
        names = tuple(option.name for option in options)
        judged = self._models.judge(
            prompt,
            options,
            inputs=lambda option: SingleInputs(question=self._question, option=option.text, others=names),
            key=lambda option: option.key,
            pass_id=self._pass_id,
            stage=stage,
        )
        rulings: dict[str, Ruling] = {}
        for option, verdict, call_id in judged.verdicts:
            rulings[option.key] = Ruling(
                label=label if verdict.is_yes_from(self._threshold) else OUT,
                reason=self._words(verdict),
                call_id=call_id,
                confidence=verdict.confidence,
            )
        for option, bad, call_id in judged.omissions:
            rulings[option.key] = Ruling(
                label=OUT, reason=f"left out: unreadable verdict ({bad.fault})", call_id=call_id
            )
        return tuple(rulings[option.key] for option in options)

    def _words(self, verdict: Verdict) -> str:
        said = "yes" if verdict.yes else "no"
        if verdict.confidence is None:
            return f"judged {said}"
        if verdict.yes == verdict.is_yes_from(self._threshold):
            return f"judged {said} ({verdict.confidence:.2f})"
        return f"judged {said} ({verdict.confidence:.2f}), but yes counts from {self._threshold:.2f}"

    def _batches(
        self, prompt: Prompt[BatchInputs, SortedT], options: Sequence[Option], remark: str
    ) -> list[Sequence[Option]]:
        if not options:
            return []
        size = min(self._batch_size, len(options))
        while True:
            count = -(-len(options) // size)
            even = -(-len(options) // count)
            batches = [options[start : start + even] for start in range(0, len(options), even)]
            if even == 1 or all(self._fits(prompt, batch, remark) for batch in batches):
                return batches
            size = even // 2

    def _fits(self, prompt: Prompt[BatchInputs, SortedT], batch: Sequence[Option], remark: str) -> bool:
        need = self._models.measure(prompt, self._inputs(batch, remark)) + prompt.max_answer_tokens
        return need <= self._models.window(prompt).context

    def _inputs(self, batch: Sequence[Option], remark: str) -> BatchInputs:
        return BatchInputs(
            question=self._question, options=tuple(option.text for option in batch), remark=remark
        )


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
        remark: str = "",  # noqa: ARG002
    ) -> tuple[Ruling, ...]:
        """As `Judge.sort`: the first label from the threshold on, the others at even steps below it."""
        return tuple(self._rule(option, labels) for option in options)

    def each(
        self,
        prompt: Prompt[SingleInputs, Verdict],  # noqa: ARG002 - the signature of Judge
        options: Sequence[Option],
        *,
        label: str,
        stage: str,  # noqa: ARG002
    ) -> tuple[Ruling, ...]:
        """As `Judge.each`: yes from the threshold on."""
        return tuple(self._rule(option, (label,)) for option in options)

    def _rule(self, option: Option, labels: tuple[str, ...]) -> Ruling:
        for place, label in enumerate(labels):
            bound = self._threshold * (len(labels) - place) / len(labels)
            if option.score >= bound:
                return Ruling(
                    label=label, reason=f"{NO_MODEL}: score {option.score:.2f} is at least {bound:.2f}"
                )
        return Ruling(label=OUT, reason=f"{NO_MODEL}: score {option.score:.2f} is too low")


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
