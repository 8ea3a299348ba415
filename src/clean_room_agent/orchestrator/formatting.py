"""Formats what a run changed, by the repository's own command, as a commit of its own.

The command is given the changed files and nothing else, and runs where tests run. Only those files are read back: whatever else
it changes goes with the next checkout. A formatter that fails, or after which tests fail, leaves the result as it was.
"""

import os
import shlex

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.artifacts.names import listed
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.file_contents import MAX_TEXT_BYTES, NotTextError, decode
from clean_room_agent.git.commits import FileChange
from clean_room_agent.orchestrator.commits import REGULAR_MODES
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.gate import newly_failing
from clean_room_agent.orchestrator.test_runs.results import TestRun

MAX_NAMED = 3


class Formatted(Struct, frozen=True, kw_only=True):
    """What the command did to the result."""

    commit: str = ""
    """The formatted result; "" if that is the result as it was."""
    said: str
    """In one line."""
    tests: TestRun | None = None
    """The full tests of the formatted result, if it stands."""


def format_result(run: Run, final: TestRun, before: str) -> TestRun:
    """Format the files that the run changed since the commit `before`; the run's head is then the formatted result. `final` are
    the full tests of the result as it was; returns those of the result as it is then.
    """
    command, commits = run.tests.config.format_command, run.commits
    paths = _changed_files(run, before) if command else ()
    if command is None or not paths:
        return final
    entry = run.journal.entry(run.task.task_id, "formatted", Formatted, (commits.head, command))
    done = entry.value
    if done is None or (done.commit and not commits.exists(done.commit)):
        done = entry.keep(_format_paths(run, final, command, paths))
    run.recorder.event(run.task.task_id, EventKind.FORMATTED, done.said)
    run.recorder.note(done.said)
    if done.tests is None:
        return final
    commits.head = done.commit
    return done.tests


def _changed_files(run: Run, before: str) -> tuple[str, ...]:
    """The files that can be formatted: git converts none of them, and each is a text."""
    tree = run.commits.tree()
    changed = tuple(one.path for one in run.commits.changed(before, run.commits.head) if one.status != "D")
    texts, _ = tree.texts(changed)
    return tuple(path for path in changed if path in texts)


def _format_paths(run: Run, final: TestRun, command: str, paths: tuple[str, ...]) -> Formatted:
    runner, commits = run.tests, run.commits
    runner.checkout(commits.head)
    stamps = _file_stamps(run)
    code, output = runner.run_apart(f"{command} {shlex.join(paths)}")
    others = [
        path for path, stamp in _file_stamps(run).items() if stamp != stamps[path] and path not in paths
    ]
    more = f"; it also changed {listed(others, MAX_NAMED)}, which stays as it was" if others else ""
    if code != 0:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        return Formatted(said=f"nothing is formatted: exit {code} of {command}: {' '.join(lines[-1:])}{more}")
    changes = {}
    for path in paths:
        try:
            data = safe_open.read_bytes(runner.root, path, max_bytes=MAX_TEXT_BYTES + 1)
            decode(data)
        except (OSError, NotTextError) as error:
            return Formatted(said=f"nothing is formatted: {command} left of {path}: {error}{more}")
        mode = commits.tree().mode(path)
        if data != commits.tree().data(path) and mode in REGULAR_MODES:
            changes[path] = FileChange(data=data, mode=mode)
    if not changes:
        return Formatted(said=f"{command} changes nothing{more}")
    message = f"Format what was changed\n\n{command}\n\nCra-Task: {run.task.task_id}\n"
    commit = commits.commit(changes, message, keep_as="formatted")
    runner.checkout(commit)
    tests = runner.run_all("formatted")
    broken = newly_failing(final, tests)
    if broken:
        return Formatted(said=f"nothing is formatted: then {listed(broken, MAX_NAMED)} fails{more}")
    said = f"formatted {listed(changes, MAX_NAMED)} by {command}, in a commit of its own: {commit[:10]}{more}"
    return Formatted(commit=commit, said=said, tests=tests)


def _file_stamps(run: Run) -> dict[str, tuple[int, int] | None]:
    """Size and time of each file of the result, as it is in the worktree; None where it is not."""
    found: dict[str, tuple[int, int] | None] = {}
    for path in sorted(run.commits.tree().paths):
        try:
            about = os.lstat(run.tests.root / path)
        except OSError:
            found[path] = None
        else:
            found[path] = (about.st_size, about.st_mtime_ns)
    return found
