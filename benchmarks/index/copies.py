"""Copies of repositories that the index benchmarks may change, and the changes that are made to them."""

import ast
import contextlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from testing.parsed_files import with_function

from benchmarks.commits.checkouts import git
from clean_room_agent.syntax import grammar_of
from clean_room_agent.workspace import FOLDER, Workspace

PULLED = 100
"""Commits that come at once."""
OWN_NAMES = 5
"""A file that defines fewer public functions and classes passes others' names on."""
SYMBOLS = """
    SELECT f.path AS path, f.size_bytes AS size, s.name AS name, s.start_line AS first, s.end_line AS last
    FROM symbols s JOIN files f ON f.id = s.file_id
    WHERE s.parent_symbol_id IS NULL AND s.kind IN ('function', 'class') ORDER BY f.path, s.start_line
"""
IMPORTED = """
    SELECT f.path, count(DISTINCT d.source_file_id) FROM dependencies d JOIN files f ON f.id = d.target_file_id
    GROUP BY f.id ORDER BY 2 DESC, 1
"""


class Edit(Struct, frozen=True, kw_only=True):
    """A file before and after somebody worked on it."""

    path: str
    before: bytes
    after: bytes


class Edits(Struct, frozen=True, kw_only=True):
    """The changes that are measured, each alone."""

    body: Edit
    """A statement more in a function of the file of middle size."""
    added: Edit
    """A function more in that file."""
    hub: Edit
    """A function more in the file that most others import."""
    renamed: Edit
    """Another name for the function or class that is mentioned in most files, of the most imported file with enough
    names of its own; its users are left as they are."""
    importers: int
    """Files that import the hub."""
    renamed_name: str
    mentions: int
    """Files in which the renamed name stands."""


def clone(source: Path, top: Path) -> Path:
    """`top` is a clone of `source` with its whole history, at its HEAD and clean, without an index of ours."""
    if not top.exists():
        top.parent.mkdir(parents=True, exist_ok=True)
        git(top.parent, "clone", "-q", str(source.resolve()), str(top))
    git(top, "checkout", "-q", "--force", git(source, "rev-parse", "HEAD"))
    git(top, "clean", "-q", "-fdx")
    forget(top)
    return top


def forget(top: Path) -> None:
    """There is no index of ours, nor anything else that we keep."""
    shutil.rmtree(top / FOLDER, ignore_errors=True)


def before_pull(top: Path, count: int = PULLED) -> tuple[str, int]:
    """The nearest first-parent ancestor of HEAD that is at least `count` commits behind, and how many it is.

    Raises:
        SystemExit: the history is shorter.
    """
    line = git(top, "rev-list", "--first-parent", f"--max-count={count + 1}", "HEAD").split("\n")
    for ancestor in line:
        between = int(git(top, "rev-list", "--count", f"{ancestor}..HEAD"))
        if between >= count:
            return ancestor, between
    sys.exit(f"{top.name} has fewer than {count} commits")


@contextlib.contextmanager
def edited(top: Path, edit: Edit) -> Iterator[None]:
    """The file holds the change meanwhile."""
    place = top / edit.path
    place.write_bytes(edit.after)
    try:
        yield
    finally:
        place.write_bytes(edit.before)


def choose_edits(top: Path) -> Edits:
    """Changes of files that the index of `top` names."""
    with contextlib.closing(sqlite3.connect(f"file:{Workspace(repo=top).curated}?mode=ro", uri=True)) as conn:
        conn.row_factory = sqlite3.Row
        symbols = [row for row in conn.execute(SYMBOLS) if grammar_of(row["path"])]
        imported = [(path, count) for path, count in conn.execute(IMPORTED) if grammar_of(path)]
    own: dict[str, list[sqlite3.Row]] = {}
    for row in symbols:
        own.setdefault(row["path"], []).append(row)
    usual = _usual_file(top, own)
    hub, importers = imported[0]
    known = next(path for path, _ in imported if _public(own.get(path, ())) >= OWN_NAMES)
    usual_names = [row["name"] for row in own[known] if not row["name"].startswith("_")]
    mentions, renamed_name = max((_mentions(top, name), name) for name in usual_names)
    first = next(row["first"] for row in own[known] if row["name"] == renamed_name)
    return Edits(
        body=_edit(top, usual, with_statement((top / usual).read_bytes(), usual, own[usual])),
        added=_edit(top, usual, with_function((top / usual).read_bytes(), usual)),
        hub=_edit(top, hub, with_function((top / hub).read_bytes(), hub)),
        renamed=_edit(top, known, with_name((top / known).read_bytes(), renamed_name, first)),
        importers=importers,
        renamed_name=renamed_name,
        mentions=mentions,
    )


def with_statement(source: bytes, path: str, symbols: list[sqlite3.Row]) -> bytes | None:
    """The source with a statement more in a function; None where none of the functions is written in a usual way."""
    lines = source.decode().split("\n")
    if grammar_of(path) == "python":
        functions = [node for node in _statements(source) if isinstance(node, ast.FunctionDef)]
        if not functions:
            return None
        last = functions[0].body[-1]
        lines.insert(last.lineno - 1, " " * last.col_offset + "measured = len(str())")
        return "\n".join(lines).encode()
    for row in symbols:
        if row["last"] > row["first"] + 2 and lines[row["last"] - 1] == "}":
            lines.insert(row["last"] - 1, "  String(0)")
            return "\n".join(lines).encode()
    return None


def with_name(source: bytes, name: str, first: int) -> bytes:
    """The source with another name for what is defined from line `first` on."""
    lines = source.splitlines(keepends=True)
    head, tail = b"".join(lines[: first - 1]), b"".join(lines[first - 1 :])
    return head + re.sub(rb"\b%s\b" % re.escape(name.encode()), f"{name}Measured".encode(), tail, count=1)


def _statements(source: bytes) -> list[ast.stmt]:
    """Of the module; none where it is of another Python than this one."""
    try:
        return ast.parse(source).body
    except SyntaxError:
        return []


def _usual_file(top: Path, own: dict[str, list[sqlite3.Row]]) -> str:
    """Of the files in which a function can be changed, and that are no tests, the one of middle size."""
    fit = [
        path
        for path, rows in own.items()
        if "test" not in path and with_statement((top / path).read_bytes(), path, rows) is not None
    ]
    if not fit:
        sys.exit(f"{top.name} has no file whose functions can be changed")
    middle = statistics.median_low(own[path][0]["size"] for path in fit)
    return next(path for path in fit if own[path][0]["size"] == middle)


def _edit(top: Path, path: str, after: bytes | None) -> Edit:
    assert after is not None
    return Edit(path=path, before=(top / path).read_bytes(), after=after)


def _public(rows: Sequence[sqlite3.Row]) -> int:
    return sum(not row["name"].startswith("_") for row in rows)


def _mentions(top: Path, name: str) -> int:
    done = subprocess.run(
        ("git", "grep", "-l", "-w", "-F", "-z", "-e", name), cwd=top, capture_output=True, check=False
    )
    return done.stdout.count(b"\0")
