"""Plants faults in repositories with passing tests, for training: what the tests run is learned once, and then each unit of
faults becomes a shard, as one of commits does.
"""

import contextlib
import hashlib
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.discovery import find_test_commands
from clean_room_agent.app.run_index import IndexProcess, refresh_for_run
from clean_room_agent.app.run_wiring import run_parts, task_of
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.goals import TracedFunction
from clean_room_agent.errors import ConfigError, CraError, UsageError
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.file_contents import TextFile, atomic_write, decode
from clean_room_agent.folders import temporary_folder
from clean_room_agent.git.clones import Objects
from clean_room_agent.git.command import git, one_line
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import ParentCheckout
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.setup import opened_run
from clean_room_agent.orchestrator.spending import TimeLog
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.test_runs.goal_trace import trace_passing
from clean_room_agent.orchestrator.test_runs.ignored_folders import prepare_links
from clean_room_agent.redaction import Redactor
from clean_room_agent.safe_open import read_bytes, write_bytes
from clean_room_agent.training.bootstrap import Mined
from clean_room_agent.training.commit_sources import Source
from clean_room_agent.training.faults import Fault, GoldAnswers, draw_faults, make_fault_pairs
from clean_room_agent.training.licences import Licences, is_allowed
from clean_room_agent.training.pairs import MadePairs, Making, task_of_commit
from clean_room_agent.training.shards import Shard, shard_path, without_secrets, write_shard
from clean_room_agent.workspace import Workspace, forget

UNIT_FAULTS = 5
SLOWER, LEAST_SECONDS = 4.0, 20.0
"""What a fault may make of the tests' time."""
ATTEMPTS = {"max_attempts": 1, "max_refinement_loops": 0}
"""What a run has to be told; no question of the direct route depends on it."""


class Learned(Struct, frozen=True, kw_only=True):
    """What the tests of a commit run."""

    command: str
    timestamp: str
    """Of the commit; UTC, ISO 8601."""
    seconds: float
    green: tuple[str, ...]
    """Tests that passed twice."""
    functions: tuple[TracedFunction, ...] = ()
    texts: dict[str, str] = {}
    """Of their files, by path."""


class FaultUnit(Struct, frozen=True, kw_only=True):
    """Some faults of one repository."""

    source: Source
    licence: str
    learned: Learned
    """Without functions and texts."""
    faults: tuple[Fault, ...]
    seed: str
    """Of their words."""

    @property
    def repo(self) -> str:
        """As the protocol says."""
        return self.source.name

    @property
    def content(self) -> Any:
        """As the protocol says."""
        return msgspec.to_builtins([self.source.head, self.learned.command, self.faults, self.seed])


def plant(
    sources: Sequence[Source],
    folder: Path,
    making: Making,
    settings: Settings,
    progress: Callable[[int, int], None],
    *,
    most: int,
    per_function: int,
    seed: int = 0,
) -> Mined:
    """The faults to plant, at most so many in a repository and in a function, in units. What tests run is kept below `folder`, and
    learned where it is not known.
    """
    units: list[FaultUnit] = []
    refused: Counter[str] = Counter()
    unread: list[tuple[str, str]] = []
    for number, source in enumerate(sources):
        progress(number, len(sources))
        licence = Licences(Objects(source.git_dir)).of(source.head)
        if not is_allowed(licence, making.licences):
            refused[f"licence: {licence or 'not known'}"] += 1
            continue
        try:
            learned = _learn_from_tests(source, folder, settings)
        except CraError as exc:
            unread.append((source.name, exc.message))
            continue
        words = f"{seed} {source.name}"
        chance = random.Random(words)  # noqa: S311 - guards nothing
        faults = draw_faults(learned.functions, learned.texts, chance, per_function=per_function, most=most)
        if not faults:
            unread.append((source.name, "its tests run nothing in which a fault can be planted"))
        known = msgspec.structs.replace(learned, functions=(), texts={})
        units += [
            FaultUnit(
                source=source,
                licence=licence,
                learned=known,
                faults=faults[start : start + UNIT_FAULTS],
                seed=words,
            )
            for start in range(0, len(faults), UNIT_FAULTS)
        ]
    planted = sum(len(unit.faults) for unit in units)
    return Mined(what="fault", units=tuple(units), seen=planted, refused=refused, unread=tuple(unread))


