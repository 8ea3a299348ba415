"""`cra check --tests`: run the configured tests once, as a run would before it changes anything."""

import re
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.app import wiring
from clean_room_agent.app.record_check import Finding
from clean_room_agent.app.run_wiring import runner_setup
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import listed, new_task_id, short_id
from clean_room_agent.errors import ConfigError
from clean_room_agent.git.commits import snapshot
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import open_repository
from clean_room_agent.languages.test_runners import ABSENT
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, require_judging
from clean_room_agent.orchestrator.test_runs.missing_modules import (
    ignored_imports,
    include_remedy,
    missing_modules,
    module_name,
    own_names,
    package_of,
)
from clean_room_agent.orchestrator.test_runs.results import TestRun, exit_without_failure
from clean_room_agent.orchestrator.test_runs.worktrees import WorktreePool
from clean_room_agent.paths import is_secret_name
from clean_room_agent.workspace import CACHE_HINT, Workspace, private_folder

RAN = re.compile(
    r"\b[1-9]\d* (?:\w+ )?(?:tests?|passed|passing|pass|ok|specs?|examples?|assertions?|checks?)\b"
    r"|\b(?:tests?(?: run)?|specs?|passed|ok):? *[1-9]|^ok\b|\bPASS(?:ED)?\b|\u2713|\u2714",
    re.IGNORECASE | re.MULTILINE,
)
"""What runners print of tests that ran."""
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
    place = private_folder(wiring.worktrees_folder(workspace, settings), hint=CACHE_HINT) / short_id(task_id)
    bound = settings.orchestrator.max_untracked_bytes
    try:
        taken = snapshot(repo, task_id, secrets=is_secret_name, max_untracked_bytes=bound)
        setup = runner_setup(settings, repo, place)
        with WorktreePool(setup, task_id, Nobody()).open(taken.commit) as pool:
            runner = pool.first
            yield from (Finding(name="note", text=text) for text in pool.notes)
            yield from findings_of(runner, "test_command", runner.run_all("baseline"))
            if not runner.step_is_full:
                runner.checkout(taken.commit)
                yield from findings_of(runner, "step_test_command", runner.run_step())
    finally:
        for ref in list_refs(repo, f"refs/cra/{task_id}"):
            delete_ref(repo, ref)


def findings_of(runner: CommandRunner, key: str, run: TestRun) -> Iterator[Finding]:
    """What a run of the command `key`, before any change, tells."""
    try:
        require_judging(run, runner.config, key, sandboxed=runner.sandbox is not None)
    except ConfigError as error:
        yield Finding(name=key, text=error.message, ok=False, remedy=error.hint)
        return
    seconds, top = run.end.duration_ms / 1000, runner.tree.repo_top
    where = "in the sandbox" if runner.sandbox else "without a sandbox"
    how = f"({run.report.runner}, {where})"
    took = f"in {seconds:.1f} s {how}"
    unloaded = missing_modules(run, top)
    fault, remedy = (unloaded.text, unloaded.remedy) if unloaded else _fault(run, key)
    red = sorted(run.red())
    if fault:
        yield Finding(name=key, text=f"{fault} {how}", ok=False, remedy=remedy)
    elif run.report.runner == "unknown":
        yield Finding(name=key, text=f"exits with 0 {took}; only its exit code can be read")
    else:
        yield Finding(name=key, text=f"{run.report.passed} passed, {len(red)} failed {took}")
    if seconds > SHORT * runner.config.timeout:
        slow = f"takes over half of timeout = {runner.config.timeout:g} s"
        yield Finding(name="time", text=f"{key} {slow}", ok=False, remedy="raise it in [testing]")
    if unloaded:
        return
    exit_code = exit_without_failure(run)
    if exit_code:
        told = f"{key} {exit_code}; a result that ends in the same way is accepted"
        yield Finding(name="exit code", text=told)
    if red:
        named = f"already fail before any change, and may keep failing: {listed(red, SHOWN)}"
        yield Finding(name="failing tests", text=named)
    yield from _missing(run, top)


def _fault(run: TestRun, key: str) -> tuple[str, str]:
    """Why the run shows nothing, and what to do about it; empty if it shows something."""
    report, code = run.report, run.end.returncode
    if not report.whole:
        return f"{report.passed} passed, {len(run.red())} failed; {report.problem}", f"fix {key} in [testing]"
    lines = [line.strip() for line in run.end.output.splitlines() if line.strip()]
    last = f": {lines[-1]}" if lines else ""
    if report.runner == "unknown" and code != 0:
        remedy = f"see what it says by itself; a run needs a {key} that tells failing tests from others"
        return f"exits with {code} before any change, and no test is seen{last}", remedy
    if report.runner == "unknown" and not RAN.search(run.end.output):
        return (
            f"exits with 0, and no test is seen to run{last}",
            f"name the command that runs the tests: {key} in [testing]",
        )
    if report.runner != "unknown" and not report.passed and not run.red():
        return "no test passed or failed: all were skipped", f"make {key} in [testing] run some of them"
    return "", ""


def _missing(run: TestRun, top: Path) -> Iterator[Finding]:
    """Modules that failing tests cannot import: files that git ignores, and third-party ones."""
    said = (
        "\n".join(test.message for test in run.failing) + "\n" + ("" if run.report.whole else run.end.excerpt)
    )
    found = tuple(ABSENT.finditer(said))
    if not found:
        return
    words = {word for match in found for word in re.findall(r"\w+", match[0])}
    ignored = [path for path in ignored_imports(top) if module_name(path) in words]
    if ignored:
        text = f"some tests need what git ignores: {', '.join(ignored[:SHOWN])}"
        yield Finding(name="ignored files", text=text, ok=False, remedy=include_remedy(ignored))
    missing = sorted({*map(package_of, found)} - own_names(top) - {"", *map(module_name, ignored)})
    if missing:
        remedy = "install them where the command finds them, or link the environment with [worktree] link"
        yield Finding(name="dependencies", text=f"missing: {', '.join(missing)}", ok=False, remedy=remedy)
