"""What the environment did, as an error with a remedy, if an exception that no other place expected says so.

Whatever is left after that is a bug.
"""

import contextlib
import errno
import os
from pathlib import Path

from clean_room_agent.errors import SYSTEM_FAULTS, CraError, RecordError, RepositoryError, UsageError


def explain(error: Exception, repo: Path | None) -> CraError | None:
    """The error as the user should see it; None if it is a bug. `repo`: the repository, or a folder in it."""
    if isinstance(error, FileNotFoundError) and (gone := _missing_place()):
        return gone
    if isinstance(error, OSError) and error.errno is not None and error.errno in SYSTEM_FAULTS:
        wrong, remedy = SYSTEM_FAULTS[error.errno]
        what = f"{wrong}: {error.strerror}"
        named = [
            os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)
        ]
        return CraError(f"{what}: {' -> '.join(named)}" if named else what, hint=remedy)
    if isinstance(error, OverflowError) and "SQLite INTEGER" in str(error):
        return UsageError("a number has more than 64 bits", hint="give a smaller one")
    if isinstance(error, MemoryError):
        wrong, remedy = SYSTEM_FAULTS[errno.ENOMEM]
        return CraError(wrong, hint=remedy)
    return None if repo is None else _damage(repo)


def _missing_place() -> CraError | None:
    """An error if the current folder, or every folder for temporary files, is gone."""
    import tempfile

    try:
        Path.cwd()
    except FileNotFoundError:
        return RepositoryError("the current folder no longer exists", hint="cd to one that does")
    try:
        tempfile.gettempdir()
    except FileNotFoundError as exc:
        return UsageError(
            f"there is no folder for temporary files: {exc.strerror}",
            hint="let TMPDIR name one that can be written",
        )
    return None


def _damage(repo: Path) -> CraError | None:
    """An error that names the first of the repository's databases that is damaged."""
    from clean_room_agent.app import wiring
    from clean_room_agent.app.record_check import find_damage

    with contextlib.suppress(CraError, OSError):
        damage = find_damage(wiring.workspace_of(repo))
        if damage is not None:
            return RecordError(damage.text, hint=damage.remedy)
    return None
