"""Counting the pieces that the Qwen pre-tokenizer cuts a text into: where an estimate of tokens begins."""

import math
import re
from collections import Counter

START_FACTOR = 1.3
FRAMING_TOKENS = 32
"""What a chat template puts around a system and a user message, rounded up."""
RUN_BYTES = 12
"""A longer run of letters (Chinese text, a hash, a very long name) is more than one token; so many bytes count as one."""
CUT_SHARE = 0.8
"""A count below this share of what hardly any tokeniser stays below is not one of the whole text."""
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
_LONG_RUN = re.compile(rf"{_LETTER}{{{RUN_BYTES // 3 + 1},}}")
_DIGIT_RUN = re.compile(r"\d+")


def pieces_of(text: str) -> Counter[str]:
    """Each piece of the text with how often it stands there."""
    return Counter(_PIECE.findall(text))


def count_pieces(text: str) -> int:
    """How many pieces the text falls into. A token never spans two, so for Qwen models this is a lower bound."""
    return len(_PIECE.findall(text))


def least_tokens(text: str) -> int:
    """What hardly any tokeniser stays below: the pieces, with three digits to a token."""
    runs = _DIGIT_RUN.findall(text)
    return count_pieces(text) - sum(len(run) - math.ceil(len(run) / DIGITS) for run in runs)


def can_be_all(counted: int, *texts: str) -> bool:
    """Whether a server that counted so many tokens can have read the texts whole."""
    return counted >= CUT_SHARE * sum(least_tokens(text) for text in texts)


def estimate(text: str, factor: float = START_FACTOR) -> int:
    """The tokens that the text is taken for, rounded up: never fewer than its pieces times the factor."""
    beyond = sum((len(run.encode("utf-8", "replace")) - 1) // RUN_BYTES for run in _LONG_RUN.findall(text))
    return math.ceil((count_pieces(text) + beyond) * factor)
