"""Lexical search: how often a term stands in each field of a file, and the words of its chunks.

Entries of 64 files share a row, packed: a row for each term and file would cost three times the time and space. The
chunks of a file stand with the file, as the numbers of its words: they are read for files that the fields found.
"""

import json
import sqlite3
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

BUCKET = 64
"""Files of a row."""
FIELDS = ("path", "symbols", "docstrings", "comments", "body")
MAX_NUMBER = 0xFFFF
"""Places and words beyond have no part in chunks: such files are generated."""
FileTerms = Mapping[str, list[int]]
"""What one file says: term -> frequency in each of `FIELDS`."""
_Entry = tuple[int, bytes]
"""Slot of the file and packed bytes."""
_FILE = struct.Struct("<B4BH")
_BYTE, _WORD = 0xFF, 0xFFFF

OF_TERM = "SELECT files FROM postings WHERE bucket = ? AND term = ?"
BUCKETS = "SELECT DISTINCT file_id / 64 FROM search_files ORDER BY 1"
LENGTHS = """
SELECT file_id, path_len, symbols_len, docstrings_len, comments_len, body_len FROM search_files ORDER BY file_id
"""
CHUNKS = "SELECT words, chunks FROM search_files WHERE file_id = ?"
TERMS = "SELECT terms FROM search_files WHERE file_id = ?"
PUT_ROW = """
INSERT INTO postings (bucket, term, files) VALUES (?, ?, ?)
ON CONFLICT (bucket, term) DO UPDATE SET files = excluded.files
"""
COMMITS = """
SELECT t.commit_id, c.files_changed, t.terms FROM commit_terms t JOIN commits c ON c.id = t.commit_id
ORDER BY t.commit_id DESC
"""
COMMIT_FILES = """
SELECT fc.commit_id, fc.file_id FROM commit_terms t JOIN file_commits fc ON fc.commit_id = t.commit_id
ORDER BY fc.commit_id DESC, fc.file_id
"""
PUT_FILE = """
INSERT OR REPLACE INTO search_files
(file_id, path_len, symbols_len, docstrings_len, comments_len, body_len, terms, words, chunks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SearchFile(NamedTuple):
    """All that search holds of one file."""

    terms: FileTerms
    lengths: tuple[int, ...]
    """Terms in each of `FIELDS`."""
    words: Sequence[str]
    """Its distinct words and identifiers as they stand there, if it has chunks; a word's number is its position."""
    chunks: "Sequence[tuple[int, array[int]]]"
    """(place of the symbol, the numbers of all its words in order), by place."""


class FilePosting(NamedTuple):
    """How often a term stands in the fields of one file."""

    file_id: int
    path: int
    symbols: int
    docstrings: int
    comments: int
    body: int


class Chunk(NamedTuple):
    """The words of a definition."""

    place: int
    """Of its symbol."""
    words: Sequence[int]
    """The numbers of its words in order."""


class FileChunks(NamedTuple):
    """The chunks of one file."""

    words: list[str]
    """A word's number is its position."""
    chunks: list[Chunk]


class PastCommit(NamedTuple):
    """What the message of a past commit says."""

    id: int
    files_changed: int
    file_ids: list[int]
    """The files of today that it touched."""
    terms: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLengths:
    """The fields' lengths of all files, and their means over the files, in the order of `FIELDS`."""

    by_file: dict[int, tuple[int, ...]] = field(repr=False)
    mean: tuple[float, ...]


def insert_bucket(conn: sqlite3.Connection, bucket: int, files: Iterable[tuple[int, SearchFile]]) -> None:
    """Search holds these files, all of one bucket of which it held nothing; ids ascend."""
    packed: dict[str, bytes] = {}
    for file_id, file in files:
        _put_file(conn, file_id, file)
        _pack(packed, file_id % BUCKET, file.terms)
    conn.executemany(
        "INSERT INTO postings (bucket, term, files) VALUES (?, ?, ?)",
        [(bucket, term, packed[term]) for term in sorted(packed)],
    )


