"""A run's result brought into the working tree, and taken out of it again."""

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.db.raw import events
from clean_room_agent.db.raw.record import Record
from clean_room_agent.git.apply_result import apply_to_tree, take_back
from clean_room_agent.git.history import changed_paths, read_blob
from clean_room_agent.git.repository import Repository
from clean_room_agent.safe_open import is_file, read_bytes


def bring(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    """The working tree holds what the run changed between `base` and `commit`, and the record knows; the paths.

    None where it stands there already.

    Raises:
        RepositoryError: a file that the run changed is not as the snapshot saw it; nothing was changed.
    """
    paths = () if _stands_already(repo, base, commit) else apply_to_tree(repo, base, commit)
    _note(record, task_id, EventKind.APPLIED, paths)
    return paths


def take_out(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    """The files that the run changed are as they were before it was applied, and the record knows; their paths.

    Raises:
        RepositoryError: one of them has changed since; nothing was changed.
    """
    paths = () if _stands_already(repo, commit, base) else take_back(repo, base, commit)
    _note(record, task_id, EventKind.TAKEN_BACK, paths)
    return paths


def _note(record: Record, task_id: str, kind: EventKind, paths: tuple[str, ...]) -> None:
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
