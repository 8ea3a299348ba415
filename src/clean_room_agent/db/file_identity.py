"""Whether an open database still is the one that its path names: SQLite goes on writing into a file that was removed."""

import os
from pathlib import Path

from clean_room_agent.errors import RecordError

HINT = "somebody removed or replaced it while it was in use; what was done since is not recorded: start again"


class OpenFiles:
    """The file of an open database and its journal, as they were when this was made, or as they were first seen."""

    def __init__(self, path: Path) -> None:
        self._paths = (path, path.with_name(f"{path.name}-wal"))
        self._known: dict[Path, os.stat_result] = {}
        for each in self._paths:
            self._look_at(each)

    def require(self) -> None:
        """The files are where they were.

        Raises:
            RecordError: one is gone, has become shorter, or another stands in its place.
        """
        for path in self._paths:
            known = self._known.get(path)
            now = self._look_at(path)
            if known is None:
                continue
            if now is None or not os.path.samestat(known, now):
                raise RecordError(f"{path} is not there any more", hint=HINT)
            if path == self._paths[0] and now.st_size < known.st_size:
                raise RecordError(f"{path} has lost its content", hint=HINT)

    def _look_at(self, path: Path) -> os.stat_result | None:
        try:
            found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - before each commit; a Path's own takes twice as long
        except OSError:
            return None
        self._known.setdefault(path, found)
        return found
