"""A run of the orchestrator without git, processes, files or a server: commits are dicts, the tests are a function of them."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.context import (
    BudgetAccount,
    ContextPackage,
    ContextRequest,
    RefinementRequest,
)
from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.artifacts.plans import Part, PartPlan, PlanStep, TargetFile
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import OrchestratorRunRow, get_orchestrator_run, list_events
from clean_room_agent.db.session import Session
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.journal import Journal, seconds_used
from clean_room_agent.orchestrator.run import Progress, Run, RunContext
from clean_room_agent.orchestrator.run_config import (
    EditConfig,
    EvidenceConfig,
    OrchestratorConfig,
    RecoveryConfig,
    SolveConfig,
    TestingConfig,
)
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.spending import Budget, Meter
from clean_room_agent.orchestrator.task import Hint, Hints, PlanGiven, RunLimits, Task
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun
from clean_room_agent.orchestrator.test_runs.worktrees import WorktreePool
from testing.client.memory_sink import MemorySink
from testing.client.model_client import NOW, budget_config, model_client, models_config
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.packages import shown_file
from testing.runs.memory_commits import PLACE, REPOSITORY, Files, MemoryCommits, MemoryHistory

TASK_ID = "0b0c0d0e-0000-4000-8000-000000000000"
TASK = "split(100, 3) must add up to 100"
WINDOW = 16_384

Tests = Callable[[Files], Mapping[str, Outcome]]
"""The outcome of each test, by the files that it runs on."""
Script = Callable[[ChatRequest], Scripted]


class MemoryRunner(CommandRunner, kw_only=True):
    """Runs no command: `tests` says what each test came to on the files that are checked out."""

    history: MemoryHistory
    tests: Tests
    commands_run: list[str] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    """How long each of them may take; None: as long as is configured."""
    duration_ms: int = 0
    """How long each takes."""
    exits: Callable[[str, Files], int] = lambda _command, _files: 0
    """How another command ends on the files that are checked out."""
    exit_code: int = 0
    """That of the test command where no test fails."""

    def checkout(self, commit: str) -> None:
        self.tree.clean_at = commit

    def inform(self, commit: str) -> tuple[str | None, str | None]:
        return None, None

    def run_apart(self, command: str) -> tuple[int, str]:
        code = self.exits(command, self.history.files[self.tree.clean_at])
        return code, f"{command} says {code}\n"

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
        self.seconds.append(seconds)
        made = pytest_run(self.tests(self.history.files[self.tree.clean_at]), command=command)
        code = made.end.returncode or self.exit_code
        return replace(made, end=replace(made.end, returncode=code, duration_ms=self.duration_ms))


class MemoryPool(WorktreePool):
    """Its runners are what `make` makes."""

    def __init__(self, make: Callable[[], MemoryRunner]) -> None:
        self._make = make
        self.own = make()
        """The runner of the run's own worktree."""
        self._runners = [self.own]
        self.notes = ("no sandbox here",)
        self.opened: list[str] = []
        self.closed = False

    def open(self, commit: str, *, resumed: bool = False) -> Self:
        self.opened.append(commit)
        return self

    def add(self) -> CommandRunner:
        return self._make()

    def __exit__(self, *_: object) -> None:
        self.closed = True


class Found(Struct, frozen=True, kw_only=True):
    """What a retrieval found."""

    package: ContextPackage


