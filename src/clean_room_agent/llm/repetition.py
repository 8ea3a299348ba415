"""Detecting answers that repeat themselves without end.

An answer repeats itself when it ends in nothing but one text over and over, at least `TIMES` times and for at least
`LEAST_CHARS`: a line, a whole edit, a list entry, blanks. Sources hardly do: tables of equal lines are shorter, and long ones have a
number or a name that differs from line to line. An answer that counts on, or swaps a word now and then, is known by how little
is new in it: its last `JUDGED_CHARS` compress to less than `LEAST_NEW` of their size, as Whisper knows its own loops
(Radford et al. 2022, section 4.5). Figures in protocols/measuring.md.
"""

import zlib

LEAST_CHARS = 600
TIMES = 4
MOST_UNIT_CHARS = 800
"""Of the text that is repeated: two edits of a few lines."""
TAIL_CHARS = TIMES * MOST_UNIT_CHARS
JUDGED_CHARS = 2400
LEAST_NEW = 0.08
PROBE_CHARS = 12
CHECKED_EVERY = 64
"""Characters that come between two looks at the tail."""


class RepetitionGuard:
    """Watches a text as it grows."""

    def __init__(self) -> None:
        self.tripped = False
        """Whether the text repeats itself; once it does, nothing changes that."""
        self._tail = ""
        self._unseen = 0

    def feed(self, piece: str) -> bool:
        """Whether the text repeats itself with `piece` at its end."""
        self._tail = (self._tail + piece)[-TAIL_CHARS:]
        self._unseen += len(piece)
        if self._unseen >= CHECKED_EVERY and not self.tripped:
            self._unseen = 0
            self.tripped = _has_period(self._tail) or _says_little(self._tail)
        return self.tripped


def describe_repetition(text: str) -> str:
    """What was wrong with an answer that was closed, in words for the model: without what it repeated, or it does so again."""
    return f"the answer repeated itself and was stopped after {len(text)} characters"


def _has_period(tail: str) -> bool:
    """Whether the text's end is one text over and over."""
    if len(tail) < LEAST_CHARS:
        return False
    probe = tail[-PROBE_CHARS:]
    begin = max(0, len(tail) - MOST_UNIT_CHARS - PROBE_CHARS)
    place = tail.rfind(probe, begin, len(tail) - 1)
    while place >= 0:
        size = len(tail) - PROBE_CHARS - place
        length = max(LEAST_CHARS, TIMES * size)
        # A text has the period `size` where it is the same, moved by so much.
        if length <= len(tail) and tail[-length + size :] == tail[-length:-size]:
            return True
        place = tail.rfind(probe, begin, place + PROBE_CHARS - 1)
    return False


def _says_little(tail: str) -> bool:
    """Whether hardly anything at the text's end is new: of words, since a table of numbers may go on."""
    judged = tail[-JUDGED_CHARS:]
    if len(judged) < JUDGED_CHARS or 2 * sum(map(str.isalpha, judged)) < JUDGED_CHARS:
        return False
    encoded = judged.encode(errors="replace")
    return len(zlib.compress(encoded)) < LEAST_NEW * len(encoded)
