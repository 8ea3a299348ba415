"""`cra check`: one finding for each thing that a run needs, with its remedy."""

import contextlib
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from clean_room_agent import proc
from clean_room_agent.app import wiring
from clean_room_agent.app.fit.fit_view import fit_view
from clean_room_agent.app.fit.fitted import fits_of, sums_of_runs
from clean_room_agent.app.leftovers import delete_refs
from clean_room_agent.app.model_server import model_on, open_server
from clean_room_agent.app.record_check import CheckFinding, check_record
from clean_room_agent.app.run_wiring import runner_setup
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.model_calls import CallWatcher, unwatched
from clean_room_agent.artifacts.names import counted, listed, new_task_id, short_id
from clean_room_agent.db.connection import connect_file
from clean_room_agent.errors import ConfigError, CraError, ModelError, TruncatingServer, UsageError
from clean_room_agent.file_contents import sync_folder
from clean_room_agent.git.command import git
from clean_room_agent.git.commits import snapshot
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree, remove_worktree
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_runners import ABSENT
from clean_room_agent.languages.watch_mode import watching
from clean_room_agent.llm.answer_rules import MAX_NUMBER, bounds
from clean_room_agent.llm.answers import (
    NO_THINKING,
    THINKING_ONLY,
    YES_NO_TOKENS,
    YES_OR_NO,
    Choice,
    JsonAnswer,
)
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import ModelServer
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.run_config import SandboxMode
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, require_judging
from clean_room_agent.orchestrator.test_runs.missing_modules import (
    ignored_imports,
    include_remedy,
    missing_modules,
    module_name,
    own_names,
    package_of,
)
from clean_room_agent.orchestrator.test_runs.results import TestRun, exit_without_failure, telling_lines
from clean_room_agent.orchestrator.test_runs.test_commands import program_of
from clean_room_agent.orchestrator.test_runs.worktrees import NO_SANDBOX, WorktreePool
from clean_room_agent.paths import is_secret_name
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Obstacle, working_bubblewrap
from clean_room_agent.sandbox.escapes import BECOME_NOBODY, try_escapes
from clean_room_agent.workspace import CACHE_HINT, Workspace, private_folder, require_writable

MIN_GIT = (2, 31)
SHELL_SECONDS = 10


class CheckAnswer(BaseModel):
    """The answer that the check asks for."""

    number: Annotated[int, bounds(minimum=0, maximum=MAX_NUMBER)]


class CheckInputs(Struct, frozen=True, kw_only=True):
    """The inputs of the check's prompt."""

    number: int


CHECK_PROMPT: Prompt[CheckInputs, CheckAnswer] = Prompt(
    name="check",
    role="reasoning",
    title="Give a number back",
    system="You answer with JSON alone.",
    template='{{ heading }}\n\nAnswer with an object of the form {"number": ...} that holds this number: {{ number }}',
    answer=JsonAnswer(CheckAnswer),
    max_answer_tokens=64,
    example='{"number": 7}',
)


VERDICT_PROMPT: Prompt[CheckInputs, Choice] = Prompt(
    name="check_verdict",
    role="classifier",
    title="Is it a number?",
    system="You answer yes or no.",
    template="{{ heading }}\n\nAnswer with one word: yes or no.\n\nIs {{ number }} a number?",
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)


PROBED: tuple[Role, ...] = ("classifier", "reasoning", "coding")
"""Roles in this order; if they share a model, the last is named."""


def suite_checks(repo: Path) -> Iterator[CheckFinding]:
    """Lines on the configured tests, run once."""
    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("testing")
    yield from check_tests(workspace, settings)


def record_checks(repo: Path, *, thorough: bool) -> Iterator[CheckFinding]:
    """Lines on the record: whether it is undamaged, private and consistent."""
    for found in check_record(wiring.workspace_of(repo), thorough=thorough):
        yield replace(found, exit_code=1)


def as_object(line: CheckFinding) -> dict[str, object]:
    """A line as `--json` answers it."""
    return {"name": line.name, "ok": line.ok, "text": line.text, "remedy": "" if line.ok else line.remedy}


