"""Databases with flipped bits: a command answers, or says which file is damaged and what to do."""

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.solving import Project, make_project

from clean_room_agent.db.connection import is_sound_index
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
    assert is_sound_index(curated)
