"""Estimates how many tokens a model makes of a text, erring on the high side.

At first by the pieces that the Qwen pre-tokenizer cuts it into, times a factor; later by a fit to the model's calls.

An ordinary piece is about one token, but a piece may be as long as the text: a line of marks, blanks, letters. So each has
a worst case (`piece_tokens`), as the merges of byte-pair vocabularies allow it. A vocabulary has tokens for long runs of the
few characters that people draw lines with, and for indentation: 16 to 128 of them in Qwen 2.5's, at least 16 in smaller ones.
Runs of brackets and quotes it merges in pairs, random letters and marks by about two, and what it has no merges for costs a
token for each byte, which is the most that any vocabulary with byte fallback can need.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Protocol

from msgspec import Struct

START_FACTOR = 1.3
FRAMING_TOKENS = 32
"""What a chat template puts around a system and a user message, rounded up."""
FREE_TOKENS = 1
"""Of a piece's worst case: two line ends, a quote of three marks, `"])` are one token."""
WORD_CHARS, CAPITALS, LONG_WORD_CHARS = 8, 4, 16
"""Letters and capital letters that one token may have; from there to the last bound, four more are a token, beyond that, two."""
RULERS = frozenset("#*-/=._~+")
LEAST_RULER = 8
RULER_CHARS = 16
"""Of a run of one of `RULERS`, or of blanks, in a token."""
TAB_CHARS = 4
BOX_LINE = "\u2500"
BOX_LINE_CHARS = 4
EVERYDAY_BYTES = 3
"""Of a character of `EVERYDAY` in a token."""
EVERYDAY = re.compile(
    "[\u00a0-\u024f\u0370-\u052f\u05d0-\u065f\u066e-\u06ff\u0900-\u0965\u0e00-\u0e7f\u2010-\u2027\u2190-\u21ff\u2500-\u25ff\u3000-\u30ff"
    "\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef\U0001f300-\U0001faff]"
)
"""Scripts and signs that vocabularies have merges for."""
FITTED_TOKENS = 4.0
"""Up to this worst case, a fit knows better what a piece costs."""
CACHED_CHARS = 64
CUT_SHARE = 0.8
"""A count below this share of what hardly any tokeniser stays below is not one of the whole text."""
LEAST_PAIRS = 50
"""Calls from which a calibration is made; below that, the start factor is safer."""
FULL_PAIRS = 200
"""From so many on, a calibration's margin may be as small as it gets."""
DIGITS = 3
"""Some tokenisers take so many digits together."""
_LETTER = r"[^\W\d_]"
_PIECE = re.compile(
    r"(?i:'(?:s|t|re|ve|m|ll|d))"
    rf"|(?:[^\w\r\n]|_)?{_LETTER}+"
    r"|\d"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
_SAME = re.compile(r"(?:\r\n)+|(.)\1*", re.DOTALL)
_DIGIT_RUN = re.compile(r"\d+")
KINDS = (
    "bare",
    "spaced",
    "marked",
    "hump",
    "letter_5",
    "letter_8",
    "letter_11",
    "foreign",
    "digit",
    "mark",
    "mark_3",
    "line",
    "blank",
    "blank_5",
    "frame",
)
"""What a text is counted as. A run of letters alone, after a blank or after another character; each further hump of
camelCase; each letter of a hump from the fifth, eighth and eleventh on; three bytes of other scripts; a digit; a run of
other characters, and each of them from the third on; a line's end; blanks, and five and more of them; and, once for a
request, what the chat template puts around it."""
FRAME = KINDS.index("frame")
WORD_LETTERS = 4
"""Runs of letters from this length on may have a cost of their own."""
COSTS_KEPT = 200_000
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]")


def pieces_of(text: str) -> Counter[str]:
    """Each piece of the text with its number of occurrences."""
    return Counter(_PIECE.findall(text))


def count_pieces(text: str) -> int:
    """Number of pieces in the text. A token never spans two, so for Qwen models this is a lower bound."""
    return len(_PIECE.findall(text))


