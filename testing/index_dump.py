"""Indexing for tests, and an index as rows by natural keys: without ids, times and stat columns."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import postings
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.build import IndexSummary, index_repository
from clean_room_agent.indexer.extract import prepare
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.languages.registry import BY_GRAMMAR

Rows = list[tuple[object, ...]]
SYMBOL = "(SELECT s.qualified_name || ':' || s.place FROM symbols s WHERE s.id = {})"
SYMBOL_PATH = "(SELECT f.path FROM symbols s JOIN files f ON f.id = s.file_id WHERE s.id = {})"
PATH = "(SELECT f.path FROM files f WHERE f.id = {})"
QUERIES = {
    "repos": "SELECT path, remote_url FROM repos",
    "files": "SELECT path, language, content_hash, size_bytes, parse_error FROM files ORDER BY path",
    "symbols": f"""
        SELECT {PATH.format("o.file_id")}, qualified_name, name, kind, start_line, end_line, signature,
        {SYMBOL.format("o.parent_symbol_id")}, place FROM symbols o ORDER BY 1, place
    """,
    "docstrings": f"""
        SELECT {PATH.format("file_id")}, {SYMBOL.format("symbol_id")}, content, format, parsed_fields FROM docstrings
        ORDER BY 1, 2
    """,
    "comments": f"""
        SELECT {PATH.format("file_id")}, {SYMBOL.format("symbol_id")}, line, content, kind, is_rationale
        FROM inline_comments ORDER BY 1, line, content
    """,
    "dependencies": f"""
        SELECT {PATH.format("source_file_id")}, {PATH.format("target_file_id")}, kind FROM dependencies ORDER BY 1, 2
    """,
    "symbol_references": f"""
        SELECT {SYMBOL_PATH.format("caller_symbol_id")}, {SYMBOL.format("caller_symbol_id")},
        {SYMBOL_PATH.format("callee_symbol_id")}, {SYMBOL.format("callee_symbol_id")}, reference_kind, confidence
        FROM symbol_references ORDER BY 1, 2, 3, 4, 5
    """,
    "file_names": f"""
        SELECT {PATH.format("file_id")}, imports, interface, uses FROM file_names ORDER BY 1
    """,
    "lookups": f"""
        SELECT {PATH.format("source_file_id")}, {PATH.format("target_file_id")}, names FROM lookups ORDER BY 1, 2
    """,
    "import_targets": f"""
        SELECT {PATH.format("o.file_id")}, key, {PATH.format("value")} FROM import_targets o, json_each(o.targets)
        ORDER BY 1, 2
    """,
    "reexports": f"""
        SELECT {PATH.format("file_id")}, name, {PATH.format("target_file_id")}, {SYMBOL.format("symbol_id")}
        FROM reexports ORDER BY 1, 2
    """,
    "commits": """
        SELECT hash, author, message, timestamp, files_changed FROM commits ORDER BY id
    """,
    "file_commits": f"""
        SELECT {PATH.format("file_id")}, (SELECT hash FROM commits WHERE id = commit_id) FROM file_commits ORDER BY 1, 2
    """,
    "co_changes": f"""
        SELECT min({PATH.format("file_a_id")}, {PATH.format("file_b_id")}) AS a,
        max({PATH.format("file_a_id")}, {PATH.format("file_b_id")}) AS b, count, last_commit_hash
        FROM co_changes ORDER BY 1, 2
    """,
    "commit_terms": "SELECT (SELECT hash FROM commits WHERE id = commit_id), terms FROM commit_terms ORDER BY 1",
    "skipped_files": "SELECT path, size_bytes, reason FROM skipped_files ORDER BY path",
    "search_files": f"""
        SELECT {PATH.format("file_id")}, path_len, symbols_len, docstrings_len, comments_len, body_len, words,
        hex(chunks) FROM search_files ORDER BY 1
    """,
}


def index(
    top: Path,
    *,
    jobs: int = 1,
    full: bool = False,
    continue_on_error: bool = False,
    config: IndexConfig | None = None,
) -> IndexSummary:
    """The summary of an index run."""
    prepare(BY_GRAMMAR)  # once for all processes that index runs fork
    return index_repository(
        top,
        config=config or IndexConfig(),
        jobs=jobs,
        full=full,
        continue_on_error=continue_on_error,
        progress=lambda _done, _total: None,
    )


def list_entries(conn: Connection) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Every posting: file id, term, frequencies in `FIELDS`; by bucket and term."""
    for number, *bucket in conn.execute(postings.BUCKETS).fetchall():
        for term, entries in postings.unpacked(tuple(bucket)).items():
            for slot, *counts in postings._FILE.iter_unpack(entries):
                yield number * postings.BUCKET + slot, term, tuple(counts)


def dump(conn: Connection) -> dict[str, Rows]:
    """Every derived table."""
    paths = {row[0]: row[1] for row in conn.execute("SELECT id, path FROM files")}
    entries = [(term, paths[file_id], *counts) for file_id, term, counts in list_entries(conn)]
    tables = {name: [tuple(row) for row in conn.execute(query)] for name, query in QUERIES.items()}
    return {**tables, "postings": sorted(entries)}


def dump_of(top: Path) -> dict[str, Rows]:
    """Every derived table of the repository's index; its foreign keys hold."""
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
        return dump(conn)
