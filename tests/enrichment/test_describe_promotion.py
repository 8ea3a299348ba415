"""Promotion matches descriptions with files by path and content, and leaves alone what it knows nothing of."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files, metadata
from clean_room_agent.db.curated.metadata import FileMetadataRow
from clean_room_agent.db.raw.indexing import (
    ENRICHMENT_OUTPUTS,
    DescriptionRow,
    EnrichmentRow,
    append_enrichment,
    list_descriptions,
    mark_promoted,
)
from clean_room_agent.enrichment.describe import promote

INSERT_FILE = """
INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes) VALUES (?, ?, ?, 'python', ?, 1)
"""
PATHS = ("a.py", "b.py", "c.py")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect_file("curated", tmp_path / "curated.sqlite")) as conn:
        repo = files.put_repo(conn, path="/r", remote_url=None, indexed_at="2026-01-02T03:04:05Z")
        for number, path in enumerate(PATHS, start=1):
            conn.execute(INSERT_FILE, (number, repo, path, f"{path} now"))
        yield conn


def described(number: int, path: str, content: str = "now", *, promoted: bool = False) -> DescriptionRow:
    return DescriptionRow(
        id=number,
        path=path,
        content_hash=f"{path} {content}",
        purpose=f"purpose {number}",
        module="m",
        domain="Money",
        concepts=("ä", "b"),
        public_api_surface=(),
        complexity_notes="",
        promoted=promoted,
    )


def purposes(index: sqlite3.Connection) -> dict[int, str | None]:
    return {row.file_id: row.purpose for row in metadata.list_metadata(index)}


def test_current_descriptions_come_in_and_others_do_not(index: sqlite3.Connection) -> None:
    known = [described(1, "a.py"), described(2, "b.py", "before"), described(3, "gone.py")]
    done, ids = promote(index, known)
    assert (done.promoted, done.unchanged, done.outdated, ids) == (1, 0, ("b.py",), (1,))
    assert purposes(index) == {1: "purpose 1"}


def test_promoting_again_changes_nothing(index: sqlite3.Connection) -> None:
    known = [described(1, "a.py")]
    promote(index, known)
    before = index.total_changes
    done, ids = promote(index, [replace(known[0], promoted=True)])
    assert (done.promoted, done.unchanged, ids) == (0, 1, ())
    assert index.total_changes == before


def test_a_newer_description_takes_the_place_of_the_old_one(index: sqlite3.Connection) -> None:
    promote(index, [described(1, "a.py")])
    done, ids = promote(index, [described(1, "a.py"), described(5, "a.py")])
    assert (done.promoted, ids) == (1, (5,))
    assert purposes(index) == {1: "purpose 5"}


def test_a_file_that_changed_loses_its_description(index: sqlite3.Connection) -> None:
    promote(index, [described(1, "a.py"), described(2, "b.py")])
    index.execute("UPDATE files SET content_hash = 'new' WHERE path = 'a.py'")
    assert promote(index, [described(1, "a.py"), described(2, "b.py")])[0].outdated == ("a.py",)
    assert purposes(index) == {2: "purpose 2"}


def test_descriptions_that_the_record_knows_nothing_of_stay(index: sqlite3.Connection) -> None:
    own = FileMetadataRow(
        file_id=3,
        purpose="by hand",
        module=None,
        domain=None,
        concepts=(),
        public_api_surface=(),
        complexity_notes=None,
    )
    metadata.put_metadata(index, [own])
    promote(index, [described(1, "a.py")])
    assert metadata.get_metadata(index, 3) == own


def test_nothing_comes_in_where_something_fails(index: sqlite3.Connection) -> None:
    index.execute(
        "CREATE TRIGGER no_b BEFORE INSERT ON file_metadata WHEN NEW.file_id = 2 "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.IntegrityError):
        promote(index, [described(1, "a.py"), described(2, "b.py")])
    assert purposes(index) == {}


def test_what_is_promoted_is_found_whatever_the_case(index: sqlite3.Connection) -> None:
    promote(index, [described(1, "a.py")])
    for wanted in (
        {"domain": "money"},
        {"module": "M"},
        {"concept": "B"},
        {"domain": "MONEY", "concept": "ä"},
    ):
        given = {"domain": None, "module": None, "concept": None} | wanted
        found = metadata.search_by_metadata(index, **given)
        assert [file.path for file in found] == ["a.py"], wanted


def test_of_several_descriptions_of_one_content_the_newest_is_listed(tmp_path: Path) -> None:
    def row(content_hash: str, purpose: str) -> EnrichmentRow:
        return EnrichmentRow(
            file_id=1,
            path="a.py",
            content_hash=content_hash,
            model="m",
            purpose=purpose,
            module="",
            domain="",
            raw_prompt="?",
            raw_response="!",
            timestamp="2026-01-02T03:04:05Z",
        )

    with contextlib.closing(connect_file("raw", tmp_path / "raw.sqlite")) as conn:
        ids = [append_enrichment(conn, row(*said)) for said in (("x", "1"), ("y", "2"), ("x", "3"))]
        assert [each.purpose for each in list_descriptions(conn)] == ["2", "3"]
        mark_promoted(conn, ids[1:])
        assert [each.promoted for each in ENRICHMENT_OUTPUTS.select(conn, "ORDER BY path, id")] == [
            False,
            True,
            True,
        ]
