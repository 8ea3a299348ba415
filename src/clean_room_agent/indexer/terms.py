"""Splits text into search terms (identifiers are split, lower-cased and stemmed; compounds are also kept whole), counts a file's
by field, and numbers the words in its chunks.
"""

import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from string import ascii_letters, digits

from Stemmer import Stemmer

from clean_room_agent.db.curated.postings import MAX_NUMBER, SearchFile
from clean_room_agent.languages.nesting import Nested

WORD = re.compile(r"[^\W\d]\w*")
LETTERS = f"{ascii_letters}{digits}_"
SPACED = "".join(one if one in LETTERS else " " for one in map(chr, range(128)))
"""Each ASCII character, or a blank where it belongs to no word."""
AFTER_DIGITS = ":"
"""The character after 9: what begins with a digit sorts before it."""
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
SHORT = 2
MAX_WORD = 64
"""Longer words are encoded data, which nobody searches for."""
MAX_KNOWN = 300_000
"""Tokens remembered with their terms."""
STOP_TEXT = """
    a about after all also an and any are as at be been before being both but by can could did do does doing done each
    for from had has have having he her here his how i if in into is it its itself just let me more most must my no nor
    not now of off on once only or other our out over own per same she should so some such than that the their them then
    there these they this those through to too under until up upon us very was we were what when where which while who
    whom why will with would you your
"""
STOP_WORDS = frozenset(STOP_TEXT.split())


def tokens_of(text: str) -> list[str]:
    """The words, identifiers and numbers of `text`, in order. Digits before a word are a token of their own."""
    # Splitting at blanks first takes two thirds of the time that a pattern takes.
    return text.translate(SPACED).split() if text.isascii() else WORD.findall(text)


def parts_of(word: str) -> tuple[str, ...]:
    """The lower-case parts of an identifier: `parseHTTPReply_v2` gives parse, http, reply, v, 2."""
    found = PART.findall(word) if word.isascii() else filter(None, word.split("_"))
    return tuple(map(str.lower, found))


def terms_of(word: str) -> tuple[str, ...]:
    """The search terms of one word: the stems of its parts and, for a compound, the whole word in lower case."""
    return _KNOWN[word] if word > AFTER_DIGITS else _word_stems(word)


class _Known(dict[str, tuple[str, ...]]):
    """Token -> its terms, computed when first looked up."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= MAX_KNOWN:
            self.clear()
        terms = self[token] = _word_stems(token.lstrip(digits))
        return terms


_KNOWN = _Known()


def _word_stems(word: str) -> tuple[str, ...]:
    if len(word) > MAX_WORD:
        return ()
    lowered = word.lower()
    if word.isalpha() and word[1:] == lowered[1:]:  # most words are not compounds
        return (stem(lowered),) if len(word) > 1 and lowered not in STOP_WORDS else ()
    parts = parts_of(word)
    stems = [stem(part) for part in parts if len(part) > 1 and part not in STOP_WORDS]
    if len(parts) > 1:
        stems.append(lowered.strip("_"))
    return tuple(stems)


def stem(word: str) -> str:
    """Stem a lower-case word by Porter's algorithm; a word of two letters is its own stem.

    M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
    """
    return word if len(word) <= SHORT else _PORTER.stemWord(word)


_PORTER = Stemmer("porter", 0)


def count_terms(text: str) -> dict[str, int]:
    """How often each term stands in `text`."""
    return terms_in(Counter(tokens_of(text)))


def bags_of(lines: Sequence[str], wanted: AbstractSet[str]) -> list[frozenset[str]]:
    """Which of the wanted terms each line has."""
    held = list(map(tokens_of, lines))
    telling = {token for token in set().union(*held) if not wanted.isdisjoint(_KNOWN[token])}
    none: frozenset[str] = frozenset()
    return [
        none if telling.isdisjoint(tokens) else none.union(*map(_KNOWN.__getitem__, tokens)) & wanted
        for tokens in held
    ]


def terms_in(tokens: Mapping[str, int]) -> dict[str, int]:
    """Count the terms of tokens that occur as often as given."""
    terms: dict[str, int] = {}
    get = terms.get
    for token, times in tokens.items():
        for term in _KNOWN[token]:
            terms[term] = get(term, 0) + times
    return terms


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
    """
    places, pieces = _split_chunks(source.translate(BLANKED), nested)
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


def _split_chunks(source: bytes, nested: Nested) -> tuple[list[int], list[bytes]]:
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