def replace_files(conn: sqlite3.Connection, files: Mapping[int, SearchFile | None]) -> None:
    """Search holds these files as given; of those given as None, nothing."""
    by_bucket: dict[int, list[int]] = {}
    for file_id in sorted(files):
        by_bucket.setdefault(file_id // BUCKET, []).append(file_id)
    for bucket, file_ids in by_bucket.items():
        fresh: dict[str, bytes] = {}
        terms: set[str] = set()
        for file_id in file_ids:
            file = files[file_id]
            terms.update(_terms_of(conn, file_id))
            if file is None:
                conn.execute("DELETE FROM search_files WHERE file_id = ?", (file_id,))
            else:
                _put_file(conn, file_id, file)
                _pack(fresh, file_id % BUCKET, file.terms)
        terms.update(fresh)
        _merge(conn, bucket, frozenset(one % BUCKET for one in file_ids), terms, fresh)


def list_buckets(conn: sqlite3.Connection) -> tuple[int, ...]:
    """The buckets that hold files, ascending."""
    return tuple(row[0] for row in conn.execute(BUCKETS))


def read_postings(conn: sqlite3.Connection, buckets: Iterable[int], term: str) -> list[FilePosting]:
    """The files that hold the term, by id."""
    found: list[FilePosting] = []
    for bucket in buckets:
        for row in conn.execute(OF_TERM, (bucket, term)):
            first = bucket * BUCKET
            found.extend([FilePosting(first + one[0], *one[1:]) for one in _FILE.iter_unpack(row[0])])
    return found


def read_posting(conn: sqlite3.Connection, term: str, file_id: int) -> FilePosting | None:
    """The term's frequencies in one file; None where it has none."""
    found = read_postings(conn, (file_id // BUCKET,), term)
    return next((one for one in found if one.file_id == file_id), None)


def read_lengths(conn: sqlite3.Connection) -> FieldLengths:
    """The lengths of all files."""
    cursor = conn.cursor()
    cursor.row_factory = None
    by_file = {row[0]: row[1:] for row in cursor.execute(LENGTHS)}
    count = max(len(by_file), 1)
    sums = [sum(column) for column in zip(*by_file.values(), strict=True)] or [0] * len(FIELDS)
    return FieldLengths(by_file=by_file, mean=tuple(total / count for total in sums))


def read_chunks(conn: sqlite3.Connection, file_id: int) -> FileChunks:
    """The chunks of a file, by place."""
    row = conn.execute(CHUNKS, (file_id,)).fetchone()
    if row is None or not row[0]:
        return FileChunks([], [])
    numbers = _numbers(row[1])
    chunks: list[Chunk] = []
    at = 0
    while at < len(numbers):
        place, low, high = numbers[at : at + 3]
        end = at + 3 + low + (high << 16)
        chunks.append(Chunk(place, numbers[at + 3 : end]))
        at = end
    return FileChunks(row[0].split(" "), chunks)


def read_past_commits(conn: sqlite3.Connection) -> list[PastCommit]:
    """The past commits that search knows, the newest first."""
    touched: dict[int, list[int]] = {}
    cursor = conn.cursor()
    cursor.row_factory = None
    for commit_id, file_id in cursor.execute(COMMIT_FILES):
        touched.setdefault(commit_id, []).append(file_id)
    return [
        PastCommit(commit_id, files_changed, touched.get(commit_id, []), json.loads(terms))
        for commit_id, files_changed, terms in cursor.execute(COMMITS)
    ]


def list_entries(conn: sqlite3.Connection) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Every posting: file id, term, frequencies in `FIELDS`; by bucket and term."""
    for bucket, term, files in conn.execute("SELECT bucket, term, files FROM postings ORDER BY bucket, term"):
        for slot, *counts in _FILE.iter_unpack(files):
            yield bucket * BUCKET + slot, term, tuple(counts)


def _put_file(conn: sqlite3.Connection, file_id: int, file: SearchFile) -> None:
    numbers = array("H")
    for place, words in file.chunks:
        numbers.extend((place, len(words) & _WORD, len(words) >> 16))
        numbers.extend(words)
    texts = (" ".join(file.terms), " ".join(file.words))
    conn.execute(PUT_FILE, (file_id, *file.lengths, *texts, _little(numbers).tobytes()))


def _numbers(data: bytes) -> "array[int]":
    numbers = array("H")
    numbers.frombytes(data)
    return _little(numbers)


def _little(numbers: "array[int]") -> "array[int]":
    """The numbers with the bytes as the database holds them, or back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _pack(packed: dict[str, bytes], slot: int, terms: FileTerms) -> None:
    """The terms' entries stand at the end of `packed`."""
    pack, get = _FILE.pack, packed.get
    for term, counts in terms.items():
        try:
            entry = pack(slot, *counts)
        except struct.error:
            entry = pack(slot, *(min(one, _BYTE) for one in counts[:4]), min(counts[4], _WORD))
        packed[term] = get(term, b"") + entry


def _merge(
    conn: sqlite3.Connection,
    bucket: int,
    slots: frozenset[int],
    terms: AbstractSet[str],
    fresh: Mapping[str, bytes],
) -> None:
    """In the rows of `terms`, the entries of `slots` are the fresh ones; rows that hold nothing are gone.

    Most terms of an edited file stand in it as often as before: their rows are not touched.
    """
    cursor = conn.cursor()
    cursor.row_factory = None
    rows = cursor.execute("SELECT term, files FROM postings WHERE bucket = ?", (bucket,))
    held = {term: files for term, files in rows if term in terms}
    size, ordered = _FILE.size, sorted(slots)
    put, gone = [], []
    for term in sorted(terms):
        before, entries = held.get(term, b""), fresh.get(term, b"")
        there = before[::size]
        found = [at * size for at in map(there.find, ordered) if at >= 0]
        if b"".join([before[at : at + size] for at in found]) == entries:
            continue
        kept = [entry for entry in _entries(before) if entry[0] not in slots]
        after = b"".join([entry for _, entry in sorted([*kept, *_entries(entries)])])
        if after:
            put.append((bucket, term, after))
        else:
            gone.append((bucket, term))
    conn.executemany(PUT_ROW, put)
    conn.executemany("DELETE FROM postings WHERE bucket = ? AND term = ?", gone)


def _entries(files: bytes) -> Iterator[_Entry]:
    size = _FILE.size
    return ((files[at], files[at : at + size]) for at in range(0, len(files), size))


def _terms_of(conn: sqlite3.Connection, file_id: int) -> list[str]:
    row = conn.execute(TERMS, (file_id,)).fetchone()
    return [] if row is None else row[0].split()
