"""Runs under which the record, the session, the work tree or git's folder is removed, replaced or emptied in mid-run."""

import shutil
import sys
from pathlib import Path

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN
from testing.faults.figures import Effort, Figure
from testing.faults.removals import REMOVALS
from testing.runs.solving import Script, make_project
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

MOMENTS = (META_PLAN.title, PART_PLAN.title, IMPLEMENT.title)
"""The question at which the removal happens, before its answer comes."""


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """Three figures, each over everything that is removed at each moment."""
    moments = MOMENTS if effort == "full" else MOMENTS[-1:]
    ended = {(name, title): _remove(work, name, title) for name in sorted(REMOVALS) for title in moments}
    complete = [case for case, (code, _, _) in ended.items() if code == 0]
    unclear = [
        (name, title)
        for (name, title), (code, err, _) in ended.items()
        if code != 1 or "this is a bug" in err or "  -> " not in err or REMOVALS[name][1] not in err
    ]
    left = [case for case, (_, _, rest) in ended.items() if rest]
    for case in {*complete, *unclear, *left}:
        print(case, ended[case], file=sys.stderr)
    rows = {
        "runs complete without their record, session, work tree or git": complete,
        "ends without a clear word, a remedy and exit code 1": unclear,
        "work trees left": left,
    }
    return tuple(
        Figure(name=name, tried=len(ended), found=len(found), target="0 of all", met=not found)
        for name, found in rows.items()
    )


def _remove(work: Path, name: str, title: str) -> tuple[int, str, list[str]]:
    """Exit code, standard error, and the work trees that are left."""
    folder = work / "run"
    folder.mkdir()
    project = make_project(folder)

    def answer(_: ChatCall, right: str) -> str:
        REMOVALS[name][0](project)
        return right

    with OllamaServer(Script(project.oracle, {title: [answer]})) as server:
        project.configure(server.base_url)
        code, _, err = project.run_here("solve", project.task)
    rest = [str(path) for path in (project.home / "cache").glob("cra/worktrees/*/*")]
    shutil.rmtree(folder)
    return code, err, rest
