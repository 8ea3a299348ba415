"""Estimating tokens without a tokeniser: pieces of the Qwen pre-tokeniser, times a factor."""

import math
import re

START_FACTOR = 1.3
FRAMING_TOKENS = 32
"""What a chat template puts around a system and a user message, rounded up."""
RUN_BYTES = 12
"""A longer run of letters (Chinese text, a hash, a very long name) is more than one token; so many bytes count as one."""

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


def count_pieces(text: str) -> int:
    """How many pieces the text falls into. A token never spans two, so for Qwen models this is a lower bound."""
    return len(_PIECE.findall(text))


def estimate(text: str, factor: float = START_FACTOR) -> int:
    """The tokens that the text is taken for, rounded up: never fewer than its pieces times the factor."""
    beyond = sum((len(run.encode("utf-8", "replace")) - 1) // RUN_BYTES for run in _LONG_RUN.findall(text))
    return math.ceil((count_pieces(text) + beyond) * factor)
