"""`kill -9` of a run: before every journal point, and at random moments; then the run goes on, is sometimes killed again, and
must end as the one that nobody disturbed. There are four runs: one that goes well but for a retry or two, one that meets
whatever the recovery table does, one that follows a reviewed plan, and one that declares first what it adds, and draws several candidates at a time.
"""

import contextlib
import hashlib
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, field

from clean_room_agent.artifacts.names import task_of
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.artifacts.plans import MetaPlan, Part
from clean_room_agent.db.connection import connect_file
from clean_room_agent.execute.diagnose import DOCTOR
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.workspace import Workspace, trust
from testing import repositories
from testing.faults.figures import Effort, Figure
from testing.faults.killing import Ended, run_killed
from testing.runs.bills import bills_project
from testing.runs.long_run import Mind, Story, differences, long_project, newest_run, story_of
from testing.runs.solving import (
    MENDED_MONEY,
    PROBE,
    TASK,
    TILL,
    USERS_REFS,
    Project,
    make_project,
    project_at,
)
from testing.runs.spoiled_answers import ADVICE, SERVED, TOTAL, WRONG, cut_unless_small
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

SEED = 20261121
RANDOM_MOMENTS = {"short": 2, "full": 240}
"""Some come when the run is over already: these do not count."""
POINTS = {"short": 1, "full": 0}
"""So many of the journal points, spread over the run; 0: all."""
AGAIN = 3
"""Of so many random moments, one is followed by another one while the run goes on."""
MOST_TURNS = 6
KEPT = (
    "retrieval_llm_calls",
    "call_readings",
    "retrieval_decisions",
    "run_attempts",
    "validation_results",
    "events",
    "refinements",
    "recovery_decisions",
    "orchestrator_passes",
    "session_archives",
    "index_runs",
    "time_spans",
)
"""Tables whose rows never change."""


class Subject(Struct, frozen=True, kw_only=True):
    """A run that is killed."""

    name: str
    make: Callable[[Path], Project]
    mind: Callable[[Project], Answerer]
    """The model's side: what it answers depends on the call alone, so that a run may be interrupted anywhere."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """Configured."""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of the configuration, beside the models."""
    meta_plan: MetaPlan | None = None
    """Given by the user."""


def forgetful(project: Project) -> Answerer:
    """The first candidate of each round leaves out the last of the bodies."""
    oracle = project.oracle

    def answer(call: ChatCall) -> Answer | str:
        right = oracle(call)
        if call.title != IMPLEMENT.title or call.options["temperature"]:
            return right
        text = right if isinstance(right, str) else right.text
        return "".join(f"{edit}</edit>\n" for edit in text.split("</edit>\n")[:-2])

    return answer


def stumbling_project(folder: Path) -> Project:
    """The project of the recovery benchmark, with changes in two files."""
    changed = {"till/money.py": MENDED_MONEY, "till/receipt.py": TOTAL}
    return make_project(folder, TILL, changed, task=f"{TASK}; till/receipt.py says sum, not total")


def stumbling(project: Project) -> Answerer:
    """Edits in two files are cut off, and the small coder is wrong about the sums: so the step is cut down, the doctor asked,
    a stronger model, and the part planned again.
    """
    oracle = project.oracle

    def answer(call: ChatCall) -> Answer | str:
        if call.title == DOCTOR.title:
            return ADVICE
        right = oracle(call)
        if call.title != IMPLEMENT.title:
            return right
        text = right if isinstance(right, str) else right.text
        small = cut_unless_small(call, text)
        is_wrong = small == text and call.model == "coder:3b" and "Files: modify till/money.py" in call.prompt
        return WRONG if is_wrong else small

    return answer


REVIEWED = MetaPlan(
    task_summary="Keep every cent.",
    parts=(Part(id="money", description="Split without losing a cent.", affected_files=("till/money.py",)),),
)

SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject(name="long", make=long_project, mind=Mind),
        Subject(
            name="stumbling",
            make=stumbling_project,
            mind=stumbling,
            models={"escalation": {"coding": ["coder:14b"], "reasoning": ["thinker:70b"]}},
        ),
        Subject(name="planned", make=make_project, mind=lambda project: project.oracle, meta_plan=REVIEWED),
        Subject(
            name="drawing",
            make=bills_project,
            mind=forgetful,
            tables={
                "solve": {"max_attempts": 3, "max_refinement_loops": 1, "samples": 3},
                "testing": {"parallel": 2},
            },
        ),
    )
}


class Reference(Struct, frozen=True, kw_only=True):
    """The run that nobody disturbed."""

    story: Story
    calls: int
    points: int
    seconds: float
    refs: tuple[str, ...]
    """Without the task."""


