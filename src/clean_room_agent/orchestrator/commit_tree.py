"""The repository's files at one commit, read from git's objects and never from the folder in which tests ran."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import file_mode, list_tree, read_blob
from clean_room_agent.git.repository import Repository
from clean_room_agent.text_file import NotTextError, TextFile, decode

REGULAR_MODES = frozenset({"100644", "100755"})


@dataclass(frozen=True, kw_only=True)
class Tree:
    """What stands in `commit`."""

    repo: Repository
    commit: str

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every path of the tree."""
        return frozenset(list_tree(self.repo, self.commit))

    def read(self, path: str) -> TextFile:
        """The file's text and form.

        Raises:
            NotTextError: it is no regular file, a pointer of LFS, binary, or does not survive a round trip.
        """
        mode = file_mode(self.repo, self.commit, path)
        if mode not in REGULAR_MODES:
            raise NotTextError("it is a link or a submodule")
        data = read_blob(self.repo, self.commit, path)
        if data is None:
            raise NotTextError("it does not exist")
        return decode(data)

    def texts(self, paths: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """(texts of those of `paths` that exist and can be edited, reason by path for those that cannot)."""
        texts: dict[str, str] = {}
        refused: dict[str, str] = {}
        for path in paths:
            if path not in self.paths:
                continue
            try:
                texts[path] = self.read(path).text
            except NotTextError as error:
                refused[path] = str(error)
        return texts, refused

    def encode(self, texts: Mapping[str, str | None]) -> dict[str, FileChange | None] | EditReport:
        """The bytes and modes that make `texts` true (None deletes), or the report of the first that has no bytes."""
        changes: dict[str, FileChange | None] = {}
        for path, text in sorted(texts.items()):
            if text is None:
                changes[path] = None
                continue
            try:
                changes[path] = self._change(path, text)
            except NotTextError as error:
                return EditReport(index=0, file_path=path, code=EditCode.PROTECTED, detail=f"{path}: {error}")
        return changes

    def _change(self, path: str, text: str) -> FileChange:
        if path not in self.paths:
            return FileChange(data=text.encode("utf-8"), mode="100644")
        mode = file_mode(self.repo, self.commit, path) or "100644"
        return FileChange(data=self.read(path).encode(text), mode=mode)
