"""`cra apply`: bring a run's result into the working tree."""

from pathlib import Path

import click

from clean_room_agent.beneath import is_file, read_bytes
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.db.raw import events
from clean_room_agent.db.raw.orchestrator_runs import get_orchestrator_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.git.applying import apply_to_tree, take_back
from clean_room_agent.git.history import changed_paths, read_blob
from clean_room_agent.git.repository import Repository, open_repository


@click.command()
@options.run_argument
@options.repo_option
@click.option("--undo", is_flag=True, help="Take the result out of the working tree again.")
@options.json_option
def command(run: str, repo: Path, undo: bool, as_json: bool) -> int:
    """Bring the result of RUN (by default the newest; `@~1`: the one before) into the working tree; refused where a file it touches has changed since.

    With --undo these files are again as they were before, uncommitted work included; refused where one has changed since.
    """
    workspace = wiring.workspace_of(repo)
    options.require_record(workspace)
    with Record.open(workspace.repo, clock=utc_now) as record:
        task_id = record.write(find_task, run)
        row = record.write(get_orchestrator_run, task_id)
        if row is None or not row.result_commit:
            raise UsageError(f"run {run} has no result to apply", hint=f"`cra show {run}` tells how it ended")
        if any(event.kind == "discarded" for event in record.write(events.list_events, task_id)):
            raise UsageError(
                f"run {run} was discarded",
                hint=f"`cra replay {run}` shows whether it comes out the same again",
            )
        repository = open_repository(workspace.repo)
        move = _take_out if undo else bring
        paths = move(repository, record, task_id, base=row.snapshot_commit, commit=row.result_commit)
    if as_json:
        output.answer_json({"task_id": task_id, "taken_back" if undo else "applied": paths})
    elif undo:
        output.answer(
            "\n".join(f"put back {path}" for path in paths) or "nothing to do: it does not stand there"
        )
    else:
        output.answer(
            "\n".join(f"changed {path}" for path in paths) or "nothing to do: it stands there already"
        )
    return 0


def bring(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    """The working tree holds what the run changed between `base` and `commit`, and the record knows; the paths.

    None where it stands there already.

    Raises:
        RepositoryError: a file that the run changed is not as the snapshot saw it; nothing was changed.
    """
    paths = () if _stands_already(repo, base, commit) else apply_to_tree(repo, base, commit)
    _note(record, task_id, "applied", paths)
    return paths


def _take_out(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    paths = () if _stands_already(repo, commit, base) else take_back(repo, base, commit)
    _note(record, task_id, "taken_back", paths)
    return paths


def _note(record: Record, task_id: str, kind: str, paths: tuple[str, ...]) -> None:
    event = events.EventRow(task_id=task_id, kind=kind, detail="\n".join(paths), timestamp=record.now())
    record.write(events.append_event, event)


def _stands_already(repository: Repository, base: str, commit: str) -> bool:
    """Whether every file that the run changed is as the run left it, line ends aside."""
    for changed in changed_paths(repository, base, commit):
        stored, there = read_blob(repository, commit, changed.path), is_file(repository.top, changed.path)
        present = read_bytes(repository.top, changed.path) if there else None
        if _with_plain_ends(stored) != _with_plain_ends(present):
            return False
    return True


def _with_plain_ends(data: bytes | None) -> bytes | None:
    return None if data is None else data.replace(b"\r\n", b"\n")