def least_tokens(text: str) -> int:
    """A number that hardly any tokeniser stays below: the pieces, with three digits to a token."""
    runs = _DIGIT_RUN.findall(text)
    return count_pieces(text) - sum(len(run) - math.ceil(len(run) / DIGITS) for run in runs)


def can_be_all(counted: int, *texts: str) -> bool:
    """Whether a server that counted so many tokens can have read all of the texts."""
    return counted >= CUT_SHARE * sum(least_tokens(text) for text in texts)


def estimate(text: str, factor: float = START_FACTOR) -> int:
    """Estimated tokens of the text, rounded up: the worst case of its pieces, at least one token each, times the factor."""
    return math.ceil(sum(times * piece_tokens(piece) for piece, times in pieces_of(text).items()) * factor)


def piece_tokens(piece: str) -> float:
    """Tokens of the piece in the worst case, at least 1; low only for words of up to 16 letters that no language has."""
    return _piece_tokens(piece) if len(piece) <= CACHED_CHARS else _piece_tokens.__wrapped__(piece)


@lru_cache(maxsize=1 << 16)
def _piece_tokens(piece: str) -> float:
    letters = _letters(piece)
    if letters and letters.isascii():
        before = piece[: -len(letters)]
        return sum(map(_word_tokens, _HUMP.findall(letters))) + (
            0.0 if before.isascii() else _marks_tokens(before)
        )
    return max(1.0, _marks_tokens(piece) - (FREE_TOKENS if len(piece) > 1 else 0))


def _word_tokens(word: str) -> float:
    size = len(word)
    between = max(0, min(size, LONG_WORD_CHARS) - (CAPITALS if word.isupper() else WORD_CHARS))
    return 1 + between / 4 + max(0, size - LONG_WORD_CHARS) / 2


def _marks_tokens(text: str) -> float:
    return sum(_run_tokens(found[1] or "\n", len(found[0]), found[0]) for found in _SAME.finditer(text))


def _run_tokens(character: str, times: int, run: str) -> float:
    """Tokens of one character repeated; a line's end may be two."""
    if run.startswith("\r\n"):
        return times / 4
    if character in RULERS and times >= LEAST_RULER:
        return max(1.0, times / RULER_CHARS)
    if character in " \t":
        return max(0.5, times / (TAB_CHARS if character == "\t" else RULER_CHARS))
    if character.isascii():
        return times / 2 if character.isprintable() or character == "\n" else times
    if character == BOX_LINE and times >= LEAST_RULER:
        return times / BOX_LINE_CHARS
    size = len(character.encode("utf-8", "surrogatepass"))
    return times * size / (EVERYDAY_BYTES if EVERYDAY.match(character) else 1)


class TokenEstimator(Protocol):
    """Stands in for a model's tokeniser."""

    def count(self, text: str) -> int:
        """Tokens of the text, erring on the high side."""

    def request(self, system: str, prompt: str) -> int:
        """Tokens of a whole request, including framing but not the answer."""


class InitialEstimator(Struct, frozen=True, kw_only=True):
    """For a model with too few known calls: the pieces' worst cases times a factor."""

    factor: float = START_FACTOR

    def count(self, text: str) -> int:
        """The worst case of the text's pieces, times the factor."""
        return estimate(text, self.factor)

    def request(self, system: str, prompt: str) -> int:
        """Both texts, and what a chat template usually adds."""
        return self.count(system) + self.count(prompt) + FRAMING_TOKENS


