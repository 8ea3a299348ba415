"""Faults that are planted for training: what is asked about them is what a run asks, and each answer makes the tests pass."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing import repositories
from testing.client.scripted_transport import ScriptedTransport
from testing.histories import FILES, LICENCE, plain_making
from testing.runs.solving import MENDED_MONEY, project_at

from clean_room_agent.app.planting import FaultUnit, make_fault_shard, plant
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.solving import SolveRequest, run_solve
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.filling import MADE_UP_GAPS
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.training.bootstrap import Mined, make_shards, missing_units
from clean_room_agent.training.commit_sources import Source
from clean_room_agent.training.pairs import Making
from clean_room_agent.training.shards import Shard, read_shard, shard_path
from clean_room_agent.workspace import Workspace

SOUND: repositories.Files = {**FILES, "till/money.py": MENDED_MONEY}
WEAK = {
    "LICENSE": LICENCE,
    "weak.py": "def weak(value):\n    count = value + 1\n    return value\n",
    "tests/test_weak.py": "import unittest\nimport weak\n\n\nclass T(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(weak.weak(2), 2)\n",
    "tests/__init__.py": "",
}


class World:
    """Somebody's configuration, and a repository to learn from."""

    def __init__(self, folder: Path, files: repositories.Files) -> None:
        home = repositories.make_repository(folder / "home-repo", {"a.py": "A = 1\n"})
        self.project = project_at(home, {}, {})
        self.project.configure("http://127.0.0.1:1", solve={"route": "auto"})
        self.settings: Settings = load_settings(Workspace(repo=home).config, Overrides())
        self.top = repositories.make_repository(folder / "mined", files)
        self.work = folder / "work"
        self.making: Making = plain_making()

    def planted(self, most: int = 4, tests: str = "", **bounds: int) -> Mined:
        head = repositories.git(self.top, "rev-parse", "HEAD").strip()
        source = Source(name="mined", git_dir=self.top / ".git", head=head, tests=tests)
        bounds = {"most": most, "per_function": 2, **bounds}
        return plant([source], self.work, self.making, self.settings, lambda _done, _total: None, **bounds)

    @property
    def make(self) -> Callable[[Any], object]:
        return partial(make_fault_shard, self.work / "shards", making=self.making, settings=self.settings)

    def shard_file(self, unit: FaultUnit) -> Path:
        self.make(unit)
        return shard_path(self.work / "shards", unit, self.making)

    def shard(self, unit: FaultUnit) -> Shard:
        return read_shard(self.shard_file(unit))


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, folder in (("HOME", "h"), ("XDG_CACHE_HOME", "c")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("planting"), SOUND)


def units_of_one(mined: Mined) -> list[FaultUnit]:
    """A unit for each fault."""
    units = [unit for unit in mined.units if isinstance(unit, FaultUnit)]
    return [replace(unit, faults=(fault,)) for unit in units for fault in unit.faults]


def asked_by_run(folder: Path, files: repositories.Files, words: str) -> set[tuple[str, str]]:
    """System text and prompt of all that a run asks, before it plans, of a model that fills gaps, but never with code."""
    made_up = {str(gap.request.shown): gap.right[0] for gap in MADE_UP_GAPS}

    def answer(request: ChatRequest) -> str:
        if request.gap is None and request.identity.prompt != "function":
            raise UsageError("it begins to plan")
        return made_up.get(request.prompt, ")(")

    transport = ScriptedTransport(answer)
    workspace = Workspace(repo=repositories.make_repository(folder, files))
    project = project_at(workspace.repo, {}, {})
    project.configure("http://127.0.0.1:1", solve={"route": "auto"})
    settings = load_settings(workspace.config, Overrides())
    with pytest.raises(UsageError, match="begins to plan"):
        run_solve(workspace, settings, SolveRequest(task=words), Nobody(), lambda _settings: transport)
    return {(request.system, request.prompt) for request in transport.requests}


def test_each_prompt_is_byte_for_byte_that_of_a_run_and_its_answer_is_right(
    world: World, tmp_path: Path
) -> None:
    units = units_of_one(world.planted())
    assert len(units) == 4
    assert len({unit.faults[0].mutation.kind for unit in units[:2]}) == 2
    for number, unit in enumerate(units[:2]):
        (fault,) = unit.faults
        right = str(SOUND[fault.path])
        rows = world.shard(unit).rows
        (function,) = [row for row in rows if row["stage"] == "function"]
        words = function["prompt"].split("## Task\n")[1].split("\n\n")[0]
        wrong = {**SOUND, fault.path: fault.mutation.applied(right)}
        asked = asked_by_run(tmp_path / str(number), wrong, words)
        assert {(row["system"], row["prompt"]) for row in rows} <= asked
        assert len(rows) > 1
        lines = function["change"].splitlines()
        for row in rows:
            filled = (
                row["prompt"].replace("<<GAP>>", row["answer"]) if row["stage"] == "fill" else row["answer"]
            )
            assert all(line in filled for line in lines if '"' not in line)


