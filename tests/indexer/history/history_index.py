"""An index of history alone: the files of a work tree, and the tables of their past by natural keys."""

import contextlib
from pathlib import Path

from testing.repositories import git

from clean_room_agent.db.connection import connect_file, transaction
from clean_room_agent.git.repository import list_files
from clean_room_agent.indexer.history.build import begin_history, read_state
from clean_room_agent.indexer.index_config import IndexConfig

Rows = list[tuple[object, ...]]
COMMIT = "(SELECT hash FROM commits WHERE id = {})"
PATH = "(SELECT path FROM files WHERE id = {})"
QUERIES = {
    "commits": """
        SELECT hash, author, message, timestamp, files_changed FROM commits ORDER BY id
    """,
    "files": f"SELECT {PATH.format('file_id')}, {COMMIT.format('commit_id')} FROM file_commits ORDER BY 1, 2",
    "pairs": f"""
        SELECT min({PATH.format("file_a_id")}, {PATH.format("file_b_id")}) AS a,
        max({PATH.format("file_a_id")}, {PATH.format("file_b_id")}) AS b, count, last_commit_hash
        FROM co_changes ORDER BY 1, 2
    """,
    "terms": f"SELECT {COMMIT.format('commit_id')}, terms FROM commit_terms ORDER BY 1",
    "renames": f"SELECT {COMMIT.format('commit_id')}, old_path, new_path FROM renames ORDER BY 1, 2",
    "lost": f"""
        SELECT p.path, {COMMIT.format("l.commit_id")} FROM lost_commits l JOIN lost_paths p ON p.id = l.path_id
        WHERE l.commit_id IN (SELECT id FROM commits) ORDER BY 1, 2
    """,
    "state": "SELECT key, value FROM index_state ORDER BY key",
}
ADD_FILE = "INSERT INTO files (repo_id, path, language, content_hash, size_bytes) VALUES (?, ?, '', '', 0)"


class HistoryIndex:
    """A database of a repository's files and history."""

    def __init__(self, top: Path, database: Path, config: IndexConfig | None = None) -> None:
        self.top = top
        self.config = config or IndexConfig()
        self.conn = connect_file("curated", database)
        self.conn.execute("INSERT INTO repos (id, path, remote_url, indexed_at) VALUES (7, 'x', NULL, '')")

    def refresh(self) -> int:
        """Files and history are those of now; how many commits were read."""
        head = (
            git(self.top, "rev-parse", "-q", "--verify", "HEAD^{commit}") if has_commits(self.top) else None
        )
        pending = begin_history(self.top, self.config, head=head, state=read_state(self.conn))
        with transaction(self.conn):
            ids = self._put_files()
            pending.collect()
            return pending.write(self.conn, repo_id=7, ids=ids)

    def rows(self) -> dict[str, Rows]:
        """Every table of history."""
        assert self.conn.execute("PRAGMA foreign_key_check").fetchall() == []
        return {name: [tuple(row) for row in self.conn.execute(query)] for name, query in QUERIES.items()}

    def commits_of(self, path: str) -> list[str]:
        """The messages of the commits that touched the file, oldest first."""
        query = (
            "SELECT c.message FROM file_commits fc JOIN commits c ON c.id = fc.commit_id "
            "JOIN files f ON f.id = fc.file_id WHERE f.path = ? ORDER BY c.id"
        )
        return [row[0] for row in self.conn.execute(query, (path,))]

    def assert_as_fresh(self) -> None:
        """The tables are those of an index that was made just now."""
        database = self.top.parent / "fresh.sqlite"
        for path in self.top.parent.glob("fresh.sqlite*"):
            path.unlink()
        fresh = HistoryIndex(self.top, database, self.config)
        with contextlib.closing(fresh.conn):
            fresh.refresh()
            expected = fresh.rows()
        found = self.rows()
        for name, rows in expected.items():
            assert found[name] == rows, name

    def _put_files(self) -> dict[str, int]:
        present = [path for path in list_files(self.top) if is_text(path)]
        known = {row[0]: row[1] for row in self.conn.execute("SELECT path, id FROM files")}
        for path in sorted(known.keys() - set(present)):
            self.conn.execute("DELETE FROM files WHERE id = ?", (known.pop(path),))
        for path in present:
            if path not in known:
                known[path] = self.conn.execute(ADD_FILE, (7, path)).lastrowid or 0
        return known


def is_text(path: str) -> bool:
    """Whether the index can hold the path."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def has_commits(top: Path) -> bool:
    """Whether HEAD names a commit."""
    return git(top, "rev-list", "--all", "--count") != "0"
