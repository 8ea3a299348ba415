"""Whole runs of `cra` for tests: a small repository, a model server that knows the right change, and what came of it."""

import contextlib
import functools
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from clean_room_agent import file_contents, proc
from clean_room_agent.app.config_values import write_config
from clean_room_agent.cli.main import run
from clean_room_agent.indexer.extract import prepare
from clean_room_agent.proc import inherited_environment
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace, state_folder
from testing import repositories
from testing.oracle.oracle import Oracle
from testing.patience import PATIENCE
from testing.repositories import Files
from testing.runs.recorded import Recorded, read_newest
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

USERS_REFS = ("refs/cra/", "refs/heads/cra/")
"""Refs that a run may make."""

MONEY = '''\
"""Sums of money, in cents."""


def split(cents, people):
    """The shares of a bill, one for each person."""
    share = cents // people
    return [share] * people


def total(shares):
    """What the shares come to."""
    result = 0
    for share in shares:
        result += share
    return result


def negate(shares):
    """The same shares as debts."""
    result = 0
    return [result - share for share in shares]
'''
MENDED_MONEY = MONEY.replace(
    "    share = cents // people\n    return [share] * people\n",
    "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)\n",
)
RECEIPT = '''\
"""Receipts as text."""

from till.money import total


def receipt(names, shares):
    """One line for each name, then the total."""
    lines = [f"{name}: {share}" for name, share in zip(names, shares)]
    return lines + [f"total: {total(shares)}"]
'''
MONEY_TESTS = """\
import unittest

from till.money import negate, split, total


class MoneyTest(unittest.TestCase):
    def test_even_split(self):
        self.assertEqual(split(9, 3), [3, 3, 3])

    def test_split_keeps_every_cent(self):
        self.assertEqual(sum(split(100, 3)), 100)

    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_negate(self):
        self.assertEqual(negate([1, 2]), [-1, -2])
"""
TILL: Files = {
    "till/__init__.py": "",
    "till/money.py": MONEY,
    "till/receipt.py": RECEIPT,
    "tests/__init__.py": "",
    "tests/test_money.py": MONEY_TESTS,
}
ONE_ATTEMPT: Mapping[str, Mapping[str, Any]] = {
    "solve": {"max_attempts": 1, "max_refinement_loops": 0},
    "recovery": {"replans_per_part": 0},
}
"""Configuration of a run that makes nothing more of a step that fails."""
PROBE = " x x x"
"""Begins the over-long prompt that asks whether the server cuts."""
TASK = "Splitting a bill loses cents: till/money.py, split(100, 3) must add up to 100"
UNITTEST = f"{sys.executable} -m unittest -v"

Spoil = Callable[[ChatCall, str], Answer | str]
"""Makes the fault out of a call and the oracle's answer to it."""


class Script:
    """Answers as the oracle does, but for the calls that `spoiled` names: by prompt title, in order of asking.

    A repair is a call with the same title. None in a list leaves the oracle's answer; beyond its end the oracle
    answers too. `every` is done to each answer that is not spoiled.
    """

    def __init__(
        self,
        oracle: Answerer,
        spoiled: Mapping[str, Sequence[Answer | str | Spoil | None]] | None = None,
        *,
        every: Spoil | None = None,
    ) -> None:
        self._oracle = oracle
        self._spoiled = {title: list(answers) for title, answers in (spoiled or {}).items()}
        self._every = every

    def __call__(self, call: ChatCall) -> Answer | str:
        """The answer to one call."""
        if call.prompt.startswith(PROBE):
            return "x"
        waiting = self._spoiled.get(call.title, [])
        chosen = waiting.pop(0) if waiting else None
        if chosen is None:
            right = text_of(self._oracle(call))
            return self._every(call, right) if self._every else right
        return chosen(call, text_of(self._oracle(call))) if callable(chosen) else chosen


def text_of(answer: Answer | str) -> str:
    """What the model says."""
    return answer if isinstance(answer, str) else answer.text


