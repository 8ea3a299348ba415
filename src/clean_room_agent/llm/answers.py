"""Reading a model's answer: a typed value, or a `BadAnswer` that says what is wrong with it. Nothing here raises."""

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

BadKind = Literal["empty", "truncated", "not_json", "schema", "not_a_verdict", "format"]
JsonSchema = Mapping[str, Any]

YES_NO_TOKENS = 3
"""Room for the answer of a yes/no prompt."""
MIN_VERDICT_MASS = 0.1
"""Below this share of yes and no among the likely tokens, the probabilities say nothing about the verdict."""
VERDICT_SCHEMA_TOKENS = 24
"""Room for a verdict as an object: a server lets white space come before each of its parts."""
VERDICT_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
VERDICT_SCHEMA_WORDS = ' Write {"verdict": "yes"} or {"verdict": "no"}.'
"""The schema in words: a server does not show it to the model."""
MAX_BRACES = 500
"""Each may be the beginning of an object, and reading on from each to the end takes the square of the text's length."""
MAX_FAULTS = 5
"""Schema faults named to the model; more would drown the first."""

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
ModelT = TypeVar("ModelT", bound=BaseModel)

_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_LEADING_VERDICT = re.compile(r"[\W_]*(yes|no)\b", re.IGNORECASE)
_WORDS = ("yes", "no")
_ANY_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_DECORATION = " \t\r\n\"'`*_.,:;!-([{\u2581\u0120\u010a"
"""What may stand around the word in a token; the last three are how some vocabularies write blank and line end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadAnswer:
    """An answer that cannot be used. `fault` is written for the model that gave it."""

    kind: BadKind
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChoice:
    """One generated token, with the likeliest tokens at its place and their natural-log probabilities."""

    token: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A yes or a no. `confidence`: the share of this verdict in the probability of yes and no together
    (0.5 to 1); None where the server gave no probabilities.
    """

    yes: bool
    confidence: float | None

    def is_yes_from(self, threshold: float) -> bool:
        """Whether the probability of yes is at least `threshold`; without probabilities, whether the word was yes."""
        if self.confidence is None:
            return self.yes
        return (self.confidence if self.yes else 1 - self.confidence) >= threshold


class AnswerReader(Protocol[AnswerT_co]):
    """How the answer of a prompt is asked for and read."""

    @property
    def schema(self) -> JsonSchema | None:
        """What the server must hold the answer to; None for free text."""

    @property
    def wants_logprobs(self) -> bool:
        """Whether `read` can use token probabilities."""

    @property
    def reads_cut_answers(self) -> bool:
        """Whether an answer that ended for length can still be whole."""

    @property
    def repairs_truncated(self) -> bool:
        """Whether asking again, for something shorter, is of use when an answer ended for length."""

    @property
    def repair_schema(self) -> JsonSchema | None:
        """What a repair of free text may be held to, where the configuration wants that; None for the same as before."""

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT_co | BadAnswer:
        """The value that the answer holds, or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class JsonAnswer(Generic[ModelT]):
    """An object of the given pydantic model. Prose and fences around it, and any order of its keys, are fine."""

    model: type[ModelT]
    wants_logprobs: bool = field(default=False, init=False)
    reads_cut_answers: bool = field(default=False, init=False)
    repairs_truncated: bool = field(default=True, init=False)
    repair_schema: JsonSchema | None = field(default=None, init=False)

    @property
    def schema(self) -> JsonSchema:
        """The model's JSON schema."""
        return _schema_of(self.model)

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> ModelT | BadAnswer:  # noqa: ARG002 - AnswerReader's signature
        """The first object of the answer that has the model's shape; the faults of the first object if none has."""
        shown = visible(text)
        if not shown:
            return BadAnswer(kind="empty", fault="the answer is empty")
        first_fault: BadAnswer | None = None
        for candidate in _objects(shown):
            value = self._validate(candidate)
            if not isinstance(value, BadAnswer):
                return value
            first_fault = first_fault or value
        return first_fault or BadAnswer(kind="not_json", fault=_why_not_json(shown))

    def _validate(self, candidate: str) -> ModelT | BadAnswer:
        try:
            return self.model.model_validate_json(candidate.encode("utf-8", "replace"))
        except ValidationError as exc:
            errors = exc.errors(include_url=False, include_context=False)
            faults = [
                f"{'.'.join(str(part) for part in error['loc']) or 'answer'}: {error['msg']}"
                for error in errors
            ]
            more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
            return BadAnswer(kind="schema", fault="; ".join(faults[:MAX_FAULTS]) + more)


