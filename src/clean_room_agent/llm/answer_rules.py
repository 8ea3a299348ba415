"""Limits on an answer: the JSON schema that the server enforces, stricter than the reader, and guards against an answer
that repeats itself endlessly or copies the example in its prompt.

A server that generates by a grammar emits required keys first, in order, and may omit optional ones for good; a weak model
fills a list or text without a bound up to the token limit. So every key is required, and everything is bounded. The
reader does not insist: an answer from a server that does not enforce schemas may lack a key that can be empty, or contain
a long text. Hence `bounds` appear in the schema only.

An answer repeats itself when it ends in one text over and over (a line, an edit, a list entry, blanks), at least
`TIMES` times and for at least `LEAST_CHARS`. Source code hardly ever does: tables of equal lines are shorter, and the
lines of long ones differ in a number or a name. An answer that counts on, or swaps a word now and then, is recognised by
how little is new in it: its last `JUDGED_CHARS` compress to less than `LEAST_NEW` of their size, as Whisper detects its
own loops (Radford et al. 2022, section 4.5). Figures: protocols/measuring.md.

Longer units (a function, written again and again) and copies of what the prompt shows are found by lines. A line is stale
if, with the two before it (blank ones and indentation aside), it stands in the part of the prompt that the answer is not
about, or was written twice before: an edit may quote a definition once to find it, and once to replace it. An answer is
closed if `STALE_SHARE` of its last `STALE_CHARS` are stale lines.

The examples speak of a zoo, with `quokka` in every name and sentence, so that whatever stems from one can be recognised
by that word. A repository that contains the word is not suspected: it then also occurs in the rest of the prompt.
"""

import functools
import json
import math
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from msgspec import Struct, structs

from clean_room_agent.artifacts.names import listed

if TYPE_CHECKING:
    from pydantic import BaseModel

JsonSchema = Mapping[str, Any]
NOISE = frozenset(("title", "description", "default"))
"""What pydantic says of a value beyond its shape."""
SENTENCES_CHARS = 600
SENTENCE_CHARS = 300
NAME_CHARS = 120
PATH_CHARS = 240
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$"
MAX_NUMBER = 999
PATTERN_CHARS = 32
"""That a text with a pattern and no other bound may have: each pattern here ends."""
BRIEF_CHARS = 160
"""Of each text of a brief answer."""
BRIEF_ENTRIES = (8, 4, 2, 1)
"""Of each list of a brief answer: the first that lets it end in time."""
CHARS_PER_TOKEN = 2.5
"""Of JSON in English, at the least: so an answer of so many tokens has this many characters."""
LEAST_CHARS = 600
TIMES = 4
MOST_UNIT_CHARS = 800
"""Of the text that is repeated: two edits of a few lines."""
TAIL_CHARS = TIMES * MOST_UNIT_CHARS
JUDGED_CHARS = 2400
LEAST_NEW = 0.08
PROBE_CHARS = 12
STALE_CHARS = 3000
STALE_SHARE = 0.9
STALE_LINES = 3
"""That have to come in the same order again."""
MOST_COPIES = 2
MOST_LINE_CHARS = 2000
"""A longer line is judged in pieces of this length."""
MOST_KNOWN = 200_000
"""Lines of an answer that are remembered; what comes after that many is compared with the prompt only."""
CHECKED_EVERY = 64
"""Characters that come between two looks at the tail."""
MARK = "quokka"
OPENING_CHARS = 60
"""Characters, but for white space, in which an answer that begins as the example does is known to copy it."""
COPIED = "the answer copies the example, which is about another repository; answer about the task and the code above"
"""What is wrong with such an answer, without the example's words: those would be in the next prompt, and count as the
repository's.
"""
SHOWN = 3
SHOWN_CHARS = 60


def bounds(**limits: int | str) -> Any:
    """Limits of a value, in terms of JSON schema, for an annotation; no answer is rejected for exceeding them."""
    from pydantic import Field

    return Field(json_schema_extra=dict(limits))


@functools.cache
def strict_schema(model: "type[BaseModel]") -> JsonSchema:
    """The model's schema: every key required, in the order of the model, and no others."""
    # Cached: building takes milliseconds, and every call needs it three times.
    schema: JsonSchema = _strict_schema(model.model_json_schema())
    return schema


def at_most(schema: JsonSchema, key: str, count: int) -> JsonSchema:
    """The schema with at most `count` entries in the list of that key."""
    properties = {**schema["properties"], key: {**schema["properties"][key], "maxItems": max(count, 1)}}
    return {**schema, "properties": properties}


