"""Writes the page on data from the `.sql` files: `python -m clean_room_agent.db.schema_page [PAGE]`."""

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

from msgspec import Struct, field

from clean_room_agent.db.connection import APPLICATION_IDS, Role
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrate, migrations

HEADER = """\
# Data: three databases, one folder

<!-- Written by `python -m clean_room_agent.db.schema_page`; edit that module or the `.sql` files, not this page. -->

```
<repo>/.clean_room/            0700, holds its own .gitignore with "*"; the user's .gitignore is never edited
  config.toml                  written by `cra init`
  curated.sqlite               what is known of the repository; rebuilt by `cra index` alone
  raw.sqlite                   append-only record of everything that happened; the training corpus
  raw.lock                     held (flock) for the length of a transaction by whoever writes the record
  trust.key                    random; a note in the user's state folder has it too: the folder was made here
  redaction.key                what secrets are hashed with where they are shown
  reports/                     pages that `cra report` wrote; nothing reads them
  sessions/session_<task>.sqlite   working memory of one task; archived into raw and deleted at its end
  sessions/curated_<task>.sqlite   a run's own copy of curated.sqlite, re-indexed after each accepted step
  sessions/task_<task>.lock    held (flock) by the process that works on the task; goes with the session
```

Three files, never three schemas in one: separate journals, backups, lifetimes. All are opened by
`db.connection.get_connection`: WAL, foreign keys on, `trusted_schema` off, ten seconds of patience, autocommit with
`BEGIN IMMEDIATE` where a transaction is meant. Read-only means `mode=ro`: nothing is created; only an older record is
brought up to date first. Every file of the folder is 0600, whatever the umask, and is made so where it was not.

- `raw` runs with `synchronous=FULL`: what was acknowledged survives power loss. `curated` can be made again,
  and so can a run's copy: they run with NORMAL, or without any sync. A session runs with FULL: a resumed run goes on
  from what stands in it.
- The header's `application_id` says whose file it is and of which role; `user_version` is the number of the last
  migration. A file that is newer than the program, or not ours, is refused.
- A migration is a file `db/schema/<role>/000N_<what>.sql`; it and its number are committed together. Files are only ever
  added: those that a release carried never change.
- Rows of the record are never deleted, but by `cra prune`: whole runs, each in one transaction (`db.raw.pruning`), in which
  alone the triggers that forbid it are away. An event `pruned` says before what goes of a run whose record stays.
- The record is written by one thread of a process (`db.raw.record.Record`); whatever waits shares one synced commit.
  `write` returns when its row is committed. Copies of a live database are made by SQLite's backup, never by copying
  the file.

## Who may touch what

| part | curated | raw | session |
|---|---|---|---|
| indexer | creates, writes | appends `index_runs` | - |
| enrichment | writes `file_metadata`, only with `--promote` | appends `enrichment_outputs` | - |
| retrieval | **reads only** | appends calls, decisions, refinements | creates, writes |
| execute | **never opens** | through its caller | - |
| orchestrator | **never opens** | appends runs, passes, attempts, validations, events, times, recovery decisions | reads, writes, archives |
| training | writes `adapter_metadata` only | appends plans, data sets, adapters, evaluations | reads, writes |
| report | reads only | reads only | - |

## Identity

- A task's id is a UUID4, made by the command that starts the task. Passes extend it with colons: `<task>:meta_plan`,
  `<task>:part_plan:<part>`, `<task>:impl:<part>:<step>`, `<task>:impl:<part>:<step>:retry_<n>`,
  `<task>:adjust:<part>:after_<step>`. Part and step ids match `[a-z0-9_-]{1,32}`.
- The columns named `task_id` hold the id of a pass wherever a pass did it. What belongs to a task is where `task_id` is
  the task's id or begins with it and a colon.
- A call keeps its identity when a task runs again: the pass without its task, the prompt's name, the item, the attempt.
- Ids of `curated.sqlite` are good for that file only; the record keeps paths and hashes beside them.
- Users may name a task by any unique beginning of its id.
- Timestamps are UTC, ISO 8601. JSON stands in TEXT columns that say so. Booleans are 0 and 1.

For any line of an accepted diff: `orchestrator_runs` → `orchestrator_passes` → `task_runs` → `retrieval_llm_calls`,
`retrieval_decisions`, `run_attempts` → `validation_results`.

## Keys of a session

`stage_outputs`, `final_context`, `task_query`, `to_change`; for orchestrated runs `verdicts`, `seconds_used`, and `done:<what>`: finished
work that a resumed run does not do again ([pipeline.md](pipeline.md)). The keys of a pass inside an orchestrated run are
written `<pass id>/<key>`.
"""

