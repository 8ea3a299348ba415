"""Real bug fixes, each solved by `cra solve "<the commit's message>"` at the commit's parent with its new tests present.

python -m benchmarks.solve_real WORK --mirror '/mirrors/{owner}+{name}' [--window 8192 ...] [--only TEXT] [--write]

The model is the oracle (`tests/fakes/oracle.py`), a real server on this machine: it knows the commit, and writes only
what its prompt shows it. The user's tree is dirty when the run begins: the new tests are uncommitted, there is an
untracked file, a stash, and a setting of the user's own. Everything of the user's is compared by checksum before and
after. The verdict is not `cra`'s: the result's branch is checked out elsewhere and the commit's tests are run on it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.commit_list import CommitEntry, CommitList, read_list
from benchmarks.commit_trees import (
    BenchmarkError,
    bring,
    clone,
    environment_folder,
    git,
    message_of,
    run_tests,
    test_environment,
)
from benchmarks.report import RESULTS, write_section
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.oracle import GoldFile, Oracle
from tests.fakes.repositories import fingerprint

from clean_room_agent.cli.init import write_config
from clean_room_agent.workspace import Workspace

LIST = Path(__file__).with_name("real_commits.toml")
WINDOWS = (8192, 16384, 32768)
SOLVE_TIMEOUT_S = 900.0
MODELS = ("coder:3b", "thinker:4b")
TITLE = "Real bug fixes, solved with the oracle"
ROW = re.compile(
    r"^\| ([\w-]+) \| \d+ \| \d+ \| (\d+)k \| (yes|\*\*no\*\*) \| (yes|\*\*no\*\*) \|.*$", re.MULTILINE
)
LOSS = re.compile(r"^- ([\w-]+) at (\d+)k: .*$", re.MULTILINE)
USERS_NOTE = "a file of the user's, in nobody's way\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """One commit at one window."""

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

    @property
    def own_seconds(self) -> float:
        """Neither in the model nor in tests."""
        return self.seconds - self.model_seconds - self.test_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the results page."""

    id: str
    window: int
    """In thousands of tokens."""
    solved: bool
    untouched: bool
    row: str
    loss: str
    """What went wrong; "" where nothing did."""


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


def gold_of(top: Path, entry: CommitEntry) -> list[GoldFile]:
    """The commit's source files, before and after."""

    def blob(commit: str, path: str) -> str | None:
        done = subprocess.run(("git", "show", f"{commit}:{path}"), cwd=top, capture_output=True, check=False)
        return done.stdout.decode("utf-8") if done.returncode == 0 else None

    return [
        GoldFile(path=path, before=blob(entry.base, path), after=blob(entry.commit, path))
        for path in entry.sources
    ]