def _learn_from_tests(source: Source, folder: Path, settings: Settings) -> Learned:
    """What passing tests of the commit run. Raises ConfigError if none passes, or they cannot be run."""
    key = json.dumps([source.name, source.head, source.tests, settings.data.get("sandbox")], sort_keys=True)
    file = folder / "learned" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Learned)
    with _checked_out(source, settings) as checkout:
        top = checkout.root
        command = source.tests or next(iter(find_test_commands(top, sorted(checkout.paths()))), "")
        if not command:
            raise ConfigError(
                'no command is found that runs its tests; a manifest can name it (tests = "COMMAND")'
            )
        with _open_run(top, _for_tests(settings, command), wiring.NoTransport(), "learn") as run:
            first, second = run_baseline(run), run.tests.run_all("again")
            green = first.green() & second.green()
            if not green:
                raise ConfigError(f"no test passes: {len(first.red())} of `{command}` fail")
            functions, problem = trace_passing(run.tests, first)
            if not functions:
                raise ConfigError(f"what its tests run is not known: {problem or 'nothing of its own'}")
        seconds = int(one_line(git("show", "-s", "--format=%ct", source.head, cwd=top)))
        paths = sorted({one.path for one in functions} & checkout.paths())
        learned = Learned(
            command=command,
            timestamp=datetime.fromtimestamp(seconds, tz=UTC).isoformat(),
            seconds=first.end.duration_ms / 1000,
            green=tuple(sorted(green)),
            functions=functions,
            texts={path: decode(read_bytes(top, path)).text for path in paths},
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(file, msgspec.json.encode(learned))
    return learned


def make_fault_shard(folder: Path, unit: FaultUnit, making: Making, settings: Settings) -> None:
    """Create the unit's file atomically, unless it exists; the same faults give the same rows."""
    path = shard_path(folder, unit, making)
    if path.exists():
        return
    rows: list[dict[str, str]] = []
    counts: Counter[str] = Counter()
    with _checked_out(unit.source, settings) as checkout:
        for fault in unit.faults:
            right = decode(read_bytes(checkout.root, fault.path))
            made = _pairs_at(checkout, unit, fault, right, settings)
            if isinstance(made, str):
                counts[f"fault: {made}"] += 1
                continue
            counts.update(made.dropped)
            found = [one for one in definitions(fault.path, right.text) if one.symbol == fault.symbol]
            columns = {
                "repo": unit.repo,
                "commit": unit.source.head,
                "timestamp": unit.learned.timestamp,
                "license": unit.licence,
                # Faults of one function share their question.
                "task_id": task_of_commit(f"{unit.repo} {fault.path} {fault.symbol}"),
                "change": "\n".join(right.text[one.start : one.end] for one in found),
            }
            kept = without_secrets(made.pairs, Redactor(bytes), counts)
            rows += [columns | msgspec.structs.asdict(pair) for pair in kept]
    write_shard(path, Shard(rows=rows, counts=counts))


def _pairs_at(
    checkout: ParentCheckout, unit: FaultUnit, fault: Fault, right: TextFile, settings: Settings
) -> MadePairs | str:
    """The pairs of the fault, planted in the files that are checked out, which are as before afterwards; or why there are none."""
    gold = GoldAnswers()
    name = json.dumps(msgspec.to_builtins([unit.seed, unit.source.head, fault]))
    chance = random.Random(name)  # noqa: S311 - guards nothing
    timeout = max(LEAST_SECONDS, SLOWER * unit.learned.seconds)
    write_bytes(checkout.root, fault.path, right.encode(fault.mutation.applied(right.text)))
    try:
        with _open_run(checkout.root, _for_tests(settings, unit.learned.command, timeout), gold, name) as run:
            return make_fault_pairs(run, gold, fault, right.text, unit.learned.green, chance)
    except ConfigError:
        return "the tests do not end, or do not run"
    except UsageError as exc:
        return exc.message
    finally:
        checkout.show(unit.source.head)


@contextlib.contextmanager
def _checked_out(source: Source, settings: Settings) -> Iterator[ParentCheckout]:
    """The source's commit in a repository of its own, with the ignored folders that a run's tests would find."""
    with temporary_folder("bootstrap") as scratch, contextlib.ExitStack() as stack:
        checkout = ParentCheckout(source.git_dir, scratch / "tree")
        stack.callback(forget, Workspace(repo=checkout.root).folder)
        checkout.show(source.head)
        if source.git_dir.name == ".git":
            prepare_links(checkout.root, source.git_dir.parent, settings.worktree.link, how="copy")
        yield checkout


@contextlib.contextmanager
def _open_run(top: Path, settings: Settings, transport: Transport, name: str) -> Iterator[Run]:
    """A run of the files at `top`, whose task has no words yet."""
    workspace, task_id = Workspace(repo=top), str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    workspace.create()
    refresh_for_run(workspace, settings.index, task_id, lambda _done, _total: None)
    with (
        IndexProcess() as indexing,  # before there are threads
        wiring.open_services(workspace, settings, task_id, lambda _settings: transport) as services,
        run_parts(
            services,
            open_repository(top),
            task_of(settings, task_id, "", PlanGiven()),
            Nobody(),
            indexing=indexing,
            command="bootstrap",
            times=TimeLog(task_id, utc_now),
        ) as parts,
        opened_run(parts) as run,
    ):
        yield run


def _for_tests(settings: Settings, command: str, timeout: float | None = None) -> Settings:
    """The settings for runs of a repository with this command for its tests, and nothing else that is run there."""
    testing = {"test_command": command} | ({"timeout": timeout} if timeout else {})
    solve = ATTEMPTS | settings.data.get("solve", {})
    return Settings(source=settings.source, data={**settings.data, "testing": testing, "solve": solve})
