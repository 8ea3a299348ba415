"""What the environment did, as an error with a remedy, if an exception that no other place expected says so.

Whatever is left after that is a bug.
"""

import contextlib
from pathlib import Path

from clean_room_agent.errors import CraError, RecordError, RepositoryError, UsageError


def explain(error: Exception, repo: Path | None) -> CraError | None:
    """The error as the user should see it; None if it is a bug. `repo`: the repository, or a folder in it."""
    if isinstance(error, FileNotFoundError) and (gone := _missing_place()):
        return gone
    if isinstance(error, OverflowError) and "SQLite INTEGER" in str(error):
        return UsageError("a number has more than 64 bits", hint="give a smaller one")
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
