"""Counts a file's search terms by field, and numbers the words in its chunks."""

import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import digits

from clean_room_agent.db.curated.postings import MAX_NUMBER, SearchFile
from clean_room_agent.indexer.terms import AFTER_DIGITS, SPACED, WORD, count_terms, terms_in
from clean_room_agent.languages.nesting import Nested

CHUNKED = frozenset({"function", "method", "class", "interface", "enum", "type_alias"})
CODE = frozenset({"function", "method"})
BLANKED = bytes(ord(SPACED[byte]) if byte < 128 else byte for byte in range(256))
"""For each byte what is left of it: blanks in the place of what belongs to no word."""
BOUNDARY = "\0"
"""The token between the parts of a file, which are read together."""
BETWEEN_CHUNKS = "\uffff"
"""The same among the characters of words' numbers, of which it is none."""
WORD_OR_BOUNDARY = re.compile(f"{BOUNDARY}|{WORD.pattern}")
NUMBERS = array("H", range(MAX_NUMBER + 1)).tobytes().decode(f"utf-16-{sys.byteorder[0]}e")


def read_search_file(
    path: str, source: bytes, nested: Nested, *, docstrings: Iterable[str], comments: Iterable[str]
) -> SearchFile:
    """Count the search terms of one file, and split it into chunks.

    A chunk is a definition and what it contains. The definitions inside a class are chunks of their own; those inside a
    function belong to the function.

    Args:
        path: relative to the repository.
        source: the file as UTF-8.
        nested: its symbols.
        docstrings: their texts.
        comments: their texts.
    """
    places, pieces = _segments(source.translate(BLANKED), nested)
    text = b" \0 ".join(pieces).decode("utf-8", "replace")
    tokens = text.split() if text.isascii() else WORD_OR_BOUNDARY.findall(text)
    body = Counter(tokens)
    del body[BOUNDARY]
    words: Sequence[str] = ()
    chunks: list[tuple[int, str]] = []
    if places and places[0] <= MAX_NUMBER:
        words = _words_of(body)
        if len(words) <= MAX_NUMBER:
            texts = "".join(map(_numbers_of(words, body).__getitem__, tokens)).split(BETWEEN_CHUNKS)
            chunks = [
                (place, numbers)
                for place, numbers in zip(places, texts[1:], strict=True)
                if place <= MAX_NUMBER
            ]
    fields = (  # in the order of FIELDS
        count_terms(path),
        count_terms(" ".join([one.name for one in nested.definitions])),
        count_terms("\n".join(docstrings)),
        count_terms("\n".join(comments)),
        terms_in(body),
    )
    return SearchFile(fields, words if chunks else (), chunks)


def _words_of(tokens: Mapping[str, int]) -> list[str]:
    """The distinct words among the tokens, without leading digits (`0xFF` gives xFF)."""
    if not any(token < AFTER_DIGITS and token.lstrip(digits) for token in tokens):
        return [token for token in tokens if token > AFTER_DIGITS]
    words = dict.fromkeys(token.lstrip(digits) for token in tokens)
    words.pop("", None)
    return list(words)


def _numbers_of(words: Sequence[str], tokens: Iterable[str]) -> dict[str, str]:
    """Token -> the number of its word, as a character; "" if it has none."""
    numbers = dict(zip(words, NUMBERS, strict=False))
    numbers.update({token: numbers.get(token.lstrip(digits), "") for token in tokens if token < AFTER_DIGITS})
    numbers[BOUNDARY] = BETWEEN_CHUNKS
    return numbers


def _segments(source: bytes, nested: Nested) -> tuple[list[int], list[bytes]]:
    """Return the places of the chunks; and texts: first what belongs to no chunk, then each chunk's own text."""
    parts: dict[int, list[bytes]] = {-1: []}
    open_ = [(-1, len(source))]
    at = 0
    for place in _chunk_places(nested):
        one = nested.definitions[place]
        while open_[-1][1] <= one.start:
            owner, end = open_.pop()
            parts[owner].append(source[at:end])
            at = end
        parts[open_[-1][0]].append(source[at : one.start])
        at = one.start
        parts[place] = []
        open_.append((place, one.end))
    for owner, end in reversed(open_):
        parts[owner].append(source[at:end])
        at = max(at, end)
    return list(parts)[1:], [b" ".join(texts) for texts in parts.values()]


def _chunk_places(nested: Nested) -> Sequence[int]:
    inside = [False] * len(nested.kinds)
    places = []
    for place, (parent, kind) in enumerate(zip(nested.parents, nested.kinds, strict=True)):
        covered = parent >= 0 and inside[parent]
        inside[place] = covered or kind in CODE
        if not covered and kind in CHUNKED:
            places.append(place)
    return places
