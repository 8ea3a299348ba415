"""One real commit, solved by `cra solve "<the commit's message>"` at its parent with its new tests in the user's tree.

The model is the oracle (`testing/oracle/oracle.py`), a real server on this machine. The user's tree is dirty when the run
begins: the new tests are uncommitted, there is an untracked file, a stash, and a setting of the user's own. Everything
of the user's is compared by checksum before and after. The verdict is not `cra`'s: the result's branch is checked out
elsewhere and the commit's tests are run on it.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from testing.oracle.oracle import Oracle
from testing.repositories import fingerprint
from testing.servers.ollama_script import Answerer
from testing.servers.ollama_server import DEFAULT_MODELS
from testing.servers.timed_server import TimedServer

from benchmarks.commits.checkouts import (
    bring,
    clone,
    environment_folder,
    git,
    message_of,
    run_tests,
    test_environment,
)
from benchmarks.commits.commit_list import CommitEntry, CommitList
from clean_room_agent.app.config_values import write_config
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace, state_folder

SOLVE_TIMEOUT_S = 900.0
USERS_NOTE = "a file of the user's, in nobody's way\n"
READY = "ready"
CRA = (sys.executable, "-m", "clean_room_agent")
RUNS_REFS = ("refs/cra/", "refs/heads/cra/")


class Subject(Struct, frozen=True, kw_only=True):
    """What a run is about: a commit, in the clone in which it is tried."""

    work: Path
    listed: CommitList
    entry: CommitEntry
    top: Path
    gold: tuple[GoldFile, ...]


Mind = Callable[[Subject], Answerer]
"""Makes the model of a run."""


def perfect(subject: Subject) -> Answerer:
    """The oracle."""
    return Oracle(subject.gold)


class Setting(Struct, frozen=True, kw_only=True):
    """Under which conditions a commit is solved. `name` is part of file names."""

    name: str
    window: int
    """Tokens."""
    route: str = ""
    """Of the judgments; the program's default where it is empty."""
    mind: Mind = perfect
    decomposed: bool = False
    """Whether plans and adjustments are put together from small questions."""


class Attempted(Struct, frozen=True, kw_only=True):
    """One commit under one setting."""

    entry: CommitEntry
    window: int
    exit_code: int
    solved: bool
    """The commit's tests pass on the branch, by a run of our own."""
    untouched: bool
    """Everything of the user's is as it was."""
    answer: Mapping[str, Any]
    """What `cra solve --json` said; empty where it said nothing."""
    words: str
    """What went wrong, in the program's own words; "" when it was solved."""
    seconds: float
    model_seconds: float
    test_seconds: float
    record: Path
    """The run's `raw.sqlite`."""
    top: Path
    gold: tuple[GoldFile, ...]

    @property
    def own_seconds(self) -> float:
        """Neither in the model nor in tests."""
        return self.seconds - self.model_seconds - self.test_seconds


def put_user_state(top: Path, entry: CommitEntry) -> None:
    """`top` is the commit's parent as somebody left it: dirty, with untracked files, a stash and settings."""
    git(top, "checkout", "--quiet", "--force", "-B", "work", entry.base)
    git(top, "config", "user.name", "Una User")
    git(top, "config", "user.email", "una@example.org")
    git(top, "config", "alias.st", "status")
    readme = next(
        path for path in sorted(top.iterdir()) if path.is_file() and path.name.lower().startswith("readme")
    )
    text = readme.read_text(encoding="utf-8")
    readme.write_text(text + "\nA thought that was put aside.\n", encoding="utf-8")
    git(top, "stash", "push", "--quiet")
    bring(top, entry.commit, entry.test_files)
    git(top, "reset", "--quiet")
    (top / "note-of-the-user.txt").write_text(USERS_NOTE, encoding="utf-8")


def gold_of(top: Path, entry: CommitEntry) -> tuple[GoldFile, ...]:
    """The commit's source files, before and after."""

    def blob(commit: str, path: str) -> str | None:
        done = subprocess.run(("git", "show", f"{commit}:{path}"), cwd=top, capture_output=True, check=False)
        return done.stdout.decode("utf-8") if done.returncode == 0 else None

    return tuple(
        GoldFile(path=path, before=blob(entry.base, path), after=blob(entry.commit, path))
        for path in entry.sources
    )