def run_checks(path: Path, watch: CallWatcher = unwatched) -> Iterator[CheckFinding]:
    """The lines, in the order in which a run would need their subjects; checks that depend on a failed one are left
    out. `watch` is told of calls to models.
    """
    yield from local_checks(path)
    try:
        workspace = wiring.workspace_of(path)
        settings = _required_settings(workspace)
    except CraError:
        return  # one of the lines said so
    yield from _check_models(workspace, settings, watch)


def local_checks(path: Path) -> Iterator[CheckFinding]:
    """The lines that need no model server."""
    yield _check_platform()
    yield _attempt_check("git", _check_git)
    where = _attempt_check("repository", lambda: _check_repository(path))
    yield where
    if not where.ok:
        return
    workspace = wiring.workspace_of(path)
    yield _attempt_check("worktree", lambda: _check_worktree(workspace))
    yield _attempt_check("disk", lambda: _check_disk(workspace))
    settings: Settings | None = None

    def load() -> str:
        nonlocal settings
        settings = _required_settings(workspace)
        return str(workspace.config)

    yield _attempt_check("configuration", load)
    yield _attempt_check("index", lambda: _check_index(workspace))
    if settings is None:
        return
    known = settings
    yield _attempt_check("test command", lambda: _test_command(known, workspace))
    yield sandbox_line(known.sandbox.mode)
    yield _attempt_check("local only", lambda: _check_local_only(known))


def _required_settings(workspace: Workspace) -> Settings:
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget", "stages", "solve", "testing")
    return settings


def _check_disk(workspace: Workspace) -> str:
    """What a power cut may take where the record is, or will be."""
    folder = workspace.folder if workspace.folder.exists() else workspace.repo
    if not sync_folder(folder):
        return "this file system syncs files, but no folders: a power cut may lose the newest of them"
    return "files and folders can be synced"


def try_sandbox() -> Iterator[CheckFinding]:
    """A line on bubblewrap, and one for each kind of user with the number of blocked escape attempts."""
    environment = dict(os.environ)
    found = working_bubblewrap()
    if isinstance(found, Obstacle):
        yield CheckFinding(name="sandbox", ok=False, text=found.reason, remedy=found.remedy)
        return
    yield CheckFinding(name="sandbox", ok=True, text=f"bubblewrap {found.version} works")
    bubblewrap: Bubblewrap = found

    def escapes(*, as_nobody: bool) -> str:
        tried = try_escapes(bubblewrap, environment, as_nobody=as_nobody)
        out = [attempt for attempt in tried if not attempt.blocked]
        counted = f"blocked {len(tried) - len(out)}/{len(tried)}"
        if out:
            told = "; ".join(f"{attempt.name} ({attempt.detail})" for attempt in out)
            raise UsageError(
                f"{counted}: {told}", hint="report it to the maintainers; until then, use a container"
            )
        return counted

    root = os.geteuid() == 0
    yield _attempt_check("escapes as root" if root else "escapes", lambda: escapes(as_nobody=False))
    if root and shutil.which(BECOME_NOBODY[0]):
        yield _attempt_check("escapes as an ordinary user", lambda: escapes(as_nobody=True))


def sandbox_line(mode: SandboxMode) -> CheckFinding:
    """Whether tests can be isolated in this mode."""
    if mode == "none":
        return CheckFinding(name="sandbox", ok=True, text=NO_SANDBOX)
    found = working_bubblewrap()
    if isinstance(found, Bubblewrap):
        return CheckFinding(name="sandbox", ok=True, text=f"bubblewrap {found.version} works")
    if mode == "auto":
        return CheckFinding(name="sandbox", ok=True, text=f"{NO_SANDBOX} ({found.reason}; {found.remedy})")
    return CheckFinding(name="sandbox", ok=False, text=found.reason, remedy=found.remedy)


