"""Full-text search: how often a term occurs in each field of a file, and the words of its chunks.

The postings of 64 files are packed into one row: a row for each term and file would take many times the time and
space. A file's chunks are stored with the file, as numbers of its words; they are read only for files found by field.
"""

import sqlite3
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

BUCKET = 64
"""Files of a row."""
FIELDS = ("path", "symbols", "docstrings", "comments", "body")
MAX_NUMBER = 0xD7FF
"""Places and words beyond have no part in chunks: such files are generated. Up to here each number is a character."""
FileTerms = Sequence[Mapping[str, int]]
"""What one file says: for each of `FIELDS`, term -> frequency."""
Entry = tuple[int, int, int, int, int, int]
"""One term in one file: its place in the bucket (its id less the first one's), then how often in each of `FIELDS`."""
_FILE = struct.Struct("<B4BH")
_BYTE, _WORD = 0xFF, 0xFFFF

BUCKETS = "SELECT bucket, terms, counts, files FROM postings ORDER BY bucket"
ONE_BUCKET = "SELECT terms, counts, files FROM postings WHERE bucket = ?"
PUT_BUCKET = "INSERT OR REPLACE INTO postings (bucket, terms, counts, files) VALUES (?, ?, ?, ?)"
LENGTHS = """
SELECT file_id, path_len, symbols_len, docstrings_len, comments_len, body_len FROM search_files ORDER BY file_id
"""
CHUNKS = "SELECT words, chunks FROM search_files WHERE file_id = ?"
PUT_FILE = """
INSERT OR REPLACE INTO search_files
(file_id, path_len, symbols_len, docstrings_len, comments_len, body_len, words, chunks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


class SearchFile(NamedTuple):
    """Everything that search stores about one file."""

    terms: FileTerms
    words: Sequence[str]
    """Its distinct words and identifiers as they stand there, if it has chunks; a word's number is its position."""
    chunks: Sequence[tuple[int, str]]
    """(place of the symbol, the numbers of all its words in order, each as a character), by place."""


FileTuple = tuple[int | str | bytes, ...]
"""Of `search_files`."""
BucketTuple = tuple[int, str, bytes, bytes]
"""Of `postings`."""
PackedBucket = tuple[str, bytes, bytes]
"""Its terms, sorted and separated by a blank; in how many files each stands; the entries of all."""


class FileChunks(NamedTuple):
    """The chunks of one file."""

    words: str
    """Its distinct words, separated by a blank; a word's number is its position."""
    numbers: str
    """A character each: for each chunk by place the place of its symbol, how many words (two numbers, the low one
    first), then the words'."""

    def each(self) -> Iterator[tuple[int, str]]:
        """Yield the place of each chunk's symbol, and its words in order (each as a character, its number)."""
        at = 0
        while at < len(self.numbers):
            place, low, high = map(ord, self.numbers[at : at + 3])
            end = at + 3 + low + (high << 16)
            yield place, self.numbers[at + 3 : end]
            at = end


