"""`cra demo`: the tour, on a small project with a real bug."""

import contextlib
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.cli import output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.discovery import DEFAULT_URL, PROVIDERS
from clean_room_agent.cli.init import write_config
from clean_room_agent.cli.model_server import RECORDED_MODELS
from clean_room_agent.cli.plan import run_plan
from clean_room_agent.cli.sample import ASSETS, load_sample, make_repository
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.cli.solve import SolveRequest, run_solve
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.raw.record import Record
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.config import Provider
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.llm.transports.replay import ReplayTransport, load_calls
from clean_room_agent.removal import remove_tree
from clean_room_agent.report.summary import render
from clean_room_agent.temporary import is_free, working_in
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace

RECORDING = ASSETS / "recording.jsonl"
PLAN_RECORDING = ASSETS / "plan_recording.jsonl"
WINDOW = 16_384
SAID = (
    "The model's side is played from a recording of a stand-in that knows the fix; "
    "everything else is the real thing."
)

LATER = "For other tasks the recording has no answers: `cra init --force` there takes a model of yours. The next demo removes this folder."


@click.command()
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to make the project; a new temporary folder by default.",
)
@click.option("--keep", is_flag=True, help="Keep what earlier demos left in the temporary folder.")
@click.option("--live", is_flag=True, help="Ask a real model server instead of playing the recording.")
@click.option("--base-url", default=DEFAULT_URL, show_default=True, help="The model server, with --live.")
@click.option(
    "--provider", type=click.Choice(PROVIDERS), default=PROVIDERS[0], help="What it speaks, with --live."
)
@click.option("--coding", help="The coding model, with --live.")
@click.option("--reasoning", help="The reasoning model, with --live.")
def command(
    folder: Path | None,
    keep: bool,
    live: bool,
    base_url: str,
    provider: Provider,
    coding: str | None,
    reasoning: str | None,
) -> int:
    """Make a small project with a real bug, and solve it: init, index, plan, solve.

    Without --dir, the folders of earlier demos in the temporary folder are removed first, but for those in which a process works.
    """
    if live and not (coding and reasoning):
        raise UsageError("--live needs models", hint="name them: --coding TAG --reasoning TAG")
    models = {"coding": coding, "reasoning": reasoning} if live else RECORDED_MODELS
    if folder is None and not keep:
        for gone in remove_earlier():
            output.aside(f"removed {gone}, of an earlier demo (--keep leaves them)")
    home = Path(tempfile.mkdtemp(prefix="cra-demo-")) if folder is None else folder
    with working_in(home) if folder is None else contextlib.nullcontext():
        return _show(home, {"provider": provider, "base_url": base_url, **models}, live=live)


def _show(home: Path, models: dict[str, Any], *, live: bool) -> int:
    sample = load_sample()
    if (home / sample.name).exists():
        raise UsageError(f"{home / sample.name} is there already", hint="name another folder with --dir")
    intro = (
        SAID if not live else f"Models: {models['coding']} and {models['reasoning']} at {models['base_url']}."
    )
    output.answer(f"cra demo. {intro}\n")
    output.answer(f"1. A small project with a history and a bug, in {home / sample.name}")
    workspace = Workspace(repo=make_repository(sample, home).resolve())
    quoted = "\n".join(f"   | {line}" for line in sample.task.splitlines())
    output.answer(f"   The task:\n{quoted}\n")
    output.answer("2. cra init: the configuration")
    write_config(workspace, config_values(models))
    settings = load_settings(workspace.config, Overrides(), user_wide=False)
    output.answer(f"   {workspace.config}\n")
    code = tour(workspace, settings, sample.task, live=live)
    output.answer(f"\nThe project is yours to look around in: cd {shlex.quote(str(workspace.repo))}")
    output.answer(
        f"{SAID.replace('is played', 'was played')}\n{LATER}" if not live else "That was a live run."
    )
    return code


def remove_earlier() -> tuple[Path, ...]:
    """The folders of this user's earlier demos are gone, but for those in which a process works.

    Which went. What cannot be removed stays, without a word.
    """
    gone = []
    for home in sorted(Path(tempfile.gettempdir()).glob("cra-demo-????????")):
        with contextlib.suppress(OSError):
            about = home.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not _is_worked_in(home):
                remove_tree(home)
                gone.append(home)
    return tuple(gone)


def _is_worked_in(home: Path) -> bool:
    """Whether a demo goes on in the folder, or a process has it, or what is below, for its working folder (where /proc tells)."""
    if not is_free(home):
        return True
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            where = (process / "cwd").readlink()
            if home.resolve() in {where, *where.parents}:
                return True
    return False


def tour(workspace: Workspace, settings: Settings, task: str, *, live: bool) -> int:
    """Index, plan and solve, with a line before each; the exit code of the solve."""
    output.answer("3. cra index: what is known of the project")
    with Record.open(workspace.repo, clock=utc_now) as record:
        summary = wiring.refresh_index(workspace, settings, record)
    output.answer(f"   {summary.files_scanned} files, {summary.symbols} symbols, {summary.commits} commits\n")
    output.answer("4. cra plan: a plan that could be reviewed and edited")
    with watching(None, verbose=0) as observer:
        _, plan, reason = run_plan(
            workspace, settings, task, observer, transport_of(PLAN_RECORDING, live=live)
        )
    if plan is None:
        output.answer(f"   no plan: {reason}")
    else:
        path = workspace.folder / "plan.json"
        write_whole(path, plan.model_dump_json(indent=2) + "\n")
        for file in plan.affected_files:
            output.answer(
                f"   {file.role} {file.path}: {'; '.join(change.description for change in file.changes)}"
            )
        output.answer(f"   {path}\n")
    output.answer("5. cra solve: the whole run")
    with watching(None, verbose=0) as observer:
        code, done = run_solve(
            workspace, settings, SolveRequest(task=task), observer, transport_of(RECORDING, live=live)
        )
    output.console().print(render(done), highlight=False, soft_wrap=True)
    run = short_id(done.result.task_id)
    output.answer(f"\nAsk it why:      cra show {run} --why tally/money.py")
    output.answer(f"See all of it:   cra report {run} --open")
    output.answer(f"Run it again:    cra replay {run}      (from its record: the same bytes)")
    return code


def config_values(models: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The demo's configuration, by table."""
    return {
        "models": models,
        "budget": {"context_window": WINDOW, "reserved_tokens": WINDOW // 4},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2},
        "testing": {"test_command": f"{shlex.quote(sys.executable)} -m unittest -v"},
    }


def transport_of(recording: Path, *, live: bool) -> Callable[[Settings], Transport]:
    """The model's side: a server, or the recording."""
    if live:
        return wiring.live_transport
    calls = load_calls(recording.read_text(encoding="utf-8"), source=str(recording))
    return lambda _settings: ReplayTransport(calls)