CREATE = re.compile(r"CREATE TABLE (\w+) \(")
ADD = re.compile(r"ALTER TABLE (\w+) ADD (?:COLUMN )?(\w+)[^;]*;\s*(?:--\s*(.*))?$")
COLUMN = re.compile(r"^    ([a-z_0-9]+) [A-Z][^\n]*?(?:\s--\s*(.*))?$")
CHOICES = re.compile(r"CHECK \((\w+) IN\s*\(('[^)]*')\)\)")
CONTINUED = re.compile(r"^ {5,}--\s*(.*)$")


class Comments(Struct):
    """The comments of the `.sql` files on one table."""

    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def page(folder: Path = SCHEMA_FOLDER) -> str:
    """The whole page, from the migrations under `folder`."""
    return HEADER + "".join(_role_section(role, folder / role) for role in get_args(Role))


def main(arguments: list[str]) -> None:
    """Write the page to the named file, or to standard output."""
    if arguments:
        Path(arguments[0]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


def _role_section(role: Role, folder: Path) -> str:
    texts = [migration.text for migration in migrations(folder)]
    comments = _comments("\n".join(texts))
    lines = ["", f"## {role}.sqlite" if role != "session" else "## session_<task>.sqlite", ""]
    lines += [
        *_leading_comment(texts[0]),
        "",
        f"Schema {len(texts)}, `application_id` {APPLICATION_IDS[role]:#x}.",
    ]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        migrate(conn, folder, application_id=APPLICATION_IDS[role])
        for (table,) in conn.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        ).fetchall():
            lines += _table_section(conn, table, comments.get(table, Comments()))
    return "\n".join(lines) + "\n"


def _table_section(conn: sqlite3.Connection, table: str, comments: Comments) -> Iterator[str]:
    targets = {row[3]: row[2] for row in conn.execute(f"PRAGMA foreign_key_list({table})")}
    (text,) = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    choices = {name: " ".join(values.replace("'", "").split()) for name, values in CHOICES.findall(text)}
    yield from ("", f"### {table}", "", comments.table, "", "| column | type | |", "|---|---|---|")
    for _, name, kind, required, _, key in conn.execute(f"PRAGMA table_info({table})").fetchall():
        words = [
            "key" if key else "",
            f"→ {targets[name]}" if name in targets else "",
            choices.get(name, ""),
            comments.columns.get(name, ""),
        ]
        optional = "" if required or key else ", or NULL"
        text = "; ".join(word for word in words if word).replace("|", "\\|")
        yield f"| `{name}` | {kind}{optional} | {text} |"
    indexes = sorted(row[1] for row in conn.execute(f"PRAGMA index_list({table})") if row[3] == "c")
    if indexes:
        yield from ("", "Indexes: " + ", ".join(_index(conn, name) for name in indexes) + ".")


def _index(conn: sqlite3.Connection, name: str) -> str:
    return f"`({', '.join(row[2] for row in conn.execute(f'PRAGMA index_info({name})'))})`"


def _leading_comment(text: str) -> Iterator[str]:
    """The comment at the top of the file. Its indented lines are a list; lines with more indentation continue an entry."""
    for line in text.splitlines():
        if not line.startswith("--"):
            return
        words = line[3:]
        entry = words.startswith("  ") and not words.startswith("   ")
        yield f"- {words[2:]}" if entry else words


def _comments(text: str) -> dict[str, Comments]:
    """By table: the comment directly above CREATE TABLE, and those next to or below its columns."""
    found: dict[str, Comments] = {}
    above: list[str] = []
    table = column = ""
    for line in text.splitlines():
        if match := CREATE.match(line):
            table, column = match.group(1), ""
            found[table] = Comments(table=" ".join(above))
        elif match := ADD.match(line):
            found[match.group(1)].columns[match.group(2)] = match.group(3) or ""
        elif line.startswith(")"):
            table = ""
        elif table:
            column = _read_column(found[table].columns, line, column)
        above = [*above, line[2:].strip()] if line.startswith("--") else []
    return found


def _read_column(columns: dict[str, str], line: str, current: str) -> str:
    if match := COLUMN.match(line):
        columns[match.group(1)] = (match.group(2) or "").strip()
        return match.group(1)
    if match := CONTINUED.match(line):
        columns[current] = f"{columns.get(current, '')} {match.group(1)}".strip()
    elif "--" in line:
        columns[current] = line.split("--", 1)[1].strip()
    return current


if __name__ == "__main__":
    main(sys.argv[1:])
