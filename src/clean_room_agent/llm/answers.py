"""Reads a model's answer: a typed value, or a `ParseFault` that says what is wrong and is shown to the model once.

Nothing here raises.
"""

import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.edits import BLOCKS, CONTENTS
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, sourced
from clean_room_agent.llm.answer_rules import JsonSchema, strict_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

FaultKind = Literal[
    "empty", "truncated", "repeated", "copied", "not_json", "schema", "not_a_verdict", "format"
]
YES_NO_TOKENS = 3
"""Room for the answer of a yes/no prompt."""
MIN_VERDICT_MASS = 0.1
"""Below this share of yes and no among the likely tokens, the probabilities say nothing about the verdict."""
MAX_BRACES = 500
"""Each may be the beginning of an object, and reading on from each to the end takes the square of the text's length."""
MAX_FAULTS = 5
"""Schema faults named to the model; more would drown the first."""
AnswerT = TypeVar("AnswerT")
ModelT = TypeVar("ModelT", bound="BaseModel")
_THINKING = r"(?:think(?:ing)?|thoughts?|reasoning)"
_THOUGHTS = (
    (rf"<\|?(?:seed:)?{_THINKING}\|?>", r"</seed:think>"),
    (rf"\[{_THINKING}\]", rf"\[/{_THINKING}\]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    (
        rf"<\|(?:(?:start|begin)_(?:of_)?{_THINKING}|{_THINKING}_(?:start|begin))\|>",
        rf"<\|(?:end_(?:of_)?{_THINKING}|{_THINKING}_end)\|>(?:\s*<\|START_(?:RESPONSE|TEXT)\|>)?",
    ),
    (r"<\|channel>\s*thought", r"<channel\|>"),
    (r"<unused94>", r"<unused95>"),
    (r"Here is my thought process:", r"^Here is my response:[ \t]*$"),
    (r"(?-i:analysis(?=[A-Z]))", r"(?-i:assistantfinal)"),
    (
        r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?:analysis|commentary)",
        r"<\|channel\|>\s*final\b[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>|<\|start\|>\s*assistant\s*<\|message\|>",
    ),
)
"""How models' templates open and close thoughts; the last is gpt-oss's, whose answer is a channel of its own, and the one
that begins with `analysis` what is left of it where a server takes the marks out.
"""
_ALSO_CLOSED = rf"<(?:/\s*\|?|\|/)\s*(?:\w*{_THINKING}|thought_process|reflection|analysis|scratchpad|\w+_monologue)\s*\|?>"
"""How models close thoughts that templates open alike, or do not ask for: what those open may as well be text."""
_OPENED = re.compile(rf"\s*(?:{'|'.join(opening for opening, _ in _THOUGHTS)})", re.IGNORECASE)
_CLOSED = re.compile(
    "|".join([*(closing for _, closing in _THOUGHTS), _ALSO_CLOSED]), re.IGNORECASE | re.MULTILINE
)
_LEFT_OVER = re.compile(
    r"(?:\s*<\|(?:end|return|call|im_end|eot_id|endoftext|END_RESPONSE|END_OF_TURN_TOKEN)\|>)+\s*\Z"
)
"""Marks of an answer's end that some servers leave in it."""
_BLOCK_TAG = re.compile(
    rf"^[ \t]*<(/?)(?i:{'|'.join((*CONTENTS, *BLOCKS))}|replace)\b[^>\n]*?(/?)>", re.MULTILINE
)
_FENCE = re.compile(r"(?:^[ \t]*|[>\]])(?:`{3,}|~{3,})", re.MULTILINE)
THINKING_ONLY = "went into thinking, and no answer followed"
"""What the fault of an answer says that is thoughts alone."""
NO_THINKING = (
    'switch thinking off: at llama-server --reasoning-budget 0, for gpt-oss reasoning_effort = "low" in '
    "[models.extra_body], elsewhere an instruct variant of the model; if it thinks little, raise [models.max_tokens]"
)
"""What to do about it: requests ask for no thinking already, but not every template and server listens."""
MAX_MARKS = 50
"""Of closed thoughts that are looked at, from the last on."""
_DECORATION = " \t\r\n\"'`*_.,:;!-([{\u2581\u0120\u010a"
"""What may surround the word in a token; the last three are how some vocabularies write blank and line end."""
YES, NO = "yes", "no"
REPAIR_HEADING = "# An earlier answer to this could not be used"
QUOTED_CHARS = 1500
"""At most so much of the faulty answer is shown, in whole lines."""