def test_only_a_fault_that_breaks_a_test_makes_pairs(tmp_path: Path) -> None:
    world = World(tmp_path, WEAK)
    unseen, seen = Counter[str](), Counter[str]()
    for unit in units_of_one(world.planted(most=5, per_function=9)):
        kind = unit.faults[0].mutation.kind
        (unseen if kind == "off by one" else seen).update(world.shard(unit).counts)
    assert unseen["fault: no test fails"] > 0
    assert "pairs" not in unseen
    assert seen["pairs"] > 0
    assert (world.top / "weak.py").read_text() == WEAK["weak.py"]


def test_the_bounds_hold_and_another_seed_plants_other_faults(world: World) -> None:
    few, more = world.planted(most=9, per_function=1), world.planted(most=9, per_function=2)
    places = [(fault.path, fault.symbol) for unit in units_of_one(few) for fault in unit.faults]
    assert len(places) == len(set(places)) == 3
    assert few.seen == 3
    assert more.seen == 6
    assert world.planted(most=2).seen == 2
    assert world.planted(most=4) == world.planted(most=4)
    assert world.planted(most=4) != world.planted(most=4, seed=1)


def test_what_was_broken_off_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    world.planted()
    learned = sorted((world.work / "learned").iterdir())
    before = [file.stat().st_mtime_ns for file in learned]
    units = units_of_one(world.planted(most=2))
    folder = tmp_path / "shards"
    make = partial(make_fault_shard, folder, making=world.making, settings=world.settings)

    def break_off(done: int, _total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_shards(make, units, break_off, jobs=1, engine="local")
    made = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    left = missing_units(folder, units, world.making)
    assert (len(made), len(left)) == (1, 1)
    make_shards(make, left, lambda _done, _total: None, jobs=1, engine="local")
    assert {file: file.stat().st_mtime_ns for file in made} == made
    assert [file.stat().st_mtime_ns for file in learned] == before
    for unit in units:
        assert shard_path(folder, unit, world.making).read_bytes() == (world.shard_file(unit).read_bytes())


def test_a_repository_without_passing_tests_is_named_with_the_reason(tmp_path: Path) -> None:
    red = World(tmp_path / "red", {**WEAK, "weak.py": "def weak(value):\n    return 1\n"}).planted()
    ((name, reason),) = red.unread
    assert (name, red.units) == ("mined", ())
    assert "no test passes" in reason
    bare = World(tmp_path / "bare", {"LICENSE": LICENCE, "weak.py": "A = 1\n"}).planted()
    assert "no command is found" in bare.unread[0][1]
    unlicensed = World(tmp_path / "gpl", {**WEAK, "LICENSE": "GNU General Public License"}).planted()
    assert unlicensed.refused == {"licence: GPL": 1}


def test_a_repository_s_own_python_runs_its_tests(tmp_path: Path) -> None:
    world = World(tmp_path, {**SOUND, ".gitignore": ".venv\n"})
    environment = world.top / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    (environment / "bin/python").symlink_to(sys.executable)
    mined = world.planted(most=1, tests=".venv/bin/python -m unittest -v")
    assert not mined.unread
    (unit,) = units_of_one(mined)
    assert world.shard(unit).rows


def test_pairs_become_a_dataset_like_those_of_commits(world: World) -> None:
    target = world.project.home / "data"
    code, out, err = world.project.run_here(
        *("bootstrap", str(world.top), "--faults", "2", "-o", str(target), "--work", str(world.work)),
        *("--jobs", "1", "--json"),
    )
    assert code == 0, err
    told = json.loads(out)
    assert (told["faults_seen"], told["functions_used"], told["units_left"]) == (2, 2, 0)
    assert told["dataset_ids"].keys() == {"fill", "function"}
    rows = [json.loads(line) for line in (target / "fill/train.jsonl").read_text().splitlines()]
    assert {row["license"] for row in rows} == {"MIT"}
    assert "By repository" in json.loads((target / "card.json").read_text())["split_rule"]
