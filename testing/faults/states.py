"""Every command in every state of a repository: what of the user's changed, which of the user's programs were run.

All that a state is made of stands in one folder: the repository, its git folder wherever that is, other work trees,
submodules, the home. Every file there is compared by bytes, mode and modification time, every ref and reflog too; what
a run may leave is told by `OURS`. Each repository has hooks of every kind, and names a program that leaves a trace at
every setting that can name one.
"""

import contextlib
import hashlib
import io
import os
import re
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct, field

from clean_room_agent import proc
from clean_room_agent.cli.main import run as run_cra
from clean_room_agent.db.connection import connect_file
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, working_bubblewrap
from clean_room_agent.workspace import Workspace, is_ours
from testing.faults.figures import Effort, Figure
from testing.runs.solving import TASK, TILL, UNITTEST, Project, Script, Spoil, project_at
from testing.servers.describing import DescribingModel
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.states.every import STATES
from testing.states.hostile import canary, forget_canary, plant_programs
from testing.states.place import Place

LEAST_STATES = 18
TARGET = "till/money.py"
OURS = re.compile(r"(^|/)(\.clean_room/|(logs/)?refs/(cra|heads/cra)/)|^home/cache/|^canary$")
"""Relative to the state's folder: what a command may make."""
GIT_FOLDER = re.compile(r"(^|/)[^/]*\.git/")
OBJECTS = re.compile(r"\.git/(.*/)?objects/")
"""New ones may come; none may go or change."""
SHORT = (
    "staged and changed again",
    "inherited variables",
    "submodules with changes",
    "mid merge",
    "alternates",
    "folder whose name is not utf8",
)
DOCUMENTED = frozenset({0, 1, 2, 3, 4, 130})