class Told(Struct, frozen=True, kw_only=True):
    """What a command said and did."""

    code: int
    out: str
    err: str
    before: Mapping[str, str]
    """All that is the user's, before the command; `after` it."""
    after: Mapping[str, str]
    worktrees: tuple[str, ...]
    """Those that git knows beside the user's own, and folders left where they stood."""
    branches: tuple[str, ...]
    """The `cra/` branches."""
    sessions: tuple[str, ...]
    """Files of tasks in flight that are left."""
    recorded: Recorded

    @property
    def traces(self) -> dict[str, object]:
        """What a run must not leave: empty when it left nothing but its record and its branch."""
        changed = {key for key in {*self.before, *self.after} if self.before.get(key) != self.after.get(key)}
        found = {"changed": sorted(changed), "worktrees": self.worktrees}
        return {name: value for name, value in found.items() if value}


class Project(Struct, frozen=True, kw_only=True):
    """A repository with a configuration, and the change that its task asks for."""

    top: Path
    home: Path
    """HOME and the cache folder of every command."""
    oracle: Oracle
    task: str = TASK
    test_command: str = UNITTEST

    def configure(self, base_url: str, **tables: Mapping[str, Any]) -> None:
        """Write the configuration; `tables` are laid over what suits a test: few questions, asked in a fixed order."""
        values: dict[str, dict[str, Any]] = {
            "models": {
                "base_url": base_url,
                "coding": "coder:3b",
                "reasoning": "thinker:4b",
                "retries": 1,
                "timeouts": {
                    "connect": PATIENCE,
                    "first_byte": PATIENCE,
                    "idle": PATIENCE,
                    "total": PATIENCE,
                },
            },
            "budget": {"context_window": 16384, "reserved_tokens": 4096},
            "judgments": {"route": "batch"},
            # What the oracle answers is asked for by plans; tests of the direct route say otherwise.
            "solve": {"max_attempts": 3, "max_refinement_loops": 1, "route": "planned"},
            "testing": {"test_command": self.test_command, "timeout": 60.0},
            "sandbox": {"mode": "none"},  # the same on every machine; tests of the sandbox say otherwise
        }
        for name, table in tables.items():
            values[name] = {**values.get(name, {}), **table}
        write_config(Workspace(repo=self.top), values)

    def solve(self, server: OllamaServer, *flags: str, **tables: Mapping[str, Any]) -> Told:
        """`cra solve` of the task against `server`."""
        self.configure(server.base_url, **tables)
        return self.cra("solve", self.task, *flags)

    def solve_scripted(
        self,
        spoiled: Mapping[str, Sequence[Answer | str | Spoil | None]] | None = None,
        *flags: str,
        **tables: Any,
    ) -> Told:
        """`cra solve` against a server of its own that answers as the oracle does, but for what is spoiled."""
        with OllamaServer(Script(self.oracle, spoiled)) as server:
            return self.solve(server, *flags, **tables)

    def cra(self, *args: str, within: Path | None = None) -> Told:
        """The command in this process, run in the repository (or `within`)."""
        return self.observe(lambda: self._here((*args, "--repo", str(within or self.top))))

    def run_here(self, *args: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of the command in this process; no record is looked at."""
        return self._here((*args, "--repo", str(self.top)))

    def cra_process(self, *args: str, timeout: float = PATIENCE) -> Told:
        """The command in a process of its own."""
        return self.observe(lambda: self._apart(args, timeout))

    def environment(self) -> dict[str, str]:
        """What every command is run with."""
        kept = inherited_environment(without="GIT_")
        return kept | {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_STATE_HOME": str(state_folder().parent),  # as the test's own process has it
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "400",
        }

    def recorded(self) -> Recorded:
        """What the record holds of its newest run."""
        return read_newest(Workspace(repo=self.top).raw)

    def branch_file(self, path: str) -> bytes:
        """The file's bytes on the one result branch."""
        (branch,) = self._branches()
        return repositories.read_tree(self.top, branch)[path]

    def observe(self, command: Callable[[], tuple[int, str, str]]) -> Told:
        """What any command, which gives exit code, output and errors, says and does."""
        before = self._fingerprint()
        code, out, err = command()
        return Told(
            code=code,
            out=out,
            err=err,
            before=before,
            after=self._fingerprint(),
            worktrees=self._worktrees(),
            branches=self._branches(),
            sessions=tuple(
                sorted(path.name for path in Workspace(repo=self.top).sessions.glob("session_*.sqlite"))
            ),
            recorded=self.recorded(),
        )

    def _here(self, args: Sequence[str]) -> tuple[int, str, str]:
        _load_indexer()
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self.environment(), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(args)
        return code, out.getvalue(), err.getvalue()

    def _apart(self, args: Sequence[str], timeout: float) -> tuple[int, str, str]:
        done = proc.run(
            (sys.executable, "-m", "clean_room_agent", *args),
            cwd=self.top,
            env=self.environment(),
            timeout=timeout,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def _fingerprint(self) -> dict[str, str]:
        if not (self.top / ".git").exists():
            return {}
        return repositories.fingerprint(self.top, refs=USERS_REFS)

    def _branches(self) -> tuple[str, ...]:
        if not (self.top / ".git").exists():
            return ()
        heads = "refs/heads/"
        refs = repositories.list_refs(self.top)
        return tuple(name.removeprefix(heads) for name in refs if name.startswith(f"{heads}cra/"))

    def _worktrees(self) -> tuple[str, ...]:
        if not (self.top / ".git").exists():
            return ()
        known = repositories.list_worktrees(self.top)
        folders = [str(path) for path in (self.home / "cache").glob("cra/worktrees/*/*/.git")]
        return tuple(sorted({*known, *folders}))


def make_project(
    folder: Path,
    files: Files = TILL,
    changed: Mapping[str, str | None] | None = None,
    *,
    task: str = TASK,
    test_command: str = UNITTEST,
) -> Project:
    """A repository below `folder` with one commit of `files`; `changed` is what the oracle makes of some of them."""
    top = repositories.make_repository(folder / "till", files)
    return project_at(top, files, changed, task=task, test_command=test_command)


def project_at(
    top: Path,
    files: Files,
    changed: Mapping[str, str | None] | None = None,
    *,
    task: str = TASK,
    test_command: str = UNITTEST,
) -> Project:
    """The project in a repository that is there already."""
    home = top.parent / "home"
    home.mkdir(exist_ok=True)
    gold = {"till/money.py": MENDED_MONEY} if changed is None else changed
    oracle = Oracle(
        [GoldFile(path=path, before=_text(files.get(path)), after=after) for path, after in gold.items()]
    )
    return Project(top=top, home=home, oracle=oracle, task=task, test_command=test_command)


@contextlib.contextmanager
def serving(project: Project, answerer: Answerer | None = None, **options: Any) -> Iterator[OllamaServer]:
    """A server that answers as the project's oracle does, or as `answerer` says."""
    with OllamaServer(answerer or Script(project.oracle), **options) as server:
        yield server


def edit(search: str, replacement: str, path: str = "till/money.py") -> str:
    """One edit in the format that models write."""
    return f'<edit file="{path}">\n<search>\n{search}\n</search>\n<replacement>\n{replacement}\n</replacement>\n</edit>\n'


@functools.cache
def _load_indexer() -> None:
    """The processes that commands fork to index inherit it; each would load it anew."""
    for name in ("app.indexing", "indexer.update"):
        importlib.import_module(f"clean_room_agent.{name}")
    prepare(("python",))


def _text(content: str | bytes | None) -> str | None:
    """As a prompt shows it: line ends, encoding and byte-order mark are the program's business."""
    return file_contents.decode(content).text if isinstance(content, bytes) else content
