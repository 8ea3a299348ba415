"""The arms that are ours: each is given a task's words in a copy of its repository, and leaves its result there.

All have the same model, tests in sight and bound of tokens. Others' agents are in `peers.py`.
"""

import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
from msgspec import Struct

import clean_room_agent
from benchmarks.commits.checkouts import BenchmarkError, git
from benchmarks.real.prompting import SYSTEM, Shown, applied, code_of, prompt_for
from benchmarks.real.proxy import Account
from benchmarks.real.tasks import Bench, Task

CRA = (sys.executable, "-m", "clean_room_agent")
OWN = Path(str(clean_room_agent.__file__))
DRAWS = 8
LONGEST_ANSWER = 4096
NOT_APPLIED = ("no_edits", "unreadable", "truncated", "refused")
"""Outcomes of attempts of `cra` whose answer changed nothing."""


class Model(Struct, frozen=True, kw_only=True):
    """The model that all arms ask."""

    name: str
    window: int
    """Tokens."""
    settings: tuple[str, ...] = ()
    """KEY=VALUE of what is configured for `cra` beyond its defaults."""
    fits: Path | None = None
    """The folder with what `cra models fit` measured, where `cra` is to go by it."""

    @property
    def folder(self) -> str:
        """Where its results stand."""
        return ", ".join((self.name, *(("fitted",) if self.fits else ()), *self.settings))

    @property
    def answer(self) -> int:
        """Tokens that an answer may have, where the arm leaves that open."""
        return min(self.window // 4, LONGEST_ANSWER)


class Run(Struct, frozen=True, kw_only=True):
    """One task for one arm: a tree to work in, and an account to spend."""

    bench: Bench
    task: Task
    tree: Path
    account: Account
    model: Model
    timeout: float
    """Seconds."""

    @property
    def log(self) -> Path:
        """What the arm printed."""
        return self.tree.with_name("log.txt")


class Left(Struct, frozen=True, kw_only=True):
    """How an arm ended; its result is in the tree."""

    claimed: bool
    """Whether it says that the task is done."""
    attempts: int
    """Answers that were meant to change something."""
    applied: int
    """Those of them that did."""
    note: str = ""
    lost: str = ""
    """Where, if the task turns out not to be solved; only `cra` tells."""


def command_run(run: Run, command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """Exit code (-1: stopped by the time limit) and standard output; all of it is in the log."""
    with run.log.open("a+", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                command,
                cwd=run.tree,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                timeout=run.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            output = exc.stdout or b""
            text = output.decode(errors="replace") if isinstance(output, bytes) else output
            log.write(text)
            return -1, text
        log.write(done.stdout)
    return done.returncode, done.stdout


def cra(run: Run) -> Left:
    """`cra init -y` and `cra solve`, all else by default but what the model says; claimed: it ends with 0.

    Raises:
        BenchmarkError: it could not be set up, so that nothing was asked: that says nothing about the task.
    """
    home = run.tree.with_name("home")
    variables = run.bench.variables(run.tree, run.task.environment) | {"HOME": str(home), "COLUMNS": "120"}
    variables.pop("PYTHONPATH")  # the program sees to it that the worktree's files are imported
    models = ("--coding", run.model.name, "--reasoning", run.model.name)
    server = ("--provider", "openai", "--base-url", run.account.base_url)
    tests = ("--test-command", shlex.join(run.task.command))
    commands: list[Sequence[str]] = [(*CRA, "init", "-y", *server, *models, *tests)]
    commands += [(*CRA, "config", "set", *one.split("=", 1)) for one in run.model.settings]
    if run.model.fits is not None:
        shutil.copytree(run.model.fits, home / ".local" / "state" / "cra" / "fits")
    for command in commands:
        code, _ = command_run(run, command, variables)
        if code:
            raise BenchmarkError(f"{shlex.join(command)} ended with {code}: {run.log} says why")
    code, output = command_run(run, (*CRA, "solve", "--json", run.task.words), variables)
    answer = json.loads(output) if output.strip() else {}
    if branch := answer.get("branch"):
        git(run.tree, "checkout", "--quiet", "--force", branch)
    tried = attempts_of(run.tree / ".clean_room" / "raw.sqlite")
    return Left(
        claimed=code == 0,
        attempts=len(tried),
        applied=sum(outcome not in NOT_APPLIED for outcome, _ in tried),
        note=f"exit {code}: {answer.get('reason') or answer.get('error') or ''}",
        lost="tokens spent" if run.account.refused else stage_lost(run.task, tried, claimed=code == 0),
    )


def require_own_build(work: Path, own: Path = OWN) -> None:
    """The `cra` that this arm starts is the package at `own`, which this benchmark belongs to. What PYTHONPATH names decides about the
    benchmark's imports only: the arm goes without it.

    Raises:
        BenchmarkError: this Python has another one installed.
    """
    command = (sys.executable, "-c", "import clean_room_agent as c; print(c.__file__)")
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, check=False)
    found = done.stdout.strip()
    if Path(found).resolve() != own.resolve():
        raise BenchmarkError(
            f"the arm cra would run {found or 'nothing'}, and not {own}: pip install -e {own.parents[2]}"
        )


def attempts_of(record: Path) -> list[tuple[str, str]]:
    """Outcome and diff of each attempt that a run's record tells of."""
    if not record.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT outcome, diff FROM run_attempts ORDER BY id").fetchall()


def stage_lost(task: Task, attempts: Sequence[tuple[str, str]], *, claimed: bool) -> str:
    """The stage at which a task that is not solved was lost."""
    if claimed:
        return "judged wrong"
    if not attempts:
        return "no attempt"
    touched = any(f"+++ b/{path}" in diff for _, diff in attempts for path in task.changed)
    if touched:
        return "candidate"
    return "place" if any(diff for _, diff in attempts) else "not applied"


def one_shot(run: Run) -> Left:
    """The first answer, at temperature 0; claimed: it could be applied and the tests in sight pass."""
    return _best_of(run, 1)


def best_of_n(run: Run) -> Left:
    """The first of up to eight answers with which the tests in sight pass, else the first that could be applied."""
    return _best_of(run, DRAWS)


def _best_of(run: Run, draws: int) -> Left:
    prompt, parts = prompt_for(run.tree, run.task.words, run.task.files, run.model.window // 2)
    first: tuple[Path, str] | None = None
    tried = could = 0
    seen: set[str] = set()
    for draw in range(draws):
        answer = ask(run, prompt, draw)
        if answer is None:
            break
        tried += 1
        candidate = changed_file(run, parts, code_of(answer))
        if candidate is None:
            continue
        could += 1
        first = first or candidate
        if candidate[1] in seen:
            continue
        seen.add(candidate[1])
        file, text = candidate
        before = file.read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        if passes(run):
            return Left(claimed=True, attempts=tried, applied=could)
        file.write_text(before, encoding="utf-8")
    if first:
        first[0].write_text(first[1], encoding="utf-8")
    return Left(claimed=False, attempts=tried, applied=could)


def ask(run: Run, prompt: str, draw: int) -> str | None:
    """The model's answer; None when the server refuses. The first draw is the likeliest answer."""
    body = {
        "model": run.model.name,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}],
        "max_tokens": run.model.answer,
        "temperature": 0.8 if draw else 0.0,
        "seed": draw,
    }
    url = f"{run.account.base_url}/v1/chat/completions"
    response = httpx.post(url, json=body, timeout=run.timeout, trust_env=False)
    if response.status_code != httpx.codes.OK:
        return None
    return str(response.json()["choices"][0]["message"]["content"])


def changed_file(run: Run, parts: Sequence[Shown], code: str) -> tuple[Path, str] | None:
    """The first file of those shown that the code changes, and its new text."""
    for part in parts:
        file = run.tree / part.path
        text = applied(file.read_text(encoding="utf-8"), code, part.text, run.task.words)
        if text is not None:
            return file, text
    return None


def passes(run: Run) -> bool:
    """Whether the tests in sight pass."""
    report = run.bench.run_suite(run.tree, run.task.command, run.task.environment)
    return bool(report.passed()) and "failed" not in report.outcomes.values()
