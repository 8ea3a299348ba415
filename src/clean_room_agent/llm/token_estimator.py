"""Estimates how many tokens a model makes of a text, erring on the high side.

By the pieces that the Qwen pre-tokenizer cuts it into, times a factor: one for all models until enough of a model's calls
are known, then the one that these calls needed (`factor_of_calls`).

An ordinary piece is about one token, but a piece may be as long as the text: a line of marks, blanks, letters. So each has
a worst case (`piece_tokens`), as the merges of byte-pair vocabularies allow it. A vocabulary has tokens for long runs of the
few characters that people draw lines with, and for indentation: 16 to 128 of them in Qwen 2.5's, at least 16 in smaller ones.
Runs of brackets and quotes it merges in pairs, random letters and marks by about two, and what it has no merges for costs a
token for each byte, which is the most that any vocabulary with byte fallback can need.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

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
CACHED_CHARS = 64
CUT_SHARE = 0.8
"""A count below this share of what hardly any tokeniser stays below is not one of the whole text."""
LEAST_CALLS = 50
"""Calls of a model from which its own factor is learned; with fewer, the start factor is safer."""
QUANTILE, MARGIN = 0.99, 1.03
"""The share of known calls that the learned factor is enough for, and what is added for those not known yet."""
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


class TokenEstimator(Struct, frozen=True, kw_only=True):
    """Stands in for a model's tokeniser: the pieces' worst cases times a factor."""

    factor: float = START_FACTOR

    def count(self, text: str) -> int:
        """Tokens of the text, erring on the high side."""
        return estimate(text, self.factor)

    def request(self, system: str, prompt: str) -> int:
        """Tokens of a whole request, including what a chat template usually adds but not the answer."""
        return self.count(system) + self.count(prompt) + FRAMING_TOKENS


def factor_of_calls(needed: Sequence[float]) -> float | None:
    """The factor for a model whose calls needed these; None if there are too few to tell.

    Never below 1, so that the worst case of a text stays its worst case.
    """
    if len(needed) < LEAST_CALLS:
        return None
    most = sorted(needed)[math.ceil(QUANTILE * len(needed)) - 1]
    return max(1.0, math.ceil(most * MARGIN * 100) / 100)


def _letters(piece: str) -> str:
    letters = piece if piece[:1].isalpha() else piece[1:]
    return letters if letters.isalpha() else ""
