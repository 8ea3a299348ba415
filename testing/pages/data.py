"""The page `planning/data.md`, from the `.sql` files: `python -m testing.pages.data > planning/data.md` renews it."""

import re
import sqlite3
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import get_args

from clean_room_agent.db.connection import APPLICATION_IDS, Role
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrate, migrations

HEADER = """\
# Data: three databases, one folder

<!-- Written by `python -m testing.pages.data`; edit that module or the `.sql` files, not this page. -->

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
  alone the triggers that forbid it are away. An event `pruned` says before that a run goes.
- The record is written through one connection of a process (`db.raw.record.Record`), by one thread at a time. `write` returns
  when its row is committed and synced; what was posted before is in the same commit. Copies of a live database are made by
  SQLite's backup, never by copying the file.

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

ABOVE = re.compile(r"((?:^--[^\n]*\n)+)CREATE TABLE (\w+) \(", re.MULTILINE)
ADDED = re.compile(r"^ALTER TABLE (\w+) ADD (?:COLUMN )?(\w+)[^;]*;[ \t]*(--[^\n]*)$", re.MULTILINE)
OBJECTS = """
SELECT tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL
ORDER BY (SELECT min(m.rowid) FROM sqlite_master AS m WHERE m.tbl_name = sqlite_master.tbl_name), type DESC, name
"""


def page() -> str:
    """The whole page."""
    return HEADER + "".join(_role_section(role, SCHEMA_FOLDER / role) for role in get_args(Role))


def _role_section(role: Role, folder: Path) -> str:
    """The role's tables and indexes as SQLite has them after all migrations, with the comments of these."""
    texts = [migration.text for migration in migrations(folder)]
    comments = {table: above for text in texts for above, table in ABOVE.findall(text)}
    lines = [f"\n## {role}.sqlite" if role != "session" else "\n## session_<task>.sqlite", ""]
    lines += [f"Schema {len(texts)}, `application_id` {APPLICATION_IDS[role]:#x}.", "", "```sql"]
    lines += takewhile(lambda line: line.startswith("--"), texts[0].splitlines())
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        migrate(conn, folder, application_id=APPLICATION_IDS[role])
        for table, sql in conn.execute(OBJECTS).fetchall():
            if sql.startswith("CREATE TABLE"):
                lines.append("")
                lines += comments.get(table, "").splitlines()
                added = [found for text in texts for found in ADDED.findall(text) if found[0] == table]
                lines += [f"-- {column}: {comment[2:].strip()}" for _, column, comment in added]
            lines.append(f"{sql};")
    return "\n".join([*lines, "```", ""])


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - its output is the page
