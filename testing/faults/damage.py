"""Databases with flipped bits, overwritten bytes and odd values, and every command that reads them.

A command either answers, or ends with one message that says which file is damaged and what to do; `cra check --record` ends
with a line for what the others stumbled over. None reports a bug.
"""

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent.workspace import Workspace
from testing.faults.figures import Effort, Figure
from testing.runs.solving import Project, make_project

TRIES: dict[Effort, int] = {"short": 20, "full": 1_000}
CODES = frozenset({0, 1, 2, 3, 4})
CHECK = ("check", "--record")
COMMANDS: tuple[tuple[str, ...], ...] = (
    CHECK,
    ("runs",),
    ("runs", "--json"),
    ("show", "@"),
    ("show", "@", "--json"),
    ("show", "@", "--diff"),
    ("show", "@", "--tests"),
    ("show", "@", "--prompts"),
    ("show", "@", "--why", "till/money.py"),
    ("stats",),
    ("report", "@", "-o", "{home}/report.html"),
    ("replay", "@"),
    ("prune",),
    ("bug-report", "@", "-o", "{home}/bug.zip"),
    ("train-plan",),
    ("adapters", "list"),
    ("check",),
    ("retrieve", "split a bill"),
    ("index",),
)
ODD_VALUES = (None, -1, 1 << 62, "", "odd", "[", '{"a": ', "\ud7ff", 0.5, b"\xff\xfe", "9999-99-99T99:99:99Z")


AT_A_TIME = 4
"""Commands on one damaged database, beside the check."""


class Stumble(Struct, frozen=True, kw_only=True):
    """A command that did what none may."""

    seed: int
    damage: str
    command: str
    said: str


def flip_bits(path: Path, rng: random.Random) -> str:
    """Flip one to eight bits anywhere."""
    data = bytearray(path.read_bytes())
    places = [rng.randrange(len(data)) for _ in range(rng.choice((1, 1, 2, 8)))]
    for place in places:
        data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"bits at {places}"


def flip_in_head(path: Path, rng: random.Random) -> str:
    """Flip a bit of the file's header, or of a page's."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data) // 4096) * 4096 + rng.randrange(100)
    data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"a bit at {place}"


def overwrite(path: Path, rng: random.Random) -> str:
    """Overwrite a piece by zeros or noise."""
    data = bytearray(path.read_bytes())
    place, length = rng.randrange(len(data)), rng.choice((1, 16, 512, 4096))
    piece = bytes(length) if rng.random() < 0.5 else rng.randbytes(length)
    data[place : place + length] = piece
    path.write_bytes(data)
    return f"{length} bytes at {place}"


def cut_off(path: Path, rng: random.Random) -> str:
    """Shorten the file."""
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])
    return "cut off"


def break_value(path: Path, rng: random.Random) -> str:
    """Replace a value in a way that no constraint of the schema sees."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode = DELETE")
        made = conn.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
        for kind, name, _, _ in made:
            if kind == "trigger":
                conn.execute(f"DROP TRIGGER {name}")
        conn.execute("PRAGMA ignore_check_constraints = ON")
        tables = [name for kind, name, _, _ in made if kind == "table" and not name.startswith("sqlite_")]
        rng.shuffle(tables)
        table = next(name for name in tables if conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
        column = rng.choice([row[1] for row in conn.execute(f"PRAGMA table_info({table})")])
        value = rng.choice(ODD_VALUES)
        stored = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
        chosen = f"(SELECT min({column}) FROM {table})"
        with contextlib.suppress(sqlite3.Error):
            conn.execute(f"UPDATE {table} SET {column} = {stored} WHERE {column} = {chosen}", (value,))
        for kind, _, _, text in made:
            if kind == "trigger":
                conn.execute(text)
    return f"{table}.{column} = {value!r}"


DAMAGES: tuple[Callable[[Path, random.Random], str], ...] = (
    *(flip_bits, flip_in_head, overwrite, break_value, break_value, cut_off),
)


class Subject:
    """A repository with a solved run, and its databases as they should be."""

    def __init__(self, work: Path) -> None:
        self.project: Project = make_project(work)
        told = self.project.solve_scripted()
        assert told.code == 0, told.err
        self.workspace = Workspace(repo=self.project.top)
        self._sound = work / "sound"
        for path in (self.workspace.raw, self.workspace.curated):
            with contextlib.closing(sqlite3.connect(path)) as conn:
                conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copytree(self.workspace.folder, self._sound)

    def stumbles(self, seed: int) -> Iterator[Stumble]:
        """Damage a database, and give what some of the commands must not do."""
        rng = random.Random(seed)
        commands = (CHECK, *rng.sample(COMMANDS[1:], AT_A_TIME))
        self.restore()
        path = self.workspace.curated if rng.random() < 0.2 else self.workspace.raw
        damage = f"{path.name}: {rng.choice(DAMAGES)(path, rng)}"
        found_by_check = True
        for command in commands:
            words = [word.format(home=self.project.home) for word in command]
            code, out, err = self.project.run_here(*words)
            if command == CHECK:
                found_by_check = code == 1
            wrong = code not in CODES or "this is a bug" in err or "Traceback" in err
            silent = not found_by_check and "raw.sqlite is damaged" in err
            if wrong or silent:
                said = f"{'check is silent, ' * silent}{code}: {err or out}"
                yield Stumble(seed=seed, damage=damage, command=" ".join(command), said=said[-600:])

    def restore(self) -> None:
        """Put the databases back as they should be."""
        for path in (self.workspace.raw, self.workspace.curated):
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
            shutil.copy(self._sound / path.name, path)


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """The part of the scoreboard."""
    subject = Subject(work)
    tried = TRIES[effort]
    found = [stumble for seed in range(tried) for stumble in subject.stumbles(seed)]
    for stumble in found:
        print(f"  {stumble.seed} {stumble.damage}: cra {stumble.command}\n    {stumble.said}")
    return (
        Figure(
            name="commands on a damaged database that report a bug, or whose damage the check does not find",
            tried=tried * (1 + AT_A_TIME),
            found=len(found),
            target="0",
            met=not found,
        ),
    )