class Said(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int
    out: str
    err: str


class Visit(Struct, kw_only=True):
    """A state with the commands that are run in it."""

    folder: Path
    place: Place
    project: Project
    said: dict[str, Said] = field(default_factory=dict)
    """By name of the command."""

    @property
    def top(self) -> Path:
        """Where commands are run."""
        return self.place.top

    def cra(self, *args: str) -> Said:
        """The command, in this process, or behind what the place puts before it."""
        environment = {**self.project.environment(), **self.place.environment}
        if self.place.before:
            command = (*self.place.before, sys.executable, "-m", "clean_room_agent", *args)
            done = proc.run(command, cwd=self.top, env=environment, timeout=120, check=False)
            return Said(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True)
        with (
            patch.dict(os.environ, environment, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(self.top),
        ):
            code = run_cra(args)
        texts = [bytes(stream.buffer.getvalue()).decode() for stream in (out, err)]
        return Said(code=code, out=texts[0], err=texts[1])

    def serve(self, answerer: Answerer, *args: str, **tables: Mapping[str, object]) -> Said:
        """The command while a server gives the answers."""
        with OllamaServer(answerer) as server:
            if is_ours(Workspace(repo=self.top).folder):
                self.project.configure(server.base_url, **tables)
            return self.cra(*args)

    def solve(
        self,
        spoiled: Mapping[str, Sequence[Answer | str | Spoil | None]],
        *flags: str,
        **tables: Mapping[str, object],
    ) -> Said:
        """A run whose model knows the answer, but for what is spoiled."""
        return self.serve(Script(self.project.oracle, spoiled), "solve", TASK, *flags, **tables)

    def newest(self) -> str:
        """The task of the newest run that made a branch; "none" while there is none."""
        raw = Workspace(repo=self.top).raw
        if self.place.refused or not raw.exists():
            return "none"
        with contextlib.closing(connect_file("raw", raw, read_only=True)) as connection:
            query = "SELECT task_id FROM orchestrator_runs WHERE branch <> '' ORDER BY id DESC LIMIT 1"
            row = connection.execute(query).fetchone()
        return "none" if row is None else str(row[0])


class Command(Struct, frozen=True, kw_only=True):
    """Something that a user does with `cra`. `code` is what it ends with where runs are possible."""

    name: str
    run: Callable[[Visit], Said]
    code: int = 0
    changes: tuple[str, ...] = ()
    """What it is there to change, relative to the repository."""
    setting: Callable[[Visit], contextlib.AbstractContextManager[None]] | None = None
    """What the user did before; undone afterwards."""


@contextlib.contextmanager
def edited_target(visit: Visit) -> Iterator[None]:
    """The user goes on working on the file that the run changed."""
    file = visit.top / TARGET
    if not file.is_file():
        yield
        return
    held, times = file.read_bytes(), file.stat()
    file.write_bytes(held + b"# mine\n")
    try:
        yield
    finally:
        file.write_bytes(held)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@contextlib.contextmanager
def restored_target(visit: Visit) -> Iterator[None]:
    """The user takes back what was applied."""
    file = visit.top / TARGET
    held = file.read_bytes() if file.is_file() else b""
    try:
        yield
    finally:
        if held:
            file.write_bytes(held)


def press(_: ChatCall, right: str) -> str:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return right


def meddle(visit: Visit) -> Spoil:
    """The user saves the file that the run is about to change."""

    def answer(_: ChatCall, right: str) -> str:
        with (visit.top / TARGET).open("ab") as file:
            file.write(b"# meanwhile\n")
        return right

    return answer


def answer_check(call: ChatCall) -> str:
    """What a model says to `cra check`."""
    number = re.search(r"number: (\d+)$", call.prompt)
    return f'{{"number": {number[1]}}}' if number else "yes"


def init(visit: Visit) -> Said:
    """`cra init`, with everything given."""
    models = (
        "--coding",
        "coder:3b",
        "--reasoning",
        "thinker:4b",
        "--test-command",
        UNITTEST,
        "--sandbox",
        "none",
    )
    with OllamaServer(Script(visit.project.oracle)) as server:
        return visit.cra("init", "--force", "-y", "--base-url", server.base_url, *models)


def sandboxed(visit: Visit) -> Said:
    """A run whose tests look into git's history from within the sandbox."""
    if not isinstance(working_bubblewrap(), Bubblewrap):
        return visit.solve({})
    history = f"git log -p -1 HEAD >/dev/null && git status >/dev/null && {UNITTEST}"
    return visit.solve({}, sandbox={"mode": "bwrap"}, testing={"test_command": history})


COMMANDS = (
    Command(name="init", run=init),
    Command(name="check", run=lambda v: v.serve(answer_check, "check")),
    Command(name="index", run=lambda v: v.cra("index")),
    Command(name="retrieve", run=lambda v: v.serve(Script(v.project.oracle), "retrieve", TASK)),
    Command(
        name="plan",
        run=lambda v: v.serve(
            Script(v.project.oracle), "plan", TASK, "-o", str(v.project.home / "cache/plan.json")
        ),
    ),
    Command(name="solve, no answer fits", run=lambda v: v.solve({IMPLEMENT.title: ["no idea"] * 99}), code=1),
    Command(name="solve, Ctrl-C", run=lambda v: v.solve({IMPLEMENT.title: [press]}), code=130),
    Command(
        name="solve, the server dies",
        run=lambda v: v.solve({META_PLAN.title: [Answer(status=500, error="gone")] * 9}),
        code=3,
    ),
    Command(
        name="solve --apply, the file changed meanwhile",
        run=lambda v: v.solve({IMPLEMENT.title: [meddle(v)]}, "--apply"),
        code=2,
        changes=(TARGET,),
        setting=restored_target,
    ),
    Command(name="solve", run=lambda v: v.solve({})),
    Command(name="solve in the sandbox", run=sandboxed),
    Command(name="show", run=lambda v: v.cra("show", v.newest(), "--diff")),
    Command(name="replay", run=lambda v: v.cra("replay", v.newest())),
    Command(
        name="apply, the file changed",
        run=lambda v: v.cra("apply", v.newest()),
        code=2,
        setting=edited_target,
    ),
    Command(
        name="apply", run=lambda v: v.cra("apply", v.newest()), changes=(TARGET,), setting=restored_target
    ),
    Command(name="discard", run=lambda v: v.cra("discard", v.newest())),
    Command(name="enrich", run=lambda v: v.serve(DescribingModel(), "enrich", "--promote", "--limit", "2")),
    Command(name="demo", run=lambda v: v.cra("demo", "--dir", str(v.project.home / "cache/demo"))),
)
WITHOUT_REPOSITORY = frozenset({"demo"})
"""Commands that do not look at the repository they are run in."""


class Finding(Struct, frozen=True, kw_only=True):
    """What must not have happened."""

    state: str
    command: str
    changed: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    unclear: str = ""
    """Why the command neither did what it should nor was refused as it should."""


class Survey(Struct, frozen=True, kw_only=True):
    """What came of all commands in all states."""

    states: int
    tried: int
    findings: tuple[Finding, ...]


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """Three figures, each over all commands in all states."""
    names = tuple(STATES) if effort == "full" else SHORT
    survey = survey_states(work, names, COMMANDS)
    rows = {
        "commands that changed something of the user's": [one for one in survey.findings if one.changed],
        "commands that ran a program named by a hook or setting": [one for one in survey.findings if one.ran],
        "commands neither done nor clearly refused": [one for one in survey.findings if one.unclear],
    }
    target = f"0 over {LEAST_STATES} states x all commands"
    enough = survey.states >= (LEAST_STATES if effort == "full" else 1)
    return tuple(
        Figure(
            name=f"{name}, {survey.states} states x {len(COMMANDS)} commands",
            tried=survey.tried,
            found=len(found),
            target=target,
            met=enough and not found,
        )
        for name, found in rows.items()
    )


def survey_states(work: Path, states: Sequence[str], commands: Sequence[Command]) -> Survey:
    """All `commands`, in order, in each of `states` that this machine can have; `work` is empty again afterwards."""
    findings: list[Finding] = []
    tried = had = 0
    for number, name in enumerate(states):
        folder = work / f"s{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place = STATES[name](folder)
        if place is not None:
            had += 1
            tried += len(commands)
            new = visit_state(name, folder, place, commands)
            findings += new
            for found in new:
                print(found, file=sys.stderr, flush=True)
        shutil.rmtree(folder)
    return Survey(states=had, tried=tried, findings=tuple(findings))


def visit_state(name: str, folder: Path, place: Place, commands: Sequence[Command]) -> list[Finding]:
    """What was found wrong in one state."""
    plant_programs(folder, place)
    (folder / "home").mkdir(exist_ok=True)
    visit = Visit(folder=folder, place=place, project=_project(folder, place))
    found = []
    for command in commands:
        forget_canary(folder)
        with command.setting(visit) if command.setting else contextlib.nullcontext():
            before = marks(folder, place.top)
            said = command.run(visit)
            changed = differences(
                before, marks(folder, place.top), _allowed(folder, place.top, command.changes)
            )
        visit.said[command.name] = said
        unclear = _unclear(said, command, place)
        if changed or canary(folder) or unclear:
            found.append(
                Finding(
                    state=name, command=command.name, changed=changed, ran=canary(folder), unclear=unclear
                )
            )
    return found


def _project(folder: Path, place: Place) -> Project:
    made = project_at(folder / "home/x", TILL)
    return Project(top=place.top, home=folder / "home", oracle=made.oracle)


def _unclear(said: Said, command: Command, place: Place) -> str:
    words = f"{said.code}: {said.err[-600:]}{said.out[-200:]}"
    if said.code not in DOCUMENTED or "this is a bug" in said.err or "Traceback" in said.err + said.out:
        return words
    if not place.refused or command.name in WITHOUT_REPOSITORY:
        return "" if said.code == command.code else words
    if command.name == "solve" and (
        said.code not in {1, 2} or place.refused not in said.err or "->" not in said.err
    ):
        return words
    return ""


def _allowed(folder: Path, top: Path, changes: Sequence[str]) -> frozenset[str]:
    paths = [(top.resolve() / path).relative_to(folder.resolve()) for path in changes]
    return frozenset(str(each) for path in paths for each in (path, path.parent))


def marks(folder: Path, top: Path) -> dict[str, str]:
    """Everything below `folder` that is the user's, by relative path; compare two of them with `differences`."""
    found: dict[str, str] = {}
    timeless = {
        folder,
        folder / "home",
        top,
        top.resolve(),
    }  # a command may make something of its own in these
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name for name in folders if not OURS.search(f"{(here / name).relative_to(folder)}/")
        )
        for name in sorted({*folders, *files}):
            path = here / name
            key = str(path.relative_to(folder))
            in_git = GIT_FOLDER.search(f"{key}/") is not None
            if OURS.search(key) or path in timeless or (in_git and path.is_dir() and not path.is_symlink()):
                continue
            found[key] = _mark(path, timed="sharedindex." not in name)
    return found


def differences(
    before: Mapping[str, str], after: Mapping[str, str], allowed: frozenset[str]
) -> tuple[str, ...]:
    """The paths that differ, sorted; new objects do not count."""
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)} - allowed
    return tuple(sorted(key for key in changed if not (OBJECTS.search(key) and key not in before)))


def _mark(path: Path, *, timed: bool) -> str:
    info = path.lstat()
    content = b""
    if stat.S_ISLNK(info.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(info.st_mode):
        content = path.read_bytes()
    # Git opens objects with a time of their own: it renews the time of one that it would write again.
    time = info.st_mtime_ns if timed and not OBJECTS.search(str(path)) else 0
    return f"{stat.filemode(info.st_mode)} {info.st_uid} {time} {hashlib.blake2b(content).hexdigest()[:24]}"