class ParseFault(Struct, frozen=True, kw_only=True):
    """An answer that cannot be used. `fault` is written for the model that gave it."""

    kind: FaultKind
    fault: str

    @property
    def endless(self) -> bool:
        """Whether it was cut off because it repeated itself or copied the prompt's example."""
        return self.kind in {"repeated", "copied"}


class TokenChoice(Struct, frozen=True, kw_only=True):
    """One generated token, with the likeliest tokens at its position and their natural-log probabilities."""

    token: str
    top: tuple[tuple[str, float], ...]


class Choice(Struct, frozen=True, kw_only=True):
    """One of a prompt's words."""

    word: str
    shares: tuple[tuple[str, float], ...] = ()
    """Each of the words with its share in the probability of all of them together, in the prompt's order; empty where the
    server gave no probabilities.
    """

    @property
    def confidence(self) -> float | None:
        """The word's own share; None where the server gave no probabilities."""
        return dict(self.shares).get(self.word)


class AnswerReader(Struct, Generic[AnswerT], frozen=True):
    """How a prompt's answer is requested and read."""

    wants_logprobs: ClassVar[bool] = False
    """Whether `read` can use token probabilities."""
    reads_cut_answers: ClassVar[bool] = False
    """Whether an answer that was cut off by its length limit can still be complete."""
    repairs_truncated: ClassVar[bool] = False
    """Whether to ask again, for something shorter, after an answer was cut off by its limit."""

    @property
    def schema(self) -> JsonSchema | None:
        """The JSON schema that the server must hold the answer to; None for free text."""
        return None

    @property
    def grammar(self) -> str:
        """The same for free text, in GBNF, for servers that accept it; "" if its form is free or depends on the prompt."""
        return ""

    @abstractmethod
    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT | ParseFault:
        """Parse the answer into a value, or say what is wrong with it."""


class JsonAnswer(AnswerReader[ModelT], Generic[ModelT], frozen=True):
    """An object of the given pydantic model. Surrounding prose and fences, and any order of keys, are accepted."""

    model: type[ModelT]
    repairs_truncated: ClassVar[bool] = True

    @property
    def schema(self) -> JsonSchema:
        """The model's JSON schema, strict."""
        return strict_schema(self.model)

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> ModelT | ParseFault:  # noqa: ARG002 - AnswerReader's signature
        """The first object that fits the model, or the faults of the first object if none does."""
        shown = visible(text)
        if not shown:
            return ParseFault(kind="empty", fault=_why_empty(text))
        first_fault: ParseFault | None = None
        for start, end in _object_spans(shown):
            value = self._validate_json(shown[start:end])
            if not isinstance(value, ParseFault):
                return value
            first_fault = first_fault or value
        return first_fault or ParseFault(kind="not_json", fault=_why_not_json(shown))

    def _validate_json(self, candidate: str) -> ModelT | ParseFault:
        from pydantic import ValidationError

        try:
            return self.model.model_validate_json(candidate.encode("utf-8", "replace"))
        except ValidationError as exc:
            errors = exc.errors(include_url=False, include_context=False)
            faults = [
                f"{'.'.join(str(part) for part in error['loc']) or 'answer'}: {error['msg']}"
                for error in errors
            ]
            more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
            return ParseFault(kind="schema", fault="; ".join(faults[:MAX_FAULTS]) + more)


