"""Whole runs of the small project of `solving` in memory: its own tests and the oracle, but no git, process, server or index.

A run can be interrupted, gone on with, and repeated from its record, as `cra solve`, `--resume` and `cra replay` do.
"""

import contextlib
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field, structs
from rich.console import Console

from clean_room_agent.app.model_records import RecordSink
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.outcomes import OrchestratorResult, reason_of, status_of
from clean_room_agent.cli.show import WantedSections, chosen_sections
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.db.session import Session
from clean_room_agent.errors import CraError
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import Transport
from clean_room_agent.llm.transports.replay import ReplayTransport, resuming
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.solve import solve
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.orchestrator.task import Hint, PlanGiven
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.report.trace import choose, read_trace
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace
from testing.client.model_client import NOW, model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.oracle.oracle import Oracle
from testing.runs.in_process_tests import FolderOfTexts, InProcess
from testing.runs.memory_commits import PLACE, REPOSITORY
from testing.runs.memory_run import TASK_ID, MemoryProject, MemoryRun, MemoryRunner, Script
from testing.runs.recorded import Recorded, recorded_newest
from testing.runs.solving import MENDED_MONEY, TASK, TILL, UNITTEST, Spoil
from testing.runs.solving import Script as Answers
from testing.runs.spoiled_answers import SERVED
from testing.servers.ollama_in_memory import MemoryOllama
from testing.servers.ollama_script import Answer, Answerer, ChatCall

DEAD = Answer(status=500, error="llama runner process has unexpectedly stopped")


class UnittestRunner(MemoryRunner, kw_only=True):
    """Writes the files that are checked out into a folder, and carries the commands out in this process."""

    def checkout(self, commit: str) -> None:
        CommandRunner.checkout(self, commit)

    def run_apart(self, command: str) -> tuple[int, str]:
        return CommandRunner.run_apart(self, command)

    def _run_test_command(
        self,
        command: str,
        left_out: Collection[str] = (),
        *,
        traced: bool = False,
        observed: str = "",
        seconds: float | None = None,
    ) -> TestRun:
        self.commands_run.append(command)
        return CommandRunner._run_test_command(
            self, command, left_out, traced=traced, observed=observed, seconds=seconds
        )


class MemoryTold(Struct, frozen=True, kw_only=True):
    """What came of a run."""

    error: BaseException | None
    """What broke it off."""
    result: OrchestratorResult | None
    files: Mapping[str, str]
    """Those of its result; of the project where it has none."""
    recorded: Recorded
    memory: MemoryRun

    @property
    def ending(self) -> tuple[str, str]:
        """(status, reason) of the run."""
        return self.recorded.ending

    def notes(self, *kinds: str) -> list[tuple[str, str]]:
        """Kind and detail of the events of these kinds, in order."""
        return [(row.kind, row.detail) for row in self.recorded.events if row.kind in kinds]