class Case(Struct, kw_only=True):
    """One run that was killed, and what was wrong with it afterwards."""

    name: str
    kills: int = 0
    repeated: int = 0
    rows: int = 0
    """Rows that stood in the record when the process was killed."""
    lost: int = 0
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run(effort: Effort, work: Path, names: Sequence[str] = tuple(SUBJECTS)) -> tuple[Figure, ...]:
    """What came of kills at journal points, then at random moments."""
    # A process for each, since it forks, and watches its children; they wait more than they compute.
    with ProcessPoolExecutor(len(names), mp_context=get_context("spawn")) as pool:
        done = list(pool.map(kills_of, names, [effort] * len(names), [work] * len(names)))
    return figures(
        [case for at_points, _ in done for case in at_points],
        [case for _, at_moments in done for case in at_moments],
    )


def kills_of(name: str, effort: Effort, work: Path) -> tuple[list[Case], list[Case]]:
    """What came of killing this run, at journal points and at random moments."""
    subject, source = SUBJECTS[name], random.Random(f"{SEED} {name}")
    with Bench(work / name, subject) as bench:
        count = bench.reference.points
        chosen = POINTS[effort] or count
        # The middle of each stretch: where all are chosen, a stretch is one point long.
        at_points = [bench.kill_at(1 + (2 * number + 1) * count // (2 * chosen)) for number in range(chosen)]
        at_moments = [
            bench.kill_sometime(number, source, again=number % AGAIN == 0)
            for number in range(RANDOM_MOMENTS[effort] // len(SUBJECTS))
        ]
    return at_points, at_moments


def figures(at_points: Sequence[Case], at_moments: Sequence[Case]) -> tuple[Figure, ...]:
    """The scoreboard's lines; what is wrong is told on standard error."""
    at_points, at_moments = ([case for case in each if case.kills] for each in (at_points, at_moments))
    cases = [*at_points, *at_moments]
    for case in cases:
        for fault in (*case.wrong, *case.left):
            print(f"{case.name}: {fault}", file=sys.stderr)
    return (
        _figure("kill -9 before a journal point, resumed to another result", at_points, _wrong(at_points)),
        _figure(
            f"kill -9 at a random moment (seed {SEED}), resumed to another result",
            at_moments,
            _wrong(at_moments),
        ),
        _figure(
            "kills after which more than one model call was repeated",
            cases,
            sum(c.repeated > c.kills for c in cases),
        ),
        _figure(
            "runs killed that left a work tree, process, lock, session or ref",
            cases,
            sum(bool(c.left) for c in cases),
        ),
        Figure(
            name="recorded rows lost by kill -9",
            tried=sum(case.rows for case in cases),
            found=sum(case.lost for case in cases),
            target="0",
            met=not any(case.lost for case in cases),
        ),
    )


def _figure(name: str, cases: Sequence[Case], found: int) -> Figure:
    return Figure(name=name, tried=len(cases), found=found, target="0 of all", met=found == 0)


def _wrong(cases: Iterable[Case]) -> int:
    return sum(bool(case.wrong) for case in cases)


class Bench:
    """A project to copy, a model server, and the run that nobody disturbed."""

    def __init__(self, work: Path, subject: Subject) -> None:
        self._work = work
        self._subject = subject
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._template = self._work / "template"
        subject = self._subject
        project = subject.make(self._template)
        self._flags: tuple[str, ...] = ()
        if subject.meta_plan is not None:
            plan = self._template / "plan.json"
            plan.write_text(subject.meta_plan.model_dump_json(), encoding="utf-8")
            self._flags = ("--meta-plan", str(plan))
        self._server = self._stack.enter_context(OllamaServer(subject.mind(project), models=SERVED))
        project.configure(self._server.base_url, models={"parallel": 1, **subject.models}, **subject.tables)
        _require(run_killed(project, ("index",)))
        self.reference = self._undisturbed()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        shutil.rmtree(self._template, ignore_errors=True)

    def kill_at(self, point: int) -> Case:
        """A run that dies before its journal point, 1-based."""
        case = Case(name=f"{self._subject.name}, point {point}")
        with self._project(case.name) as project:
            before, calls = _user_of(project), self._calls()
            ended = run_killed(project, ("solve", project.task, *self._flags), point=point)
            self._note_kill(case, project, ended)
            self._go_on(case, project, source=None)
            self._compare(case, project, before, calls)
        return case

    def kill_sometime(self, number: int, source: random.Random, *, again: bool) -> Case:
        """A run that dies at a moment, and with `again` once more while it goes on."""
        case = Case(name=f"{self._subject.name}, moment {number}")
        with self._project(case.name) as project:
            before, calls = _user_of(project), self._calls()
            after = source.uniform(0.05, self.reference.seconds)
            ended = run_killed(project, ("solve", project.task, *self._flags), after=after)
            self._note_kill(case, project, ended)
            self._go_on(case, project, source=source if again else None)
            self._compare(case, project, before, calls)
        return case

    @contextlib.contextmanager
    def _project(self, name: str) -> Iterator[Project]:
        folder = self._work / name.replace(", ", "-").replace(" ", "-")
        shutil.copytree(self._template, folder, symlinks=True)
        trust(folder / "till/.clean_room")
        try:
            yield project_at(folder / "till", {}, {})
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _calls(self) -> int:
        return sum(not call.prompt.startswith(PROBE) for call in list(self._server.calls))

    def _undisturbed(self) -> Reference:
        with self._project("reference") as project:
            calls, started = self._calls(), time.monotonic()
            ended = _require(run_killed(project, ("solve", project.task, *self._flags)))
            seconds = time.monotonic() - started
            row = newest_run(project)
            assert row is not None
            return Reference(
                story=story_of(project, row),
                calls=self._calls() - calls,
                points=ended.points,
                seconds=seconds,
                refs=_refs(project),
            )

    def _note_kill(self, case: Case, project: Project, ended: Ended) -> None:
        case.kills += ended.code == -9
        if ended.code not in {-9, 0}:
            case.wrong.append(f"ended with {ended.code}: {ended.out[-500:]}")
        if ended.left:
            case.left.append("a process")
        self._rows = _rows_of(project)

    def _go_on(self, case: Case, project: Project, source: random.Random | None) -> None:
        for turn in range(MOST_TURNS):
            row = newest_run(project)
            if row is None:
                args: tuple[str, ...] = ("solve", project.task, *self._flags)
            elif row.status is RunStatus.COMPLETE:
                break
            else:
                args = ("solve", "--resume", row.task_id[:8])
            after = source.uniform(0.05, self.reference.seconds) if source is not None and turn == 0 else None
            ended = run_killed(project, args, after=after)
            case.rows += len(self._rows)
            case.lost += len(self._rows - _rows_of(project))
            self._note_kill(case, project, ended)
            if ended.code not in {-9, 0}:
                return
        ended = run_killed(project, ("check", "--repair"))
        if ended.code != 0:
            case.wrong.append(f"check --repair ended with {ended.code}: {ended.out[-500:]}")

    def _compare(self, case: Case, project: Project, before: object, calls: int) -> None:
        row = newest_run(project)
        if row is None:
            case.wrong.append("no run is in the record")
            return
        case.wrong += differences(self.reference.story, story_of(project, row))
        case.repeated = self._calls() - calls - self.reference.calls
        if _user_of(project) != before:
            case.wrong.append("something of the user's has changed")
        if _refs(project) != self.reference.refs:
            case.left.append(f"refs: {_refs(project)}")
        case.left += _left_in(project)


def _require(ended: Ended) -> Ended:
    if ended.code != 0:
        raise SystemExit(f"ended with {ended.code}: {ended.out}")
    return ended


def _user_of(project: Project) -> object:
    return repositories.fingerprint(project.top, refs=USERS_REFS)


def _refs(project: Project) -> tuple[str, ...]:
    """The refs that runs made, the task's id as `<task>`: two tasks would show."""
    listed = repositories.git(project.top, "for-each-ref", "--format=%(refname)", *USERS_REFS).split()
    tasks = sorted({task_of(ref.split("/")[2]) for ref in listed if ref.startswith("refs/cra/")})
    names = {task: f"<task{number}>" for number, task in enumerate(tasks)}
    shown = []
    for ref in listed:
        for task, name in names.items():
            ref = ref.replace(task, name).replace(task[:8], name)  # noqa: PLW2901
        shown.append(ref)
    return tuple(sorted(shown))


def _left_in(project: Project) -> list[str]:
    """What a run that is over must not leave."""
    worktrees = repositories.git(project.top, "worktree", "list", "--porcelain").count("worktree ") - 1
    found = [f"{worktrees} work trees"] if worktrees else []
    found += [str(path) for path in (project.home / "cache").glob("cra/worktrees/*/*")]
    found += [str(path) for path in Workspace(repo=project.top).sessions.iterdir()]
    return found + [str(path) for path in (project.top / ".git").rglob("*.lock")]


def _rows_of(project: Project) -> frozenset[tuple[str, int, str]]:
    """Every row of the tables whose rows never change, by table, id and a hash of its content."""
    raw = Workspace(repo=project.top).raw
    found = set()
    if not raw.exists():
        return frozenset()
    with contextlib.closing(connect_file("raw", raw, read_only=True)) as conn:
        for table in KEPT:
            for row in conn.execute(f"SELECT * FROM {table}"):
                content = hashlib.sha256(repr(tuple(row)).encode("utf-8", "replace")).hexdigest()
                found.add((table, row["id"], content))
    return frozenset(found)