@dataclass(frozen=True, slots=True)
class YesNo:
    """A verdict, from the token probabilities where they are given and clear, else from the word."""

    schema: JsonSchema | None = field(default=None, init=False)
    wants_logprobs: bool = field(default=True, init=False)
    reads_cut_answers: bool = field(default=True, init=False)
    repairs_truncated: bool = field(default=True, init=False)

    @property
    def repair_schema(self) -> JsonSchema:
        """An object with the word in it."""
        return VERDICT_SCHEMA

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> Verdict | BadAnswer:
        """The verdict of the first token that is not white space, else of the word."""
        verdict = _weigh(tokens)
        if verdict is not None:
            return verdict
        shown = visible(text)
        if not shown:
            return BadAnswer(kind="empty", fault="the answer is empty; answer yes or no")
        leading = _LEADING_VERDICT.match(shown)
        words = {leading[1].lower()} if leading else {word.lower() for word in _ANY_VERDICT.findall(shown)}
        if len(words) == 1:
            return Verdict(yes=words == {"yes"}, confidence=None)
        return BadAnswer(kind="not_a_verdict", fault="the answer must be one word: yes or no")


@dataclass(frozen=True, slots=True)
class TextAnswer(Generic[AnswerT]):
    """Free text, read by a function of the prompt's own; it must return a `BadAnswer` rather than raise."""

    parse: Callable[[str], AnswerT | BadAnswer]
    schema: JsonSchema | None = field(default=None, init=False)
    wants_logprobs: bool = field(default=False, init=False)
    reads_cut_answers: bool = field(default=False, init=False)
    repairs_truncated: bool = field(default=False, init=False)
    repair_schema: JsonSchema | None = field(default=None, init=False)

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT | BadAnswer:  # noqa: ARG002 - AnswerReader's signature
        """What the function makes of the text, without a leading block of thinking."""
        if not visible(text):
            return BadAnswer(kind="empty", fault="the answer is empty")
        return self.parse(_THINKING.sub("", text, count=1) if text.lstrip().startswith("<think>") else text)


def visible(text: str) -> str:
    """The answer without a leading block of thinking and without surrounding white space."""
    thinking = _THINKING.match(text)
    return (text[thinking.end() :] if thinking else text).strip().removeprefix("\ufeff")


@functools.cache
def _schema_of(model: type[BaseModel]) -> JsonSchema:
    # Built in milliseconds each time otherwise, and every call needs it three times.
    return model.model_json_schema()


def _objects(text: str) -> Iterator[str]:
    """The outermost JSON objects of the text, in order, as they are written; none after `MAX_BRACES` looked at."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(MAX_BRACES):
        if start == -1:
            return
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield text[start:end]
        start = text.find("{", end)


def _why_not_json(text: str) -> str:
    start = text.find("{")
    if start == -1:
        return "the answer holds no JSON object"
    try:
        json.loads(text[start:])
    except json.JSONDecodeError as exc:
        return f"not valid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno} of the object"
    except (ValueError, RecursionError) as exc:
        return f"not usable JSON: {exc}"
    return "the answer holds no JSON object"


def _weigh(tokens: tuple[TokenChoice, ...]) -> Verdict | None:
    """The verdict of the first token that says something, else of the first that is a verdict itself."""
    said = [choice for choice in tokens if choice.token.strip(_DECORATION)]
    later = [choice for choice in said[1:] if _word(choice.token) in _WORDS][:1]
    verdicts = (_verdict_at(choice) for choice in said[:1] + later)
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _verdict_at(choice: TokenChoice) -> Verdict | None:
    mass = dict.fromkeys(_WORDS, 0.0)
    for token, logprob in choice.top:
        if _word(token) in mass:
            mass[_word(token)] += math.exp(min(logprob, 0.0))
    both = mass["yes"] + mass["no"]
    if both < MIN_VERDICT_MASS or mass["yes"] == mass["no"]:
        return None
    yes = mass["yes"] > mass["no"]
    return Verdict(yes=yes, confidence=max(mass.values()) / both)


def _word(token: str) -> str:
    return token.strip(_DECORATION).lower()
