"""`cra check --tests`: run the configured tests once, as a run would before it changes anything."""

import re
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.app import wiring
from clean_room_agent.app.record_check import Finding
from clean_room_agent.app.run_wiring import runner_setup
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id, short_id
from clean_room_agent.errors import ConfigError
from clean_room_agent.git.commits import snapshot
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import open_repository
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.run import require_judging
from clean_room_agent.orchestrator.testing.test_runner import TestRunner
from clean_room_agent.orchestrator.testing.worktrees import WorktreePool
from clean_room_agent.paths import is_secret_name
from clean_room_agent.workspace import Workspace, private_folder

MISSING = re.compile(r"No module named '([\w.]+)'|Cannot find (?:module|package) '([^'\n]+)'")
SHOWN = 5
"""The most failing tests that are named."""
SHORT = 0.5
"""From this share of the timeout on, a line says that the tests are close to it."""


def check_tests(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Run both test commands as a run would: in a worktree with the uncommitted work, in the sandbox if there is one.
    Everything is cleaned up.

    Raises:
        ConfigError: a sandbox is configured, but not possible.
        GitError: the worktree cannot be created.
    """
    repo = open_repository(workspace.repo)
    task_id = new_task_id()
    place = private_folder(wiring.worktrees_folder(workspace, settings)) / short_id(task_id)
    bound = settings.orchestrator.max_untracked_bytes
    try:
        taken = snapshot(repo, task_id, secrets=is_secret_name, max_untracked_bytes=bound)
        setup = runner_setup(settings, repo, place)
        with WorktreePool(setup, task_id, Nobody()).open(taken.commit) as pool:
            runner = pool.first
            yield from (Finding(name="note", text=text) for text in pool.notes)
            yield from _of_run(runner, "test_command", runner.run_all("baseline"))
            if not runner.step_is_full:
                runner.checkout(taken.commit)
                yield from _of_run(runner, "step_test_command", runner.run_step())
    finally:
        for ref in list_refs(repo, f"refs/cra/{task_id}"):
            delete_ref(repo, ref)


def _of_run(runner: TestRunner, key: str, run: TestRun) -> Iterator[Finding]:
    try:
        require_judging(run, runner.config, key, sandboxed=runner.sandbox is not None)
    except ConfigError as error:
        yield Finding(name=key, text=error.message, ok=False, remedy=error.hint)
        return
    seconds = run.end.duration_ms / 1000
    red = sorted(run.red())
    where = "in the sandbox" if runner.sandbox else "without a sandbox"
    text = f"{run.report.passed} passed, {len(red)} failed in {seconds:.1f} s ({run.report.runner}, {where})"
    if not run.report.whole:
        yield Finding(
            name=key, text=f"{text}; {run.report.problem}", ok=False, remedy=f"fix {key} in [testing]"
        )
    elif seconds > SHORT * runner.config.timeout:
        slow = f"that is over half of timeout = {runner.config.timeout:g}: raise it in [testing]"
        yield Finding(name=key, text=text, ok=False, remedy=slow)
    else:
        yield Finding(name=key, text=text)
    if red:
        more = f" and {len(red) - SHOWN} more" if len(red) > SHOWN else ""
        named = f"already fail before any change, and may keep failing: {', '.join(red[:SHOWN])}{more}"
        yield Finding(name="failing tests", text=named)
    missing = _missing(run, runner.tree.repo_top)
    if missing:
        remedy = "install them where the command finds them, or link the environment with [worktree] link"
        yield Finding(name="dependencies", text=f"missing: {', '.join(missing)}", ok=False, remedy=remedy)


def _missing(run: TestRun, top: Path) -> list[str]:
    """Third-party modules that failing tests cannot import, without those that the repository itself could have."""
    said = (
        "\n".join(test.message for test in run.failing) + "\n" + ("" if run.report.whole else run.end.excerpt)
    )
    names = {(python or script).split(".")[0] for python, script in MISSING.findall(said)}
    own = {path.name.split(".")[0] for folder in (top, top / "src") for path in folder.glob("*")}
    return sorted(name for name in names - own if name and not name.startswith("/"))