class OneWord(AnswerReader[Choice], frozen=True):
    """One of a few words: by token probabilities if they are given and clear, else by the word itself.

    The words begin differently, so that the first token tells them apart.
    """

    words: tuple[str, ...]
    wants_logprobs: ClassVar[bool] = True
    reads_cut_answers: ClassVar[bool] = True
    repairs_truncated: ClassVar[bool] = True

    @property
    def grammar(self) -> str:
        """Allow only the words, also capitalised.

        Probabilities are still those of all tokens: a grammar selects after they are computed.
        """
        forms = [form for word in self.words for form in (word, word.capitalize())]
        return f"root ::= {' | '.join(map(json.dumps, forms))}\n"

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> Choice | ParseFault:
        """The word of the first token that is not white space, else of the text."""
        weighed = _weigh_words(_tokens_from(tokens, text, answer_span(text)[0]), self.words)
        if weighed is not None:
            return weighed
        shown = visible(text)
        listed = f"{', '.join(self.words[:-1])} or {self.words[-1]}"
        if not shown:
            return ParseFault(kind="empty", fault=f"{_why_empty(text)}; answer {listed}")
        any_word = "|".join(self.words)
        leading = re.match(rf"[\W_]*({any_word})\b", shown, re.IGNORECASE)
        found = [leading[1]] if leading else re.findall(rf"\b({any_word})\b", shown, re.IGNORECASE)
        said = {word.lower() for word in found}
        if len(said) == 1:
            return Choice(word=said.pop())
        return ParseFault(kind="not_a_verdict", fault=f"the answer must be one word: {listed}")


YES_OR_NO: Final = OneWord((YES, NO))