def numbers_to(schema: JsonSchema, count: int) -> JsonSchema:
    """The schema with lists of at most `count` numbers, none above `count`."""
    properties = {
        key: {**listed, "maxItems": count, "items": {**listed["items"], "maximum": count}}
        for key, listed in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def brief(schema: JsonSchema, tokens: int) -> JsonSchema:
    """Shorten lists and texts in the schema so that the longest possible answer fits into so many tokens.

    If that is impossible, lists get one entry. Alternatives, and bounds of other kinds, stay as they are.
    """
    for entries in BRIEF_ENTRIES:
        shortened: JsonSchema = _shorten_schema(schema, entries)
        if longest(shortened, shortened) <= tokens * CHARS_PER_TOKEN:
            break
    return shortened


def longest(schema: JsonSchema, node: JsonSchema) -> float:
    """Characters of the longest value that this node of the schema allows; infinite if unbounded."""
    if "$ref" in node:
        return longest(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return max(longest(schema, way) for way in node["anyOf"])
    chars: float = len(str(MAX_NUMBER)) + 2
    if "enum" in node:
        chars = max(len(json.dumps(word)) for word in node["enum"])
    elif node["type"] == "object":
        chars = 2 + sum(len(key) + 6 + longest(schema, value) for key, value in node["properties"].items())
    elif node["type"] == "array":
        chars = 2 + node.get("maxItems", math.inf) * (2 + longest(schema, node["items"]))
    elif node["type"] == "string":
        chars = 2 + node.get("maxLength", PATTERN_CHARS if "pattern" in node else math.inf)
    return chars


def _shorten_schema(node: Any, entries: int) -> Any:
    if isinstance(node, list):
        return [_shorten_schema(part, entries) for part in node]
    if not isinstance(node, dict):
        return node
    most = {"maxItems": entries, "maxLength": BRIEF_CHARS}
    kept = {key: _shorten_schema(value, entries) for key, value in node.items()}
    return kept | {
        key: min(node[key], bound) for key, bound in most.items() if isinstance(node.get(key), int)
    }


def _strict_schema(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict_schema(part) for part in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _strict_schema(value)
        for key, value in node.items()
        if key not in NOISE or isinstance(value, Mapping)
    }
    if isinstance(kept.get("properties"), dict) and kept.get("type") == "object":
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


class RepetitionGuard:
    """Watches a text as it grows."""

    def __init__(self, shown: str = "") -> None:
        """`shown` is what the prompt shows and the text has no reason to repeat at length."""
        self.tripped = False
        """Whether the text repeats itself or what was shown; once it does, nothing changes that."""
        self._tail = ""
        self._unseen = 0
        self._lines = _LineGuard(shown)

    def feed(self, piece: str) -> bool:
        """Append `piece`; returns whether the text now repeats itself or what was shown."""
        if self.tripped:
            return True
        self._tail = (self._tail + piece)[-TAIL_CHARS:]
        self._unseen += len(piece)
        self.tripped = self._lines.feed(piece)
        if self._unseen >= CHECKED_EVERY and not self.tripped:
            self._unseen = 0
            self.tripped = _has_period(self._tail) or _says_little(self._tail)
        return self.tripped


class _LineGuard:
    """Watches how many of the lines of a growing text are stale; in linear time and bounded memory."""

    def __init__(self, shown: str) -> None:
        self._shown: set[int] = set()
        self._copies: dict[int, int] = {}
        self._before: deque[str] = deque(maxlen=STALE_LINES)
        self._line = ""
        self._last: deque[tuple[int, bool]] = deque()
        self._chars = self._stale = 0
        for line in _judged_lines(shown):
            self._shown.add(self._context_hash(line))
        self._before.clear()

    def feed(self, piece: str) -> bool:
        """Append `piece`; returns whether nearly all of the last lines are stale."""
        self._line += piece
        if "\n" not in piece and len(self._line) < MOST_LINE_CHARS:
            return False
        ended, _, self._line = self._line.rpartition("\n") if "\n" in piece else (self._line, "", "")
        return any(self._is_stale(line) for line in _judged_lines(ended))

    def _is_stale(self, line: str) -> bool:
        """Whether nearly all of the last lines are, after this one."""
        place = self._context_hash(line)
        copies = self._copies.get(place, 0)
        if len(self._copies) < MOST_KNOWN:
            self._copies[place] = copies + 1
        self._update_counts(len(line), place in self._shown or copies >= MOST_COPIES, 1)
        while self._chars - self._last[0][0] >= STALE_CHARS:
            self._update_counts(*self._last[0], -1)
        return self._chars >= STALE_CHARS and self._stale >= STALE_SHARE * self._chars

    def _update_counts(self, chars: int, stale: bool, sign: int) -> None:
        if sign > 0:
            self._last.append((chars, stale))
        else:
            self._last.popleft()
        self._chars += sign * chars
        self._stale += sign * chars * stale

    def _context_hash(self, line: str) -> int:
        """What the line and those before it have in common with the same lines elsewhere."""
        self._before.append(line)
        return hash(tuple(self._before))


def _judged_lines(text: str) -> Iterator[str]:
    """The lines that are not blank, without indentation; long ones in pieces."""
    for line in text.split("\n"):
        bare = line.strip()
        for start in range(0, len(bare), MOST_LINE_CHARS):
            yield bare[start : start + MOST_LINE_CHARS]


def describe_repetition(text: str) -> str:
    """Tell the model why its answer was cut off, without quoting what it repeated, or it would do so again."""
    return f"the answer repeated itself, or what it was shown, and was stopped after {len(text)} characters"


def _has_period(tail: str) -> bool:
    """Whether the end of the text is one text over and over."""
    if len(tail) < LEAST_CHARS:
        return False
    probe = tail[-PROBE_CHARS:]
    begin = max(0, len(tail) - MOST_UNIT_CHARS - PROBE_CHARS)
    place = tail.rfind(probe, begin, len(tail) - 1)
    while place >= 0:
        size = len(tail) - PROBE_CHARS - place
        length = max(LEAST_CHARS, TIMES * size)
        # A text has period `size` if it equals itself shifted by that much.
        if length <= len(tail) and tail[-length + size :] == tail[-length:-size]:
            return True
        place = tail.rfind(probe, begin, place + PROBE_CHARS - 1)
    return False


def _says_little(tail: str) -> bool:
    """Whether the end of the text contains hardly anything new. Only words count, as a table of numbers may go on."""
    judged = tail[-JUDGED_CHARS:]
    if len(judged) < JUDGED_CHARS or 2 * sum(map(str.isalpha, judged)) < JUDGED_CHARS:
        return False
    encoded = judged.encode(errors="replace")
    return len(zlib.compress(encoded)) < LEAST_NEW * len(encoded)


class CheckedAnswer(NamedTuple):
    """An answer without what it took from the example."""

    value: Any
    """None where a part that it cannot do without was taken."""
    taken: tuple[str, ...]
    """In the order of the answer."""


class CopyGuard:
    """Watches whether a growing text begins like an example, or mentions its zoo at all."""

    def __init__(self, opening: str) -> None:
        """`opening` has no white space; "" matches nothing, and `MARK` matches any text that contains it."""
        self.tripped = False
        self._left = opening
        self._watches = bool(opening)
        self._anywhere = opening == MARK
        self._end = ""

    def feed(self, piece: str) -> bool:
        """Append `piece`; returns whether the text is now known to be a copy."""
        if self._watches and self._anywhere:
            text = self._end + piece
            self._end = text[-len(MARK) :]
            self._watches = not mentions(text)
            self.tripped = not self._watches
        elif self._watches:
            new = "".join(piece.split())
            size = min(len(new), len(self._left))
            self._watches = new[:size] == self._left[:size]
            self._left = self._left[size:]
            if self._watches and not self._left:
                self.tripped, self._watches = True, False
        return self.tripped


def opening_of(example: str) -> str:
    """How an answer that copies the example begins, without white space; "" if other answers may begin so, too."""
    opening = "".join(example.split())[:OPENING_CHARS]
    return opening if mentions(opening) else ""


def mentions(text: str) -> bool:
    """Whether the text mentions the examples' zoo."""
    return MARK in text.casefold()


def without_copies(value: Any) -> CheckedAnswer:
    """Remove from the answer's own lists the texts that stem from an example.

    If anything else does (a sentence, the path of an edit, a part of a plan), or if no list keeps a text, the answer is
    not usable.
    """
    taken = tuple(text for text in _nested_texts(value) if mentions(text))
    if not taken:
        return CheckedAnswer(value, ())
    if not _is_model(value):
        return CheckedAnswer(None, taken)
    lists = {
        name: tuple(entry for entry in entries if not (isinstance(entry, str) and mentions(entry)))
        for name in type(value).model_fields
        if isinstance(entries := getattr(value, name), list | tuple)
    }
    kept = value.model_copy(update=lists)
    if not any(lists.values()) or any(map(mentions, _nested_texts(kept))):
        return CheckedAnswer(None, taken)
    return CheckedAnswer(kept, taken)


def _is_model(value: Any) -> "TypeGuard[BaseModel]":
    from pydantic import BaseModel

    return isinstance(value, BaseModel)


def describe(taken: tuple[str, ...]) -> str:
    """Tell the model what was removed."""
    return listed((repr(text[:SHOWN_CHARS]) for text in dict.fromkeys(taken)), SHOWN)


def _nested_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif _is_model(value):
        yield from _nested_texts([getattr(value, name) for name in type(value).model_fields])
    elif isinstance(value, Struct):
        yield from _nested_texts(structs.astuple(value))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _nested_texts(part)