class Postings:
    """All postings of one state of the index, by term."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._buckets = [
            _Bucket(row[0] * BUCKET, row[1].split(), row[2], row[3]) for row in conn.execute(BUCKETS)
        ]

    def of_term(self, term: str) -> Iterator[tuple[int, Iterator[Entry]]]:
        """Yield, for each bucket with the term, the id of its first file and the entries by file."""
        for bucket in self._buckets:
            entries = bucket.of_term(term)
            if entries:
                yield bucket.first_id, _FILE.iter_unpack(entries)

    def count(self, term: str) -> int:
        """Number of files that contain the term."""
        return sum(len(bucket.of_term(term)) for bucket in self._buckets) // _FILE.size


class _Bucket:
    """The postings of 64 files."""

    def __init__(self, first_id: int, terms: list[str], counts: bytes, files: bytes) -> None:
        self.first_id = first_id
        self._terms = terms
        self._ends: list[int] | None = None
        self._counts = counts
        self._files = files

    def of_term(self, term: str) -> bytes:
        """The packed entries; empty if no file contains the term."""
        at = bisect_left(self._terms, term)
        if at == len(self._terms) or self._terms[at] != term:
            return b""
        if self._ends is None:
            self._ends = list(accumulate(self._counts))
        end = self._ends[at]
        return self._files[(end - self._counts[at]) * _FILE.size : end * _FILE.size]


def insert_bucket(conn: sqlite3.Connection, bucket: int, files: Iterable[tuple[int, SearchFile]]) -> None:
    """Insert files of one bucket that was empty; ids must ascend."""
    packed: dict[str, bytes] = {}
    rows = []
    for file_id, file in files:
        rows.append(_file_row(file_id, file))
        _pack_terms(packed, file_id % BUCKET, file.terms)
    _put_rows(conn, [], rows, [_bucket_row(bucket, packed)])


def replace_files(conn: sqlite3.Connection, files: Mapping[int, SearchFile | None]) -> None:
    """Put these files into the search tables in place of what they were, or remove those given as None."""
    by_bucket: dict[int, list[int]] = {}
    for file_id in sorted(files):
        by_bucket.setdefault(file_id // BUCKET, []).append(file_id)
    removed: list[int] = []
    rows: list[FileTuple] = []
    buckets: list[BucketTuple] = []
    for bucket, file_ids in by_bucket.items():
        fresh: dict[str, bytes] = {}
        for file_id in file_ids:
            file = files[file_id]
            if file is None:
                removed.append(file_id)
            else:
                rows.append(_file_row(file_id, file))
                _pack_terms(fresh, file_id % BUCKET, file.terms)
        stored = conn.execute(ONE_BUCKET, (bucket,)).fetchone()
        held = _without_slots(unpacked(stored), frozenset(one % BUCKET for one in file_ids))
        for term, entries in fresh.items():
            before = held.get(term)
            held[term] = entries if before is None else _merge_entries(before, entries)
        buckets.append(_bucket_row(bucket, held))
    _put_rows(conn, removed, rows, buckets)


def _put_rows(
    conn: sqlite3.Connection,
    removed: Sequence[int],
    files: Sequence[FileTuple],
    buckets: Sequence[BucketTuple],
) -> None:
    """Store the rows in place of those with the same ids; a bucket without terms is not stored."""
    conn.executemany("DELETE FROM search_files WHERE file_id = ?", [(file_id,) for file_id in removed])
    conn.executemany(PUT_FILE, files)
    conn.executemany("DELETE FROM postings WHERE bucket = ?", [row[:1] for row in buckets if not row[1]])
    conn.executemany(PUT_BUCKET, [row for row in buckets if row[1]])


def read_lengths(conn: sqlite3.Connection) -> tuple[dict[int, tuple[int, ...]], tuple[float, ...]]:
    """The field lengths of all files, by id, and their means over all files, in the order of `FIELDS`."""
    cursor = conn.cursor()
    cursor.row_factory = None
    by_file = {row[0]: row[1:] for row in cursor.execute(LENGTHS)}
    count = max(len(by_file), 1)
    sums = [sum(column) for column in zip(*by_file.values(), strict=True)] or [0] * len(FIELDS)
    return by_file, tuple(total / count for total in sums)


def read_chunks(conn: sqlite3.Connection, file_id: int) -> FileChunks | None:
    """The chunks of a file, if it has any."""
    row = conn.execute(CHUNKS, (file_id,)).fetchone()
    if row is None or not row[0]:
        return None
    return FileChunks(row[0], row[1].decode("utf-16-le", "surrogatepass"))


def _file_row(file_id: int, file: SearchFile) -> FileTuple:
    numbers = "".join(
        [
            f"{chr(place)}{chr(len(words) & _WORD)}{chr(len(words) >> 16)}{words}"
            for place, words in file.chunks
        ]
    )
    lengths = (sum(counts.values()) for counts in file.terms)
    chunks = numbers.encode("utf-16-le", "surrogatepass")
    return file_id, *lengths, " ".join(file.words), chunks


def _pack_terms(packed: dict[str, bytes], slot: int, terms: FileTerms) -> None:
    """Append the terms' entries to `packed`."""
    path, symbols, docstrings, comments, body = terms
    head = slot.to_bytes() + bytes(len(FIELDS) - 1)
    entries = _BodyEntries(head)
    packed_here = dict(zip(body, map(entries.__getitem__, body.values()), strict=True))
    if any(max(field.values(), default=0) > _BYTE for field in terms[:-1]):
        path, symbols, docstrings, comments = (
            {term: min(times, _BYTE) for term, times in field.items()} for field in terms[:-1]
        )
    pack = _FILE.pack
    for term in {*path, *symbols, *docstrings, *comments}:
        packed_here[term] = pack(
            slot,
            path.get(term, 0),
            symbols.get(term, 0),
            docstrings.get(term, 0),
            comments.get(term, 0),
            min(body.get(term, 0), _WORD),
        )
    get = packed.get
    for term, entry in packed_here.items():
        packed[term] = get(term, b"") + entry


class _BodyEntries(dict[int, bytes]):
    """Frequency of a term that occurs only in a file's body -> its packed entry."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self._head = head

    def __missing__(self, times: int) -> bytes:
        entry = self[times] = self._head + min(times, _WORD).to_bytes(2, "little")
        return entry


def unpacked(bucket: PackedBucket | None) -> dict[str, bytes]:
    """Term -> packed entries of a bucket."""
    if bucket is None:
        return {}
    terms, counts, files = bucket
    held: dict[str, bytes] = {}
    at = 0
    for term, count in zip(terms.split(), counts, strict=True):
        end = at + count * _FILE.size
        held[term] = files[at:end]
        at = end
    return held


def _bucket_row(bucket: int, packed: Mapping[str, bytes]) -> BucketTuple:
    """The bucket's entries by term; without terms if it is empty."""
    terms = sorted(packed)
    entries = list(map(packed.__getitem__, terms))
    counts = bytes([size // _FILE.size for size in map(len, entries)])
    return bucket, " ".join(terms), counts, b"".join(entries)


def _without_slots(held: Mapping[str, bytes], slots: frozenset[int]) -> dict[str, bytes]:
    """Drop the entries of the files in these slots."""
    size = _FILE.size
    left: dict[str, bytes] = {}
    for term, entries in held.items():
        if len(entries) == size:  # most terms stand in one file
            if entries[0] not in slots:
                left[term] = entries
            continue
        if slots.isdisjoint(entries[::size]):
            left[term] = entries
            continue
        kept = [entries[at : at + size] for at in range(0, len(entries), size) if entries[at] not in slots]
        if kept:
            left[term] = b"".join(kept)
    return left


def _merge_entries(one: bytes, other: bytes) -> bytes:
    """Merge two runs of entries that are each sorted by slot."""
    size = _FILE.size
    if one[-size] < other[0]:
        return one + other
    if other[-size] < one[0]:
        return other + one
    both = one + other
    return b"".join(sorted([both[at : at + size] for at in range(0, len(both), size)]))