def attempt(work: Path, mirror: str, listed: CommitList, entry: CommitEntry, setting: Setting) -> Attempted:
    """The commit has been tried once, in the commit's own clone, which is as if no run had been there before.

    Raises:
        BenchmarkError: a mirror or an environment is not as it should be.
    """
    home = work / "solve" / entry.id
    top = _clone_of_its_own(work, mirror, entry, home)
    kind = listed.environments[entry.environment]
    folder = environment_folder(work, entry.environment, kind)
    variables = test_environment(work, top, kind, folder)
    variables.pop("PYTHONPATH", None)  # the program has to see to it that the worktree's files are imported
    variables["XDG_CACHE_HOME"] = str(home / "cache")
    variables["XDG_STATE_HOME"] = str(state_folder().parent)
    gold = gold_of(top, entry)
    events = home / f"{setting.name}.events"
    subject = Subject(work=work, listed=listed, entry=entry, top=top, gold=gold)
    with TimedServer(setting.mind(subject)) as server:
        values: dict[str, dict[str, Any]] = {
            "models": {
                "base_url": server.base_url,
                "coding": DEFAULT_MODELS[0],
                "reasoning": DEFAULT_MODELS[1],
            },
            "budget": {"context_window": setting.window, "reserved_tokens": setting.window // 4},
            "solve": {"max_attempts": 3, "max_refinement_loops": 2, "route": "planned"},
            "testing": {"test_command": shlex.join(entry.command), "timeout": 170},
            "sandbox": {"mode": "none"},  # the edits are the commit's own; figures compare across machines
        }
        if setting.route:
            values["judgments"] = {"route": setting.route}
        if setting.decomposed:
            values["orchestrator"] = {"planning": "decomposed", "adjusting": "decomposed"}
        write_config(Workspace(repo=top), values)
        if not Workspace(repo=top).curated.exists():  # later runs bring it up to date themselves
            subprocess.run((*CRA, "index"), cwd=top, env=variables, capture_output=True, check=True)
        before = fingerprint(top, refs=RUNS_REFS)
        started = time.monotonic()
        done = subprocess.run(
            (*CRA, "solve", "--json", "--events", str(events), message_of(top, entry.commit)),
            cwd=top,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=SOLVE_TIMEOUT_S,
        )
        seconds = time.monotonic() - started
        model_seconds = server.busy()
    untouched = fingerprint(top, refs=RUNS_REFS) == before
    if not untouched:
        (home / READY).unlink()
    (home / f"{setting.name}.stderr").write_text(done.stderr, encoding="utf-8")
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
    solved = bool(answer.get("branch")) and passes(work, listed, entry, top, answer["branch"])
    return Attempted(
        entry=entry,
        window=setting.window,
        exit_code=done.returncode,
        solved=solved,
        untouched=untouched,
        answer=answer,
        words="" if solved else str(answer.get("reason") or "") or done.stderr.strip()[-400:],
        seconds=seconds,
        model_seconds=model_seconds,
        test_seconds=tests_of(events),
        record=Path(shutil.copy(Workspace(repo=top).raw, home / f"{setting.name}.sqlite")),
        top=top,
        gold=gold,
    )


def _clone_of_its_own(work: Path, mirror: str, entry: CommitEntry, home: Path) -> Path:
    """The user's repository. What runs before left in it is gone, but for the index, which is brought up to date."""
    source = clone(work, mirror, entry.repository)
    top = home / entry.repository.split("/")[1]
    if not (home / READY).exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        git(home, "clone", "--quiet", "--no-checkout", "--shared", str(source), str(top))
        exclude = top / ".git" / "info" / "exclude"
        exclude.write_text("node_modules\n.venv\n", encoding="utf-8")
        put_user_state(top, entry)
        (home / READY).touch()
    shutil.rmtree(home / "cache", ignore_errors=True)
    git(top, "worktree", "prune")
    for ref in git(top, "for-each-ref", "--format=%(refname)", *RUNS_REFS).split():
        git(top, "update-ref", "-d", ref)
    workspace = Workspace(repo=top)
    shutil.rmtree(workspace.sessions, ignore_errors=True)
    for path in workspace.folder.glob("raw.sqlite*"):
        path.unlink()
    return top


def passes(work: Path, listed: CommitList, entry: CommitEntry, top: Path, branch: str) -> bool:
    """Whether the tests that the commit turned green pass on the branch, checked out in a tree of its own."""
    tree = top.parent / "result"
    shutil.rmtree(tree, ignore_errors=True)
    git(top.parent, "clone", "--quiet", "--shared", "--branch", branch, str(top), str(tree))
    (tree / ".git" / "info" / "exclude").write_text("node_modules\n", encoding="utf-8")
    passed = run_tests(work, tree, listed, entry).passed()
    return set(entry.must_pass) <= passed


def tests_of(events: Path) -> float:
    """Seconds that the run spent in test commands, by its own events."""
    if not events.exists():
        return 0.0
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    return sum(float(line["seconds"]) for line in lines if line["event"] == "TestsFinished")
