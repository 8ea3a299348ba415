"""Answers that repeat themselves without end.

An answer repeats itself when it ends in nothing but one text over and over, at least `TIMES` times and for at least
`LEAST_CHARS`: a line, a whole edit, a list entry, blanks. Sources hardly do: tables of equal lines are shorter, and long ones have a
number or a name that differs from line to line (figures in protocols/measuring.md).
"""

LEAST_CHARS = 600
TIMES = 4
MOST_UNIT_CHARS = 800
"""Of the text that is repeated: two edits of a few lines."""
TAIL_CHARS = TIMES * MOST_UNIT_CHARS
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
            self.tripped = repeats(self._tail)
        return self.tripped


def repeats(text: str) -> bool:
    """Whether the end of the text is one text over and over."""
    return _unit(text) != ""


def describe_repetition(text: str) -> str:
    """What was wrong with an answer that was closed, in words for the model: without what it repeated, or it does so again."""
    return f"the answer repeated itself and was stopped after {len(text)} characters"


def _unit(text: str) -> str:
    """What the end of the text repeats; "" for nothing."""
    tail = text[-TAIL_CHARS:]
    if len(tail) < LEAST_CHARS:
        return ""
    probe = tail[-PROBE_CHARS:]
    begin = max(0, len(tail) - MOST_UNIT_CHARS - PROBE_CHARS)
    place = tail.rfind(probe, begin, len(tail) - 1)
    while place >= 0:
        size = len(tail) - PROBE_CHARS - place
        length = max(LEAST_CHARS, TIMES * size)
        # A text has the period `size` where it is the same, moved by so much.
        if length <= len(tail) and tail[-length + size :] == tail[-length:-size]:
            return tail[-size:]
        place = tail.rfind(probe, begin, place + PROBE_CHARS - 1)
    return ""