def _check_structured_answers(services: wiring.Services, task_id: str) -> str:
    """Ask for a tiny object and read it, in the same way as every run."""
    reply = services.models.ask(CHECK_PROMPT, CheckInputs(number=7), pass_id=task_id)
    if reply.value is None:
        fault = reply.bad.fault if reply.bad else ""
        _require_answer("reasoning", fault)
        raise ModelError(
            f"the reasoning model's answer cannot be read: {fault}: {reply.text.strip()[:80]!r}",
            hint="use an instruction-tuned model, or another schema_dialect in [models] if the server has several",
        )
    return "the reasoning model answers in the required format"


def _require_answer(which: str, fault: str) -> None:
    if THINKING_ONLY in fault:
        raise ModelError(f"the {which} model: {fault}", hint=NO_THINKING)


def _check_verdicts(services: wiring.Services, task_id: str) -> str:
    """Ask for a yes, to see whether the answer comes with token probabilities."""
    reply = services.models.ask(VERDICT_PROMPT, CheckInputs(number=7), pass_id=task_id, repair=False)
    if reply.value is None:
        _require_answer("judging", reply.bad.fault if reply.bad else "")
        return f"the judging model says neither yes nor no to an easy question: {reply.text.strip()[:40]!r}"
    if reply.value.confidence is None:
        return "yes and no are read from the word: the server gives no token probabilities"
    return f"yes and no are read with a confidence ({reply.value.confidence:.2f} here)"


def _check_platform() -> CheckFinding:
    system = platform.system()
    return CheckFinding(
        name="platform",
        ok=system in {"Linux", "Darwin"},
        text=f"{system} {platform.machine()}, Python {platform.python_version()}",
        remedy="use Linux, macOS, or Windows through WSL2",
    )


def _attempt_check(name: str, work: Callable[[], str]) -> CheckFinding:
    try:
        return CheckFinding(name=name, ok=True, text=work())
    except CraError as error:
        return CheckFinding(
            name=name, ok=False, text=error.message, remedy=error.hint, exit_code=error.exit_code
        )


def _check_git() -> str:
    words = git("version", cwd=Path("/")).decode().split()
    number = tuple(int(part) for part in words[2].split(".")[:2])
    if number < MIN_GIT:
        raise UsageError(
            f"git {words[2]} is too old", hint=f"git {MIN_GIT[0]}.{MIN_GIT[1]} or newer is needed"
        )
    return words[2]


def _check_repository(path: Path) -> str:
    workspace = wiring.workspace_of(path)
    if workspace.folder.exists():
        require_writable(workspace.folder)
    return str(open_repository(workspace.repo).top)


def _check_worktree(workspace: Workspace) -> str:
    repo = open_repository(workspace.repo)
    where = (
        private_folder(workspace.worktrees(wiring.cache_folder()), hint=CACHE_HINT)
        / f"check-{new_task_id()[:8]}"
    )
    remove_worktree(add_worktree(repo, repo.head, where, "check"))
    return f"can be made and removed below {where.parent}"


def _check_index(workspace: Workspace) -> str:
    if not workspace.curated.exists():
        return "not built yet; the first command that needs it builds it"
    with contextlib.closing(connect_file("curated", workspace.curated, read_only=True)) as conn:
        overview = KnowledgeBase(conn).get_repo_overview()
    if overview is None:
        return "empty; the first command that needs it fills it"
    return f"{counted(overview.files, 'file')}, indexed {overview.repo.indexed_at[:19]} UTC"


def _test_command(settings: Settings, workspace: Workspace) -> str:
    command = settings.testing.test_command
    read = _run_in_shell(workspace, "-n", "-c", command)  # -n: it is read, and nothing is run
    if read.returncode != 0:
        said = read.stderr.decode("utf-8", "replace").strip()
        raise UsageError(f"{command}: the shell cannot read it: {said}", hint="fix [testing] test_command")
    program = program_of(command)
    if program and _run_in_shell(workspace, "-c", 'command -v -- "$1"', "sh", program).returncode != 0:
        raise UsageError(f"{command}: there is no program {program!r}", hint="fix [testing] test_command")
    if waits := watching(command, RepositoryFiles(workspace.repo, ()).scripts):
        raise UsageError(
            f"{command}: it waits for changes ({waits}), so it never ends",
            hint="give [testing] test_command the command that runs the tests once",
        )
    return command


