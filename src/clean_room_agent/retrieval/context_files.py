"""Reads the files that a context shows, and checks them against the hashes in the index."""

import hashlib
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.worktree import REMOVED
from clean_room_agent.safe_open import NOT_A_FILE, read_bytes
from clean_room_agent.secret_files import is_secret_name
from clean_room_agent.text_file import NotTextError, decode

REFRESH = "the index no longer describes the files: run `cra index`, then start again"


class FileText(Struct, frozen=True, kw_only=True):
    """A file as it is on disk."""

    path: str
    lines: tuple[str, ...]
    """Without line ends; a final newline adds no empty line."""
    content_hash: str
    """Hex SHA-256 of the whole file's bytes."""

    def span(self, start_line: int, end_line: int) -> str:
        """Lines `start_line..end_line` (1-based, inclusive), each with a line break."""
        return "".join(f"{line}\n" for line in self.lines[start_line - 1 : end_line])


class NotEditable(Struct, frozen=True, kw_only=True):
    """A file that cannot be shown or edited as text, and why."""

    path: str
    reason: str


class ContextFiles:
    """The files of `root`, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._read: dict[str, FileText | NotEditable] = {}

    def read(self, path: str, indexed_hash: str) -> FileText | NotEditable:
        """The file at `path` (relative, forward slashes), which the index knows with `indexed_hash`.

        Raises:
            GitError: the whole work tree is gone.
            RepositoryError: the file is gone or differs from what was indexed, so that its symbols' lines would be wrong.
        """
        known = self._read.get(path)
        if known is None:
            known = self._read[path] = self._load(path, indexed_hash)
        return known

    def _load(self, path: str, indexed_hash: str) -> FileText | NotEditable:
        if is_secret_name(path):
            return NotEditable(path=path, reason="not shown: its name says that it holds secrets")
        try:
            data = read_bytes(self._root, path)
        except FileNotFoundError as exc:
            if not self._root.is_dir():
                raise GitError(
                    f"the worktree is gone: there is no folder {self._root}", hint=REMOVED
                ) from exc
            raise RepositoryError(f"{path} was indexed but no longer exists", hint=REFRESH) from exc
        except OSError as exc:
            if exc.errno in NOT_A_FILE:
                return NotEditable(
                    path=path,
                    reason="it is not a file of the repository: it is a link, or a link leads to it",
                )
            raise RepositoryError(f"cannot read {path}: {exc}", hint=REFRESH) from exc
        digest = hashlib.sha256(data).hexdigest()
        if digest != indexed_hash:
            raise RepositoryError(f"{path} changed after it was indexed", hint=REFRESH)
        try:
            text = decode(data).text
        except NotTextError as exc:
            return NotEditable(path=path, reason=f"not editable: {exc}")
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        return FileText(path=path, lines=tuple(lines), content_hash=digest)
