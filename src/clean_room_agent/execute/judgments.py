"""Asks a model for yes or no about each of several items, corrected for its bias; unreadable answers follow a rule."""

from collections.abc import Sequence
from typing import Final, Generic

from clean_room_agent.artifacts.plans import PlanVerdict
from clean_room_agent.llm.answers import NO, YES, Choice
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.probes import calibrate_choice, lets_in, needs_bias
from clean_room_agent.llm.prompt import InputsT, Prompt

EVEN: Final = 0.5
"""The probability, corrected for bias, above which a yes counts."""
WORDS = {True: YES, False: NO}


class YesNo(Generic[InputsT]):
    """Asks one question about several items in one pass, and about each item only once."""

    def __init__(
        self,
        models: ModelClient,
        prompt: Prompt[InputsT, Choice],
        *,
        pass_id: str,
        nothing: InputsT,
        unreadable: bool,
        rule: str,
        no_is_final: bool = False,
    ) -> None:
        """`nothing` are inputs without content, which show the model's bias. `unreadable` is the verdict for an
        unreadable answer, by this `rule`. `no_is_final`: an answer of no counts whatever the bias, where a wrong yes costs
        more than a wrong no.
        """
        self._models = models
        self._prompt = prompt
        self._pass_id = pass_id
        self._nothing = nothing
        self._unreadable = unreadable
        self._rule = rule
        self._no_is_final = no_is_final
        self._known: dict[tuple[str, str], PlanVerdict] = {}

    def ask(self, items: Sequence[tuple[str, Sequence[InputsT]]]) -> tuple[PlanVerdict, ...]:
        """The verdict on each item, in order. Of an item's inputs, which get shorter, the first that fit are used.

        Raises:
            WindowExceeded: the last inputs of an item do not fit.
            ModelError: the server failed.
        """
        chosen = [(item, self._fitting_inputs(ways)) for item, ways in items]
        keys = [(item, self._prompt.render(inputs)) for item, inputs in chosen]
        new = [(key, inputs) for key, (_, inputs) in zip(keys, chosen, strict=True) if key not in self._known]
        if new:
            replies = self._models.ask_each(
                self._prompt,
                [inputs for _, inputs in new],
                items=[key[0] for key, _ in new],
                pass_id=self._pass_id,
            )
            neutral = None
            if needs_bias([reply.value for reply in replies], (YES,)):
                neutral = self._models.neutral(self._prompt, self._nothing, pass_id=self._pass_id)
            for (key, _), reply in zip(new, replies, strict=True):
                self._known[key] = self._verdict_from_reply(key[0], reply, neutral)
        return tuple(self._known[key] for key in keys)

    def decided(self, item: str, *, yes: bool, reason: str) -> PlanVerdict:
        """The verdict on an item about which no model has to be asked."""
        return PlanVerdict(question=self._prompt.name, item=item, yes=yes, reason=reason)

    def _fitting_inputs(self, ways: Sequence[InputsT]) -> InputsT:
        package = self._models.window(self._prompt).context - self._prompt.max_answer_tokens
        fitting = (inputs for inputs in ways if self._models.measure(self._prompt, inputs) <= package)
        return next(fitting, ways[-1])

    def _verdict_from_reply(self, item: str, reply: Reply[Choice], neutral: Choice | None) -> PlanVerdict:
        choice, call = reply.value, reply.call_id
        if choice is None:
            fault = reply.bad.fault if reply.bad is not None else "no answer"
            reason = f"unreadable verdict ({fault}): {self._rule}"
            unread = self.decided(item, yes=self._unreadable, reason=reason)
            return unread.model_copy(update={"call_id": call, "readable": False})
        calibrated = calibrate_choice(choice, neutral, (YES,))
        if calibrated is None:
            plain = self.decided(item, yes=choice.word == YES, reason=f"judged {choice.word}")
            return plain.model_copy(update={"call_id": call})
        yes = lets_in(calibrated.score, EVEN) and not (self._no_is_final and choice.word == NO)
        reason = f"judged {choice.word} ({choice.confidence:.2f})"
        if WORDS[yes] != choice.word and calibrated.neutral is not None:
            reason += (
                f", but yes has {calibrated.probability:.2f} here and {calibrated.neutral:.2f} about nothing"
            )
        return PlanVerdict(
            question=self._prompt.name,
            item=item,
            yes=yes,
            reason=reason,
            call_id=call,
            confidence=choice.confidence,
            probability=calibrated.probability,
            neutral=calibrated.neutral,
            calibrated=calibrated.score,
        )