def _run_in_shell(workspace: Workspace, *words: str) -> proc.Completed:
    return proc.run(("sh", *words), cwd=workspace.repo, timeout=SHELL_SECONDS, check=False)


def _check_local_only(settings: Settings) -> str:
    places = " and ".join(one.base_url for one in settings.models.each_server())
    if settings.models.allow_remote:
        where = f"to {places}, and wherever that forwards them"
        return f"no: prompts may leave this machine, {where} (allow_remote = true)"
    return f"yes: {places} is this machine"


def _check_models(workspace: Workspace, settings: Settings, watch: CallWatcher) -> Iterator[CheckFinding]:
    there = True
    for one in settings.models.each_server():
        line = _attempt_check("model server", lambda one=one: f"{one.base_url}, {open_server(one).version()}")  # type: ignore[misc]
        yield line
        there = there and line.ok
    if not there:
        return
    asked = open_server(settings.models)

    def describe(tag: str) -> str:
        details = model_on(asked, tag, settings.models)
        told = [f"forwarded to {details.forwards_to}"] if details.forwards_to else []
        told += [f"served with a window of {details.served:,} tokens"] if details.served else []
        told += [f"trained for {counted(details.context_length, 'token')}"] if details.context_length else []
        return ", ".join([tag, *told])

    missing = False
    for tag in settings.models.tags():
        line = _attempt_check("model", lambda tag=tag: describe(tag))  # type: ignore[misc]
        missing = missing or not line.ok
        yield line
    if missing:
        return
    task_id = new_task_id()
    with wiring.open_services(workspace, settings, task_id, watch=watch) as services:

        def probe(role: Role) -> str:
            found = services.models.probe(role, pass_id=task_id)
            if found.refused:
                return f"{role}: a prompt beyond the window is refused, not truncated"
            if found.read_whole:
                return f"{role}: a prompt beyond the configured window was read whole: the server's is larger"
            raise TruncatingServer(
                f"{role}: the server truncates long prompts without saying so",
                hint="update the server (Ollama from 0.12.4 on), or set allow_truncating_server = true in [models]",
            )

        for role in {services.router.resolve(role, PROBE_NAME).tag: role for role in PROBED}.values():
            yield _attempt_check("window", lambda role=role: probe(role))  # type: ignore[misc]
        yield _attempt_check("structured answers", lambda: _check_structured_answers(services, task_id))
        yield _attempt_check("verdicts", lambda: _check_verdicts(services, task_id))
        services.session.archive(services.record)
    yield from _check_fit(workspace, settings, asked)


def _check_fit(workspace: Workspace, settings: Settings, server: ModelServer) -> Iterator[CheckFinding]:
    """Whether the models are measured, and what is configured against it."""
    try:
        view = fit_view(settings, fits_of(settings, server), sums_of_runs(workspace, settings))
    except ConfigError as error:
        yield CheckFinding(
            name="fit", ok=False, text=error.message, remedy=error.hint, exit_code=error.exit_code
        )
        return
    if view.verdict:
        yield CheckFinding(name="fit", text=view.verdict)
    elif not view.whole:
        yield CheckFinding(
            name="fit",
            text="what the models can be asked for is not measured: `cra models fit` does it, once",
        )
    else:
        yield CheckFinding(name="fit", text=f"measured: {', '.join(view.models)}")
    for one in view.overridden:
        configured, chosen = (json.dumps(value) for value in (settings.data[one.table][one.key], one.value))
        told = f"[{one.table}] {one.key} = {configured} is configured, where {chosen} would be chosen"
        yield CheckFinding(name="fit", text=f"{told} ({one.why})")