def attempt(work: Path, mirror: str, listed: CommitList, entry: CommitEntry, window: int) -> Attempted:
    """The commit has been tried once, from a fresh clone of its own."""
    source = clone(work, mirror, entry.repository)
    home = work / "solve" / f"{entry.id}-{window}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    top = home / entry.repository.split("/")[1]
    git(home, "clone", "--quiet", "--no-checkout", "--shared", str(source), str(top))
    exclude = top / ".git" / "info" / "exclude"
    exclude.write_text("node_modules\n.venv\n", encoding="utf-8")
    put_user_state(top, entry)
    kind = listed.environments[entry.environment]
    folder = environment_folder(work, entry.environment, kind)
    variables = test_environment(work, top, kind, folder)
    variables.pop("PYTHONPATH", None)  # the program has to see to it that the worktree's files are imported
    variables["XDG_CACHE_HOME"] = str(home / "cache")
    task = message_of(top, entry.commit)
    oracle = Timed(Oracle(gold_of(top, entry)))
    with OllamaServer(oracle, models=MODELS) as server:
        write_config(
            Workspace(repo=top),
            {
                "models": {"base_url": server.base_url, "coding": MODELS[0], "reasoning": MODELS[1]},
                "budget": {"context_window": window, "reserved_tokens": window // 4},
                "solve": {"max_attempts": 3, "max_refinement_loops": 2},
                "testing": {"test_command": shlex.join(entry.command), "timeout": 170},
            },
        )
        cra = (sys.executable, "-m", "clean_room_agent")
        subprocess.run((*cra, "index"), cwd=top, env=variables, capture_output=True, check=True)
        before = fingerprint(top, refs=("refs/cra/", "refs/heads/cra/"))
        started = time.monotonic()
        command = (
            *cra,
            "solve",
            "--json",
            "--events",
            str(home / "events"),
            task,
        )
        done = subprocess.run(
            command,
            cwd=top,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=SOLVE_TIMEOUT_S,
        )
        seconds = time.monotonic() - started
    untouched = fingerprint(top, refs=("refs/cra/", "refs/heads/cra/")) == before
    (home / "stderr").write_text(done.stderr, encoding="utf-8")
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
    solved = bool(answer.get("branch")) and passes(work, listed, entry, top, answer["branch"])
    words = "" if solved else str(answer.get("reason") or "") or done.stderr.strip()[-400:]
    return Attempted(
        entry=entry,
        window=window,
        exit_code=done.returncode,
        solved=solved,
        untouched=untouched,
        answer=answer,
        words=words,
        seconds=seconds,
        model_seconds=oracle.seconds,
        test_seconds=tests_of(home / "events"),
    )


class Timed:
    """An answerer that remembers how long it took."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.seconds = 0.0

    def __call__(self, call: Any) -> Any:
        """The oracle's answer."""
        started = time.monotonic()
        try:
            return self._oracle(call)
        finally:
            self.seconds += time.monotonic() - started


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


def row(done: Attempted) -> str:
    """One line of the table."""
    answer = done.answer
    fullest = answer.get("fullest_window", {}).get("tokens", 0)
    cells = (
        done.entry.id,
        str(len(done.entry.sources)),
        str(done.entry.changed_lines),
        f"{done.window // 1024}k",
        "yes" if done.solved else "**no**",
        "yes" if done.untouched else "**no**",
        str(answer.get("calls", "")),
        f"{fullest:,}",
        f"{done.seconds:.1f}",
        f"{done.own_seconds:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| commit | source files | lines | window | solved | user's tree identical | calls | fullest prompt, tokens "
    "| s in all | s outside model and tests |\n|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "work", type=Path, help="folder for checkouts and environments, outside this repository"
    )
    parser.add_argument("--mirror", required=True, help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", default="", help="only the commits in whose id this stands")
    parser.add_argument("--window", type=int, action="append", help="tokens; may be given more than once")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    listed = read_list(arguments.list)
    rows: list[Attempted] = []
    print(HEAD)
    for entry in listed.commits:
        if arguments.only not in entry.id:
            continue
        for window in arguments.window or WINDOWS:
            try:
                done = attempt(work, arguments.mirror, listed, entry, window)
            except BenchmarkError as exc:
                print(exc, file=sys.stderr)
                return 1
            rows.append(done)
            print(row(done), flush=True)
            if not done.solved:
                print(f"    {done.words}", file=sys.stderr)
    new = {(line.id, line.window): line for line in map(line_of, rows)}
    print(summary(new.values()))
    if arguments.write:
        # What was not run this time stays as it was measured.
        old = kept_lines(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        place = {entry.id: number for number, entry in enumerate(listed.commits)}
        known = {key: line for key, line in {**old, **new}.items() if key[0] in place}
        write_section(
            TITLE, text_of([known[key] for key in sorted(known, key=lambda key: (place[key[0]], key[1]))])
        )
    return 0 if all(done.solved and done.untouched for done in rows if done.window == max(WINDOWS)) else 1


def summary(lines: Iterable[Line]) -> str:
    """How many were solved at each window."""
    of: dict[int, list[Line]] = {}
    for line in lines:
        of.setdefault(line.window, []).append(line)
    return "\n".join(
        f"- window {window}k: {sum(line.solved for line in found)} of {len(found)} solved, "
        f"the user's tree identical in {sum(line.untouched for line in found)} of {len(found)}"
        for window, found in sorted(of.items())
    )


def line_of(done: Attempted) -> Line:
    """What the results keep of an attempt."""
    words = " ".join(done.words.split())[:400]
    kilo = done.window // 1024
    loss = "" if done.solved else f"- {done.entry.id} at {kilo}k: exit {done.exit_code}: {words}"
    return Line(
        id=done.entry.id,
        window=kilo,
        solved=done.solved,
        untouched=done.untouched,
        row=row(done),
        loss=loss,
    )


def kept_lines(text: str) -> dict[tuple[str, int], Line]:
    """The lines of a results page that was written before, by commit and window in thousands."""
    losses = {(match[1], int(match[2])): match[0] for match in LOSS.finditer(text)}
    lines = {}
    for found in ROW.finditer(text):
        key = found[1], int(found[2])
        lines[key] = Line(
            id=key[0],
            window=key[1],
            solved=found[3] == "yes",
            untouched=found[4] == "yes",
            row=found[0],
            loss=losses.get(key, ""),
        )
    return lines


def text_of(lines: Sequence[Line]) -> str:
    """The section of the results."""
    losses = [line.loss for line in lines if line.loss]
    lost = "\n\nNot solved, in the program's own words:\n\n" + "\n".join(losses) if losses else ""
    return "\n".join([*summary(lines).splitlines(), "", HEAD, *(line.row for line in lines)]) + lost


if __name__ == "__main__":
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    sys.exit(main())