class MemoryIndex:
    """Shows the files that are asked for whole; where none is, all of them."""

    def __init__(self, commits: MemoryCommits, window: BudgetConfig) -> None:
        self._commits = commits
        self._window = window
        self._described = commits.base
        self.asked: list[ContextRequest] = []
        self.named: tuple[NamedDefinition, ...] = ()
        """The definitions that it knows."""

    @property
    def source(self) -> "MemoryIndex":
        return self

    def retrieve(self, request: ContextRequest) -> "Found":
        self.asked.append(request)
        return Found(package=self._package(request, request.files))

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        self.asked.append(request)
        return self._package(request, (*request.files, *refinement.missing_files))

    def definitions(self, names: Sequence[str]) -> tuple[NamedDefinition, ...]:
        return tuple(
            one
            for one in self.named
            if one.name.rpartition(".")[2] in {name.rpartition(".")[2] for name in names}
        )

    def mentioned(self, words: str) -> tuple[NamedDefinition, ...]:
        return tuple(one for one in self.named if one.name in words)

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        self._described = commit

    def described(self) -> str:
        return self._described

    def _package(self, request: ContextRequest, paths: Sequence[str]) -> ContextPackage:
        files = self._commits.history.files[self._described]
        shown = [path for path in dict.fromkeys(paths) if path in files] or sorted(files)
        items = tuple(shown_file(path, files[path]) for path in shown)
        account = BudgetAccount(
            context_window=self._window.context_window,
            reserved_tokens=self._window.reserved_tokens,
            used_tokens=sum(item.tokens for item in items),
        )
        return ContextPackage(pass_id=request.pass_id, task=request.task, items=items, budget=account)


class Noted:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notice(self, event: Event) -> None:
        self.events.append(event)


class MemoryProject(Struct, kw_only=True):
    """A repository in memory with its tests, and everything that outlives a process of a run."""

    files: Files
    tests: Tests
    record: Record
    session: Session
    history: MemoryHistory = field(default_factory=MemoryHistory)
    observer: Noted = field(default_factory=Noted)
    seconds: float = 0.0
    """What the clock shows."""
    task: str = TASK
    exit_code: int = 0
    """That of the test command where no test fails."""
    models: ModelsConfig = field(default_factory=models_config)

    def open(
        self,
        script: Script,
        *,
        resumed: bool = False,
        hints: tuple[Hint, ...] = (),
        window: int = WINDOW,
        testing: Mapping[str, Any] | None = None,
        given: PlanGiven | None = None,
        **limits: Mapping[str, Any],
    ) -> "MemoryRun":
        """A run that stands at the snapshot and was `given` plans; `limits` are tables such as `solve={"max_attempts": 1}`."""
        base = self.history.add(self.files)
        meter, router = Meter(), ModelRouter(self.models, budget_config(window))
        transport = ScriptedTransport(script)
        models = self.client(transport, router, meter, resumed=resumed)
        given = given or PlanGiven()
        task = Task(
            task_id=TASK_ID,
            description=self.task,
            hints=Hints(hints),
            limits=limits_of(**limits),
            given=given.evidence,
        )
        recorder = RunRecorder(
            run=self._run_row(base),
            stages="scope,precision",
            record=self.record,
            router=router,
            meter=meter,
            observer=self.observer,
            given=given.events,
            resumed=self.record.write(get_orchestrator_run, TASK_ID),
        )
        budget = Budget(
            task.limits.orchestrator,
            meter,
            lambda: self.seconds,
            used_before=seconds_used(self.session),
        )
        journal = Journal(
            session=self.session,
            recorder=recorder,
            budget=budget,
            hints=task.hints,
            interrupts=Interrupts(),
            behind=resumed,
        )
        commits = MemoryCommits(self.history, base, task.given.files)
        pool = MemoryPool(lambda: self.runner(base, testing or {}))
        index = MemoryIndex(commits, budget_config(window))
        run = Run(
            task=task,
            commits=commits,
            worktrees=pool,
            context=RunContext(index=index, journal=journal, commits=commits, runner=pool.own),
            models=models,
            journal=journal,
            progress=Progress(),
        )
        return MemoryRun(run=run, transport=transport, index=index, runner=pool.own, meter=meter)

    def events(self) -> list[tuple[str, str]]:
        """Kind and words of each event on record."""
        return [(event.kind, event.detail) for event in self.record.write(list_events, TASK_ID)]

    def _run_row(self, base: str) -> OrchestratorRunRow:
        return OrchestratorRunRow(
            task_id=TASK_ID,
            repo_path="/memory",
            task_description=self.task,
            timestamp=self.record.now(),
            program_version="0",
            base_commit=base,
        )

    def client(
        self, transport: ScriptedTransport, router: ModelRouter, meter: Meter, *, resumed: bool
    ) -> ModelClient:
        """The client of a run; its calls are in no record."""
        del meter, resumed
        return model_client(transport, MemorySink(), window=router.window("coding").context)

    def runner(self, base: str, testing: Mapping[str, Any]) -> MemoryRunner:
        """A runner of its own, which holds the commit `base`."""
        worktree = Worktree(path=PLACE / "tree", git_dir=PLACE / ".git", repo=REPOSITORY, submodules=())
        return MemoryRunner(
            config=msgspec.convert({"test_command": "pytest", **testing}, TestingConfig),
            tree=TestWorktree(worktree=worktree, clean_at=base),
            inherited={},
            report=PLACE / "results.xml",
            observer=self.observer,
            history=self.history,
            tests=self.tests,
            exit_code=self.exit_code,
        )