class MemoryTill(MemoryProject, kw_only=True):
    """The project, and all that outlives a process of a run."""

    folder: Path
    """Where its files are written for its tests."""
    oracle: Oracle
    test_command: str = UNITTEST
    replayed: tuple[ModelCall, ...] = ()
    """The recording that answers in place of a model."""
    tests_are_broken: bool = False
    """Whether no command can be started."""
    _runners: int = 0
    _tables: dict[str, Any] = field(default_factory=dict)

    def solve_scripted(
        self, spoiled: Mapping[str, Sequence[Answer | str | Spoil | None]] | None = None, **tables: Any
    ) -> MemoryTold:
        """A new run, answered as the oracle does but for what is spoiled; `tables` are those of a configuration."""
        return self.solve(Answers(self.oracle, spoiled), **tables)

    def solve(self, answerer: Answerer, **tables: Any) -> MemoryTold:
        """A new run, answered so."""
        self._tables = tables
        return self._told(answerer, resumed=False)

    def resume(self, answerer: Answerer, *hints: str, **tables: Any) -> MemoryTold:
        """The run goes on in a new process, answered so; the configuration is the same but for these tables."""
        self._tables = {**self._tables, **tables}
        return self._told(answerer, resumed=True, hints=tuple(Hint(text=text) for text in hints))

    def replay(self) -> MemoryTold:
        """The run from its record alone, in a record of its own.

        Raises:
            ReplayMismatch: it now asks something else.
        """
        recording = self.record.write(calls.list_calls, TASK_ID)
        with memory_till(self.folder / "replay", self.files, task=self.task, oracle=self.oracle) as again:
            again.replayed, again.test_command = recording, self.test_command
            told = again.solve(_nobody, **self._tables)
            if isinstance(told.error, AssertionError):
                raise told.error
            return told

    def shown(self, place: str = "", **flags: Any) -> str:
        """What `cra show` prints of the run, or of a place in it."""
        wanted = WantedSections(**flags)
        out = io.StringIO()
        console = Console(file=out, width=400)
        workspace = Workspace(repo=PLACE)

        def show(conn: Connection) -> None:
            trace = read_trace(conn, TASK_ID)
            for part in chosen_sections(conn, workspace, trace, choose(trace, place), wanted):
                console.print(part.show(), highlight=False)

        self.record.write(show)
        return out.getvalue()

    def client(
        self, transport: ScriptedTransport, router: ModelRouter, meter: Meter, *, resumed: bool
    ) -> ModelClient:
        way: Transport = transport
        asked: frozenset[int] = frozenset()
        read: frozenset[int] = frozenset()
        if resumed:
            meter.begin(self.record.write(calls.total_of_task, TASK_ID))
            made = self.record.write(calls.list_calls, TASK_ID)
            way = resuming(made, way)
            asked = frozenset(call.id for call in made)
            read = frozenset(row.call_id for row in self.record.write(calls.list_readings, TASK_ID))
        if self.replayed:
            way = ReplayTransport(self.replayed)
        sink = RecordSink(self.record, meter, router, asked=asked, read=read)
        return model_client(way, sink, config=self.models, window=router.window("coding").context)

    def runner(self, base: str, testing: Mapping[str, Any]) -> MemoryRunner:
        self._runners += 1
        place = self.folder / f"tree-{self._runners}"
        worktree = Worktree(path=place, git_dir=place / ".git", repo=REPOSITORY, submodules=())
        runner = UnittestRunner(
            config=msgspec.convert({"test_command": self.test_command, **testing}, TestingConfig),
            tree=FolderOfTexts(worktree=worktree, files=lambda commit: self.history.files[commit]),
            inherited={},
            report=self.folder / f"reports-{self._runners}" / "results.xml",
            observer=self.observer,
            sandbox=InProcess(folder=place, is_broken=lambda: self.tests_are_broken),
            history=self.history,
            tests=self.tests,
        )
        runner.checkout(base)
        return runner

    def _told(self, answerer: Answerer, *, resumed: bool, hints: tuple[Hint, ...] = ()) -> MemoryTold:
        tables = dict(self._tables)
        self.models = models_config(**tables.pop("models", {}))
        ollama = MemoryOllama(answerer=answerer, models=SERVED)
        script: Script = ollama.transport(self.models).send
        memory = self.open(script, resumed=resumed, hints=hints, **tables)
        error: BaseException | None = None
        solved = None
        try:
            given = structs.replace(tables.get("given") or PlanGiven(), hints=hints)
            solved = solve(memory.run, given, run_baseline(memory.run))
        except (CraError, KeyboardInterrupt) as exc:
            error = exc
            memory.run.recorder.ended(status_of(exc), reason=reason_of(exc))
        commit = (solved.result_commit if solved else "") or memory.run.commits.base
        return MemoryTold(
            error=error,
            result=solved.result if solved else None,
            files=self.history.files[commit],
            recorded=self.record.write(recorded_newest),
            memory=memory,
        )


def dying(script: Answerer, title: str, number: int = 1) -> Answerer:
    """Answers as the script does, which is not asked at the prompt's call of that number (from 1): there, the server dies."""
    left = [number]

    def answer(call: ChatCall) -> Answer | str:
        left[0] -= call.title == title
        return DEAD if call.title == title and left[0] == 0 else script(call)

    return answer


def _nobody(_: object) -> str:
    raise AssertionError("a replay asks nobody")


@contextlib.contextmanager
def memory_till(
    folder: Path,
    files: Mapping[str, str] | None = None,
    changed: Mapping[str, str | None] | None = None,
    *,
    task: str = TASK,
    oracle: Oracle | None = None,
    test_command: str = UNITTEST,
) -> Iterator[MemoryTill]:
    """The till, or `files`; `changed` is what the oracle makes of some of them. Tests run below `folder`."""
    given = dict(files or {path: str(text) for path, text in TILL.items()})
    gold = {"till/money.py": MENDED_MONEY} if changed is None else changed
    known = oracle or Oracle(
        [GoldFile(path=path, before=given.get(path), after=after) for path, after in gold.items()]
    )
    folder.mkdir(parents=True, exist_ok=True)
    with (
        Record.in_memory(folder / "lock", clock=lambda: NOW) as record,
        Session.in_memory(TASK_ID, clock=lambda: NOW) as session,
    ):
        yield MemoryTill(
            files=given,
            tests=lambda _: {},
            record=record,
            session=session,
            task=task,
            folder=folder,
            oracle=known,
            test_command=test_command,
        )
