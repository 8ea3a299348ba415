"""Text as search terms: identifiers split, lower-cased, stemmed; compounds also whole. Index and queries share it."""

import re
from collections import Counter
from functools import lru_cache

from clean_room_agent.indexer.stemmer import stem

WORD = re.compile(r"[^\W\d]\w*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
MAX_WORD = 64
"""Longer words are encoded data, which nobody searches for."""
STOP_TEXT = """
    a about after all also an and any are as at be been before being both but by can could did do does doing done each
    for from had has have having he her here his how i if in into is it its itself just let me more most must my no nor
    not now of off on once only or other our out over own per same she should so some such than that the their them then
    there these they this those through to too under until up upon us very was we were what when where which while who
    whom why will with would you your
"""
STOP_WORDS = frozenset(STOP_TEXT.split())


def parts_of(word: str) -> tuple[str, ...]:
    """The parts of an identifier in lower case: `parseHTTPReply_v2` gives parse, http, reply, v, 2."""
    found = PART.findall(word) if word.isascii() else filter(None, word.split("_"))
    return tuple(part.lower() for part in found)


@lru_cache(maxsize=200_000)
def terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word or identifier: its parts' stems, and if it has several parts, itself in lower case."""
    if len(word) > MAX_WORD:
        return ()
    parts = parts_of(word)
    stems = [stem(part) for part in parts if len(part) > 1 and part not in STOP_WORDS]
    if len(parts) > 1:
        stems.append(word.lower().strip("_"))
    return tuple(stems)


def count_terms(text: str) -> Counter[str]:
    """How often each term stands in `text`."""
    terms: Counter[str] = Counter()
    for word, count in Counter(WORD.findall(text)).items():
        for term in terms_of(word):
            terms[term] += count
    return terms
