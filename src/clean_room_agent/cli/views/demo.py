"""The steps of `cra demo`: index, plan and solve, each introduced by a line."""

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.demo import (
    PLAN_RECORDING,
    RECORDING,
    transport_of,
)
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.plan_run import run_plan
from clean_room_agent.app.settings import Settings
from clean_room_agent.app.solve import SolveRequest, run_solve
from clean_room_agent.artifacts.names import counted, short_id
from clean_room_agent.cli import output
from clean_room_agent.cli.safe_console import answers_console
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.raw.record import Record
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.report.summary import render
from clean_room_agent.workspace import Workspace


def tour(workspace: Workspace, settings: Settings, task: str, *, live: bool) -> int:
    """Index, plan and solve, with a line before each; returns the exit code of the solve."""
    output.answer("3. cra index: what is known of the project")
    with Record.open(workspace.repo, clock=utc_now) as record:
        summary = refresh_index(workspace, settings.index, record)
    output.answer(
        f"   {counted(summary.files_scanned, 'file')}, {counted(summary.symbols, 'symbol')}, {counted(summary.commits, 'commit')}\n"
    )
    output.answer("4. cra plan: a plan that could be reviewed and edited")
    with watching(None, verbose=0) as observer:
        _, plan, reason = run_plan(
            workspace, settings, task, observer, transport_of(PLAN_RECORDING, live=live)
        )
    if plan is None:
        output.answer(f"   no plan: {reason}")
    else:
        path = workspace.folder / "plan.json"
        atomic_write(path, plan.model_dump_json(indent=2) + "\n")
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
    answers_console().print(render(done, output.elsewhere(workspace)), highlight=False, soft_wrap=True)
    run = short_id(done.result.task_id)
    there = output.repo_flag(workspace)
    output.answer(f"\nAsk it why:      cra show {run}{there} --why tally/money.py")
    output.answer(f"See all of it:   cra report {run}{there} --open")
    output.answer(f"Run it again:    cra replay {run}{there}      (from its record: the same bytes)")
    return code