class TextAnswer(AnswerReader[AnswerT], Generic[AnswerT], frozen=True):
    """Free text, read by a function of the prompt; it must return a `ParseFault` rather than raise."""

    parse: Callable[[str], AnswerT | ParseFault]

    def read(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT | ParseFault:  # noqa: ARG002 - AnswerReader's signature
        """Apply the function to the text behind the thoughts."""
        if not visible(text):
            return ParseFault(kind="empty", fault=_why_empty(text))
        start, end = answer_span(text)
        return self.parse(text[start:end])


def visible(text: str) -> str:
    """The answer without thoughts, and without surrounding white space."""
    start, end = answer_span(text)
    return text[start:end].strip().removeprefix("\ufeff").strip()


def thinks(text: str, thinking: str) -> bool:
    """Whether an answer begins with thinking, apart or in its text."""
    return bool(thinking.strip()) or _OPENED.match(text) is not None


def answer_span(text: str) -> tuple[int, int]:
    """Where the answer in a model's text begins and ends, as character offsets: behind the last mark that closes a thought,
    whether or not one opened it (a template may have written that), and before left-over marks of its end. Of a text that
    opens a thought and never closes it, the blocks are the answer with which it ends, if there are no others.

    Marks inside of what an answer may quote are text: in an edit, a JSON string, a code block, or quotes.
    """
    left_over = _LEFT_OVER.search(text, max(0, len(text) - 200))
    end = left_over.start() if left_over else len(text)
    closed = list(_CLOSED.finditer(text, 0, end))[-MAX_MARKS:]
    objects = list(_object_spans(text[:end])) if closed else []
    for mark in reversed(closed):
        if not _is_quoted(text[:end], mark.start(), mark.end(), objects):
            return mark.end(), end
    opened = _OPENED.match(text)
    return (_blocks_at_end(text[:end], opened.end()) if opened else 0), end


def _blocks_at_end(text: str, thought: int) -> int:
    """Where the edits, JSON objects and code blocks begin, each on a line of its own, with which the thought from the offset on ends;
    the text's end if there are none, or if one stands apart, which may be a draft.
    """
    start = len(text)
    for begin, end in reversed(
        list(_outermost_spans([*_tagged_spans(text), *_fenced_spans(text), *_object_spans(text)]))
    ):
        before = text[max(thought, text.rfind("\n", 0, begin)) : begin]
        if text[end:start].strip() or before.strip():
            return len(text)
        start = begin
    return start


def _outermost_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans that begin in no other, in order."""
    behind = 0
    for begin, end in sorted(spans):
        if begin >= behind:
            yield begin, end
            behind = end


def _tagged_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the blocks of edits begin and end."""
    depth = begin = 0
    for tag in _BLOCK_TAG.finditer(text):
        begin = begin if depth else tag.start()
        depth = max(depth + (0 if tag[2] else -1 if tag[1] else 1), 0)
        if not depth:
            yield begin, tag.end()


def _fenced_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the blocks of code begin and end."""
    marks = list(_FENCE.finditer(text))
    for opening, closing in zip(marks[::2], marks[1::2], strict=False):
        yield opening.start(), closing.end()


def _is_quoted(text: str, start: int, end: int, objects: list[tuple[int, int]]) -> bool:
    """Whether the mark between the offsets stands in a block or a string of the text."""
    if any(begin < start < close for begin, close in objects):
        return True
    depth, rest = 0, text[end:]
    for tag in _BLOCK_TAG.finditer(rest):
        depth += 0 if tag[2] else -1 if tag[1] else 1
        if depth < 0:
            return True
    fences = (len(_FENCE.findall(text, 0, start)), len(_FENCE.findall(rest)))
    if all(count % 2 for count in fences):
        return True
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = rest.partition("\n")[0]
    return any(before.count(quote) % 2 and quote in after for quote in '"`') or (
        before.endswith("'") and after.startswith("'")
    )


def thinking_only(tokens: int | None) -> str:
    """The fault of an answer that is thoughts alone."""
    return (
        f"{'the whole answer' if (tokens or 0) < 2 else f'all {tokens} tokens of the answer'} {THINKING_ONLY}"
    )


def _why_empty(text: str) -> str:
    return thinking_only(None) if text.strip() else "the answer is empty"


def _tokens_from(tokens: tuple[TokenChoice, ...], text: str, start: int) -> tuple[TokenChoice, ...]:
    """The tokens of the text from the offset on; none if it cannot be told which these are."""
    if not start:
        return tokens
    place = 0
    for index, choice in enumerate(tokens):
        if place >= start:
            return tokens[index:]
        if not text.startswith(choice.token, place):
            break
        place += len(choice.token)
    return ()


def _object_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost JSON objects of the text begin and end; stops after looking at `MAX_BRACES`."""
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
            yield start, end
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


def _weigh_words(tokens: tuple[TokenChoice, ...], words: tuple[str, ...]) -> Choice | None:
    """The likeliest word at the first token that says something, else at the first that is one of the words; None where
    the probabilities say nothing about the words, or two are as likely.
    """
    telling = [choice for choice in tokens if choice.token.strip(_DECORATION)]
    telling = telling[:1] + [choice for choice in telling[1:] if _bare_word(choice.token) in words][:1]
    for choice in telling:
        mass = dict.fromkeys(words, 0.0)
        for token, logprob in choice.top:
            bare = _bare_word(token)  # the word itself or, from two letters on, how it begins
            begun = [word for word in words if len(bare) > 1 and word.startswith(bare)]
            if len(begun) == 1:
                mass[begun[0]] += math.exp(min(logprob, 0.0))
        total, best = sum(mass.values()), max(mass.values())
        likeliest = [word for word, share in mass.items() if share == best]
        if total >= MIN_VERDICT_MASS and len(likeliest) == 1:
            shares = tuple((word, share / total) for word, share in mass.items())
            return Choice(word=likeliest[0], shares=shares)
    return None


def _bare_word(token: str) -> str:
    return token.strip(_DECORATION).lower()


def repair_prompt(original: SourcedText, answer: str, bad: ParseFault, *, max_tokens: int) -> SourcedText:
    """The original prompt, unchanged so that a server's prefix cache applies, then the bad answer and its fault."""
    # A repetition or a copy is not shown again: it is what the model would pick up most readily.
    quoted = "" if bad.kind in {"copied", "repeated"} else quote_lines(answer)
    shown = ("The answer was:\n\n", sourced(quoted, PromptSource.REFUSED), "\n\n") if quoted else ()
    wish = "in the form asked for above and without this fault"
    if bad.kind in {"truncated", "repeated"}:
        wish = f"complete and shorter: at most {max_tokens} tokens"
    fault = sourced(f"What was wrong: {bad.fault}. Answer again, {wish}.", PromptSource.REFUSED)
    return compose((original, f"\n\n{REPAIR_HEADING}\n\n", *shown, fault))


def quote_lines(text: str, *, limit: int = QUOTED_CHARS) -> str:
    """The first whole lines of the text that fit `limit`, each after `> `, and how many lines are left out."""
    lines = text.strip().splitlines()
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 3
        if used > limit:
            break
        kept.append(f"> {line}")
    left = len(lines) - len(kept)
    if left:
        kept.append(f"({counted(left, 'more line')} left out)")
    return "\n".join(kept)
