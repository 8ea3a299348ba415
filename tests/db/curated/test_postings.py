"""What search holds of files, packed and unpacked."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.index_dump import list_entries

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import postings
from clean_room_agent.db.curated.postings import BUCKET, MAX_NUMBER, Postings, SearchFile

TERMS = st.dictionaries(
    st.sampled_from(("parse", "render", "total", "größe")),
    st.lists(st.integers(0, 70_000), min_size=5, max_size=5),
    max_size=4,
)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect_file("curated", tmp_path / "curated.sqlite")) as conn:
        conn.execute("PRAGMA foreign_keys = OFF")
        yield conn


def file_of(terms: dict[str, list[int]]) -> SearchFile:
    fields = [{term: counts[field] for term, counts in terms.items()} for field in range(5)]
    return SearchFile(fields, [], [])


def held(conn: sqlite3.Connection) -> dict[tuple[int, str], tuple[int, ...]]:
    return {(file_id, term): counts for file_id, term, counts in list_entries(conn)}


def clamped(counts: list[int]) -> tuple[int, ...]:
    return (*(min(one, 255) for one in counts[:4]), min(counts[4], 65_535))


@given(files=st.dictionaries(st.integers(1, 3 * BUCKET), TERMS, max_size=6), again=TERMS)
def test_replaced_files_are_held_as_if_they_had_been_so_from_the_start(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[int, dict[str, list[int]]],
    again: dict[str, list[int]],
) -> None:
    path = tmp_path_factory.mktemp("search") / "curated.sqlite"
    with contextlib.closing(connect_file("curated", path)) as conn:
        conn.execute("PRAGMA foreign_keys = OFF")
        postings.replace_files(conn, {file_id: file_of(terms) for file_id, terms in files.items()})
        changed = sorted(files)[:2]
        postings.replace_files(conn, {file_id: file_of(again) for file_id in changed[:1]})
        postings.replace_files(conn, dict.fromkeys(changed[1:]))
        expected = {**files, **dict.fromkeys(changed[:1], again), **{key: {} for key in changed[1:]}}
        assert held(conn) == {
            (file_id, term): clamped(counts)
            for file_id, terms in expected.items()
            for term, counts in terms.items()
        }


def test_a_bucket_written_at_once_is_as_one_written_file_by_file(
    conn: sqlite3.Connection, tmp_path: Path
) -> None:
    files = {
        3: file_of({"parse": [1, 0, 0, 0, 7], "total": [0, 0, 0, 0, 1]}),
        9: file_of({"parse": [0, 2, 0, 0, 1]}),
    }
    postings.insert_bucket(conn, 0, files.items())
    with contextlib.closing(connect_file("curated", tmp_path / "other.sqlite")) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        postings.replace_files(other, {9: files[9]})
        postings.replace_files(other, {3: files[3]})
        query = "SELECT bucket, terms, counts, files FROM postings"
        assert [tuple(row) for row in conn.execute(query)] == [tuple(row) for row in other.execute(query)]


def test_postings_of_a_term_come_by_file_with_their_fields(conn: sqlite3.Connection) -> None:
    files = {70: file_of({"parse": [1, 2, 3, 4, 500]}), 3: file_of({"parse": [0, 0, 0, 0, 1]})}
    postings.replace_files(conn, files)
    held = Postings(conn)
    found = {first: list(entries) for first, entries in held.of_term("parse")}
    assert found == {0: [(3, 0, 0, 0, 0, 1)], 64: [(6, 1, 2, 3, 4, 500)]}
    assert held.count("parse") == 2
    assert list(held.of_term("pars")) == list(held.of_term("parses")) == []
    assert held.count("pars") == 0


def test_chunks_come_back_with_their_words(conn: sqlite3.Connection) -> None:
    long = chr(1) * 70_000
    file = SearchFile([{}] * 5, ["def", "run"], [(0, "\0\1\0"), (7, long), (MAX_NUMBER, "")])
    postings.replace_files(conn, {5: file})
    found = postings.read_chunks(conn, 5)
    assert found is not None
    assert found.words == "def run"
    assert list(found.each()) == [(0, "\0\1\0"), (7, long), (MAX_NUMBER, "")]
    assert postings.read_chunks(conn, 6) is None