class MemoryRun(Struct, frozen=True, kw_only=True):
    """A run, and what stands behind it."""

    run: Run
    transport: ScriptedTransport
    index: MemoryIndex
    runner: MemoryRunner
    meter: Meter

    @property
    def asked(self) -> list[str]:
        """Pass and prompt of each question, in order."""
        return [
            f"{request.identity.pass_id} {request.identity.prompt}" for request in self.transport.requests
        ]


@contextlib.contextmanager
def memory_project(folder: Path, files: Files, tests: Tests) -> Iterator[MemoryProject]:
    """A project in memory; `folder` holds no more than the record's lock."""
    with (
        Record.in_memory(folder / "lock", clock=lambda: NOW) as record,
        Session.in_memory(TASK_ID, clock=lambda: NOW) as session,
    ):
        yield MemoryProject(files=files, tests=tests, record=record, session=session)


def limits_of(**tables: Mapping[str, Any]) -> RunLimits:
    """The limits of a run: three attempts at a step, one refinement, else what the configuration has by default."""
    solve = {"max_attempts": 3, "max_refinement_loops": 1, "route": "planned", **tables.get("solve", {})}
    return RunLimits(
        solve=msgspec.convert(solve, SolveConfig),
        orchestrator=msgspec.convert(tables.get("orchestrator", {}), OrchestratorConfig),
        edit=msgspec.convert(tables.get("edit", {}), EditConfig),
        recovery=msgspec.convert(tables.get("recovery", {}), RecoveryConfig),
        evidence=msgspec.convert(tables.get("evidence", {}), EvidenceConfig),
    )


def pytest_run(outcomes: Mapping[str, Outcome], *, command: str = "pytest") -> TestRun:
    """A run of pytest that came to these outcomes."""
    red = any(outcome in {"failed", "error"} for outcome in outcomes.values())
    return TestRun(
        command=command,
        end=CommandEnd(returncode=int(red)),
        report=TestReport(
            runner="pytest",
            outcomes=dict(sorted(outcomes.items())),
            named=True,
            collected=len(outcomes),
            passed=list(outcomes.values()).count("passed"),
        ),
    )


def step(name: str, *paths: str, needs: tuple[str, ...] = (), words: str = "Keep every cent.") -> PlanStep:
    """A step that modifies these files."""
    targets = tuple(TargetFile(path=path) for path in paths)
    return PlanStep(id=name, description=words, target_files=targets, depends_on=needs)


def part_plan(*steps: PlanStep, part: str = "p1") -> PartPlan:
    """A part's plan of these steps."""
    return PartPlan(part_id=part, task_summary="Keep every cent.", steps=steps)


def part(name: str, *paths: str, needs: tuple[str, ...] = ()) -> Part:
    """A part about these files."""
    return Part(id=name, description="Keep every cent.", affected_files=paths, depends_on=needs)
