"""Databases with flipped bits and odd values: a command answers, or says which file is damaged and what to do."""

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.solving import Project, make_project

from clean_room_agent.app.record_check import find_damage
from clean_room_agent.db.connection import is_sound
from clean_room_agent.workspace import Workspace

COMMANDS = (
    *(
        ("runs",),
        ("show", "@"),
        ("show", "@", "--json"),
        ("show", "@", "--diff"),
        ("show", "@", "--prompts"),
        ("stats",),
    ),
    *(
        ("replay", "@"),
        ("prune",),
        ("train-plan",),
        ("adapters", "list"),
        ("check",),
        ("retrieve", "split"),
        ("index",),
    ),
)
AT_A_TIME = 3
SHORT = 6


class Subject:
    """A repository with a solved run, and its databases as they should be."""

    def __init__(self, work: Path) -> None:
        self.project: Project = make_project(work)
        told = self.project.solve_scripted()
        assert told.code == 0, told.err
        workspace = Workspace(repo=self.project.top)
        self.databases = (workspace.raw, workspace.curated)
        self._sound = work / "sound"
        for path in self.databases:
            with contextlib.closing(sqlite3.connect(path)) as conn:
                conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copytree(workspace.folder, self._sound)

    def restore(self) -> None:
        for path in self.databases:
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
            shutil.copy(self._sound / path.name, path)


def damage(path: Path, rng: random.Random) -> None:
    """Flip bits, overwrite a piece, or cut the file off."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            data[place] ^= 1 << rng.randrange(8)
        case 1:  # in the head of a page
            data[place // 4096 * 4096 + rng.randrange(100)] ^= 1 << rng.randrange(8)
        case 2:
            data[place : place + 512] = bytes(512)
        case _:
            del data[place:]
    path.write_bytes(data)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return Subject(tmp_path_factory.mktemp("damaged"))


@pytest.mark.parametrize("seed", range(SHORT))
def test_no_command_takes_damage_for_a_bug_of_its_own(subject: Subject, seed: int) -> None:
    rng = random.Random(seed)
    subject.restore()
    damage(subject.databases[seed % 2], rng)
    found = subject.project.run_here("check", "--record")[0] == 1
    for command in rng.sample(COMMANDS, AT_A_TIME):
        code, _, err = subject.project.run_here(*command)
        assert code in {0, 1, 2, 3, 4}
        assert "this is a bug" not in err
        assert found or "raw.sqlite is damaged" not in err, "the check is silent"


@pytest.fixture
def record(subject: Subject) -> Iterator[Path]:
    """The record of a solved run, to be damaged."""
    raw = Workspace(repo=subject.project.top).raw
    subject.restore()
    yield raw
    subject.restore()


@contextlib.contextmanager
def changing(record: Path) -> Iterator[sqlite3.Connection]:
    """The record, without what keeps it from being changed."""
    with contextlib.closing(sqlite3.connect(record, isolation_level=None)) as conn:
        triggers = conn.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            conn.execute(f"DROP TRIGGER {name}")
        yield conn
        for _, text in triggers:
            conn.execute(text)


def checked(project: Project) -> list[str]:
    """The faults that `cra check --record` names."""
    code, out, err = project.run_here("check", "--record", "--json")
    assert (code, err) == (1, "")
    return [f"{line['name']}: {line['text']}" for line in json.loads(out)["checks"] if not line["ok"]]


VALUES = {
    "a setting that is no JSON": (
        "UPDATE orchestrator_runs SET config = substr(config, 2)",
        "values: orchestrator_runs.config of row 1 is not JSON",
        ("replay", "@"),
    ),
    "a text that is not UTF-8": (
        "UPDATE orchestrator_runs SET task_description = CAST(x'41ff' AS TEXT)",
        "values: orchestrator_runs.task_description of a row is not UTF-8: 'A\\\\xff'",
        ("runs",),
    ),
    "an id that no file could have": (
        "UPDATE orchestrator_runs SET task_id = '../x'",
        "values: '../x' cannot be the id of a run",
        ("show", "@"),
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_cannot_be_read_is_found_and_named(subject: Subject, record: Path, name: str) -> None:
    statement, fault, command = VALUES[name]
    with changing(record) as conn:
        conn.execute(statement)
    assert checked(subject.project) == [fault]
    code, _, err = subject.project.run_here(*command)
    assert code in {0, 1}
    assert "bug" not in err
    if code == 1:
        assert err.startswith(f"error: {record} is damaged: {fault.removeprefix('values: ')}")
        assert "-> `cra check --record --repo" in err


DAMAGED_INDEX = {
    "no time": ("UPDATE commits SET timestamp = ''", "commits.timestamp of a row is no time"),
    "no number": (
        "UPDATE index_state SET value = '{' WHERE key = 'max_file_bytes'",
        "index_state.value of max_file_bytes is not one that is stored",
    ),
    "no JSON": ("UPDATE commit_terms SET terms = '{'", "commit_terms.terms of a row is no JSON object"),
    "other JSON": ("UPDATE commit_terms SET terms = '-1'", "commit_terms.terms of a row is no JSON object"),
    "no such column": (
        "ALTER TABLE repos RENAME COLUMN remote_url TO remote_vrl",
        "the table repos is not as the program makes it",
    ),
}


@pytest.mark.usefixtures("record")
@pytest.mark.parametrize("name", DAMAGED_INDEX)
def test_what_is_wrong_in_an_index_is_named_with_its_remedy(subject: Subject, name: str) -> None:
    statement, fault = DAMAGED_INDEX[name]
    workspace = Workspace(repo=subject.project.top)
    with changing(workspace.curated) as conn:
        conn.execute(statement)
    damage = find_damage(workspace)
    assert damage is not None
    assert damage.text == f"{workspace.curated} is damaged: {fault}"
    assert damage.remedy == "`cra index --full` builds it anew"
    for command in (("retrieve", "split a bill"), ("check",)):
        _, out, err = subject.project.run_here(*command)
        assert "bug" not in out + err
    assert subject.project.run_here("index", "--full")[0] == 0
    assert find_damage(workspace) is None


@pytest.mark.usefixtures("record")
def test_an_index_that_is_damaged_is_built_anew(subject: Subject) -> None:
    curated = Workspace(repo=subject.project.top).curated
    data = bytearray(curated.read_bytes())
    data[5000:9000] = bytes(4000)
    curated.write_bytes(data)
    code, _, err = subject.project.run_here("retrieve", "split a bill")
    if code:
        assert "`cra index --full --repo" in err
    assert subject.project.run_here("index", "--full")[0] == 0
    assert is_sound("curated", curated)