class FittedEstimator(Struct, frozen=True, kw_only=True, dict=True):
    """Fitted to calls of the model (see `calibration.py`): tokens per kind, with corrections for some words, and no piece far
    below its worst case.
    """

    weights: tuple[float, ...]
    """Tokens for one of each of `KINDS`."""
    words: tuple[tuple[str, float], ...]
    """Words of the logged prompts, with what each costs beside its kinds; sorted."""
    margin: float
    """Above 1: what the fit gives is multiplied with it."""
    pairs: int
    """Calls that it was fitted to."""
    calibration_id: int = 0
    """Of its row in the record; 0 where it has none."""

    @cached_property
    def _extra(self) -> dict[str, float]:
        return dict(self.words)

    @cached_property
    def _costs(self) -> dict[str, float]:
        """Of the pieces counted so far."""
        return {}

    def count(self, text: str) -> int:
        """The fit for the text, times the margin."""
        return math.ceil(self.margin * self._fitted(text))

    def request(self, system: str, prompt: str) -> int:
        """Both texts and the chat template, as fitted, times the margin."""
        fitted = self._fitted(system) + self._fitted(prompt) + self.weights[FRAME]
        return math.ceil(self.margin * fitted)

    def _fitted(self, text: str) -> float:
        costs = self._costs
        if len(costs) > COSTS_KEPT:
            costs.clear()
        total = 0.0
        for piece, times in pieces_of(text).items():
            cost = costs.get(piece)
            if cost is None:
                cost = costs[piece] = self._cost(piece)
            total += times * cost
        return total

    def _cost(self, piece: str) -> float:
        own = sum(self.weights[kind] * amount for kind, amount in kinds_of(piece))
        return max(0.0, own + self._extra.get(word_of(piece), 0.0), piece_tokens(piece) - FITTED_TOKENS)


def features(texts: Iterable[str]) -> tuple[list[float], Counter[str]]:
    """How much of each kind a request's texts contain, including its frame, and how often each word."""
    amounts = [0.0] * len(KINDS)
    amounts[FRAME] = 1.0
    words: Counter[str] = Counter()
    for text in texts:
        for piece, times in pieces_of(text).items():
            for kind, amount in kinds_of(piece):
                amounts[kind] += times * amount
            if word := word_of(piece):
                words[word] += times
    return amounts, words


def word_of(piece: str) -> str:
    """The piece's letters, if they are a word that may have a cost of its own; else ""."""
    letters = _letters(piece)
    return letters if len(letters) >= WORD_LETTERS else ""


@lru_cache(maxsize=1 << 16)
def kinds_of(piece: str) -> tuple[tuple[int, float], ...]:
    """What the piece counts as: (position in `KINDS`, amount) of those above 0."""
    letters = _letters(piece)
    if letters:
        found = _word_kinds(piece, letters)
    elif piece.isspace():
        line = "\n" in piece or "\r" in piece
        found = {"line": 1.0} if line else {"blank": 1.0, "blank_5": float(len(piece) > 4)}
    elif piece.isdigit():
        found = {"digit": 1.0}
    else:
        shown = piece.strip()
        found = {"mark": 1.0, "mark_3": max(0.0, len(shown) - 2.0), "foreign": _foreign(shown)}
    return tuple((KINDS.index(kind), amount) for kind, amount in found.items() if amount)


def _word_kinds(piece: str, letters: str) -> dict[str, float]:
    first = "bare" if piece == letters else "spaced" if piece[0] == " " else "marked"
    foreign = _foreign(letters)
    if foreign:
        return {first: 1.0, "foreign": foreign}
    humps = [len(hump) for hump in _HUMP.findall(letters) if len(hump) == 1 or not hump.isupper()]
    return {
        first: 1.0,
        "hump": len(_HUMP.findall(letters)) - 1.0,
        "letter_5": float(sum(max(0, min(size, 7) - 4) for size in humps)),
        "letter_8": float(sum(max(0, min(size, 10) - 7) for size in humps)),
        "letter_11": float(sum(max(0, size - 10) for size in humps)),
    }


def _letters(piece: str) -> str:
    letters = piece if piece[:1].isalpha() else piece[1:]
    return letters if letters.isalpha() else ""


def _foreign(text: str) -> float:
    return 0.0 if text.isascii() else len(text.encode("utf-8", "replace")) / 3