RAN = re.compile(
    r"\b[1-9]\d* (?:\w+ )?(?:tests?|passed|passing|pass|ok|specs?|examples?|assertions?|checks?)\b"
    r"|\b(?:tests?(?: run)?|specs?|passed|ok):? *[1-9]|^ok\b|\bPASS(?:ED)?\b|\u2713|\u2714",
    re.IGNORECASE | re.MULTILINE,
)
"""What runners print of tests that ran."""
SHOWN = 5
"""The most failing tests that are named."""
MAY_FAIL = {
    "no-new-failures": "may keep failing",
    "all-pass": 'no result is complete unless they pass then, or accept = "goals" in [testing] lets them fail',
}
"""What failing tests mean, by `[testing] accept`."""
NO_GOALS = "may keep failing where other tests show that a task is done"
SHORT = 0.5
"""From this share of the timeout on, a line says that the tests are close to it."""


def check_tests(workspace: Workspace, settings: Settings) -> Iterator[CheckFinding]:
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
            yield from (CheckFinding(name="note", text=text) for text in pool.notes)
            yield from findings_of(runner, "test_command", runner.run_all("baseline"))
            if not runner.step_is_full:
                runner.checkout(taken.commit)
                yield from findings_of(runner, "step_test_command", runner.run_step())
    finally:
        delete_refs(repo, task_id)


def findings_of(runner: CommandRunner, key: str, run: TestRun) -> Iterator[CheckFinding]:
    """What a run of the command `key`, before any change, tells."""
    try:
        require_judging(run, runner.config, key, sandboxed=runner.sandbox is not None)
    except ConfigError as error:
        yield CheckFinding(name=key, text=error.message, ok=False, remedy=error.hint)
        return
    seconds, top = run.end.duration_ms / 1000, runner.tree.repo_top
    where = "in the sandbox" if runner.sandbox else "without a sandbox"
    how = f"({run.report.runner}, {where})"
    took = f"in {seconds:.1f} s {how}"
    unloaded = missing_modules(run, top)
    fault, remedy = (unloaded.text, unloaded.remedy) if unloaded else _test_run_fault(run, key)
    red = sorted(run.red())
    if fault:
        yield CheckFinding(name=key, text=f"{fault} {how}", ok=False, remedy=remedy)
    elif run.report.runner == "unknown":
        yield CheckFinding(name=key, text=f"exits with 0 {took}; only its exit code can be read")
    else:
        yield CheckFinding(name=key, text=f"{run.report.passed} passed, {len(red)} failed {took}")
    if seconds > SHORT * runner.config.timeout:
        slow = f"takes over half of timeout = {runner.config.timeout:g} s"
        yield CheckFinding(name="time", text=f"{key} {slow}", ok=False, remedy="raise it in [testing]")
    if unloaded:
        return
    exit_code = exit_without_failure(run)
    if exit_code:
        told = f"{key} {exit_code}; a result that ends in the same way is accepted"
        yield CheckFinding(name="exit code", text=told)
    if red:
        meaning = MAY_FAIL.get(runner.config.accept, NO_GOALS)
        named = f"already fail before any change, and {meaning}: {listed(red, SHOWN)}"
        yield CheckFinding(name="failing tests", text=named)
    yield from _missing_modules(run, top)


def _test_run_fault(run: TestRun, key: str) -> tuple[str, str]:
    """Why the run shows nothing, and what to do about it; empty if it shows something."""
    report, code = run.report, run.end.returncode
    if not report.whole:
        return f"{report.passed} passed, {len(run.red())} failed; {report.problem}", f"fix {key} in [testing]"
    last = "".join(f": {line}" for line in telling_lines(run.end.output)[-1:])
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


def _missing_modules(run: TestRun, top: Path) -> Iterator[CheckFinding]:
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
        yield CheckFinding(name="ignored files", text=text, ok=False, remedy=include_remedy(ignored))
    missing = sorted({*map(package_of, found)} - own_names(top) - {"", *map(module_name, ignored)})
    if missing:
        remedy = "install them where the command finds them, or link the environment with [worktree] link"
        yield CheckFinding(
            name="dependencies", text=f"missing: {', '.join(missing)}", ok=False, remedy=remedy
        )
