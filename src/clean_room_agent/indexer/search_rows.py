"""What search holds of a file: how often each term stands in its fields and in its chunks."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from clean_room_agent.db.curated.postings import MAX_NUMBER, SearchFile
from clean_room_agent.indexer.nesting import Nested
from clean_room_agent.indexer.terms import count_terms, terms_in, words_of

CHUNKED = frozenset({"function", "method", "class", "interface", "enum", "type_alias"})
CODE = frozenset({"function", "method"})


def read_search_file(
    path: str, source: bytes, nested: Nested, *, docstrings: Iterable[str], comments: Iterable[str]
) -> SearchFile:
    """The terms of one file.

    A chunk is a definition with what stands in it, less the definitions inside a class, which are chunks themselves;
    what is defined inside a function belongs to the function.

    Args:
        path: relative to the repository.
        source: the file as UTF-8.
        nested: its symbols.
        docstrings: their texts.
        comments: their texts.
    """
    body: Counter[str] = Counter()
    texts: list[tuple[int, list[str]]] = []
    for place, text in _segments(source, nested):
        words = words_of(text)
        body.update(words)
        if 0 <= place <= MAX_NUMBER:
            texts.append((place, words))
    chunks: list[tuple[int, array[int]]] = []
    if texts and len(body) <= MAX_NUMBER:
        number = dict(zip(body, range(len(body)), strict=True)).__getitem__
        chunks = [(place, array("H", map(number, words))) for place, words in texts]
    fields = (  # in the order of FIELDS
        count_terms(path),
        count_terms(" ".join([one.name for one in nested.definitions])),
        count_terms("\n".join(docstrings)),
        count_terms("\n".join(comments)),
        terms_in(body),
    )
    return SearchFile(fields, list(body) if chunks else [], chunks)


def _segments(source: bytes, nested: Nested) -> Iterator[tuple[int, str]]:
    """The file's text in parts: those of each chunk, by place, after what belongs to none (-1)."""
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
    for place, texts in parts.items():
        yield place, b"\n".join(texts).decode("utf-8", "replace")


def _chunk_places(nested: Nested) -> Sequence[int]:
    inside = [False] * len(nested.kinds)
    places = []
    for place, (parent, kind) in enumerate(zip(nested.parents, nested.kinds, strict=True)):
        covered = parent >= 0 and inside[parent]
        inside[place] = covered or kind in CODE
        if not covered and kind in CHUNKED:
            places.append(place)
    return places
