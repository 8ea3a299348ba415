"""The commits of a run as dicts, without git."""

import difflib
import hashlib
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.git.command import NamedPrograms
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import ChangedPath
from clean_room_agent.git.repository import Repository
from clean_room_agent.orchestrator.commits import RunCommits, Tree

PLACE = Path("/memory")
REPOSITORY = Repository(
    top=PLACE, git_dir=PLACE / ".git", common_dir=PLACE / ".git", head="0" * 40, named=NamedPrograms()
)

Files = Mapping[str, str]


class MemoryHistory(Struct, kw_only=True):
    """Commits by name: their files, and the parent that they were made on."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def add(self, files: Files) -> str:
        """The name of the commit of these files: the same for the same files."""
        name = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.files[name] = dict(files)
        return name


class MemoryTree(Tree, frozen=True, kw_only=True, dict=True):
    """The files of a commit in memory."""

    history: MemoryHistory

    @property
    def files(self) -> Files:
        return self.history.files[self.commit]

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(self.files)

    @cached_property
    def places(self) -> Places:
        return Places(self.files, only=self.only)

    def conversions(self, paths: tuple[str, ...]) -> Mapping[str, str]:
        return {}

    def mode(self, path: str) -> str | None:
        return "100644" if path in self.files else None

    def data(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None


class MemoryCommits(RunCommits):
    """Commits in memory; `history.refs` are what the run keeps, without the run's own prefix."""

    def __init__(self, history: MemoryHistory, base: str, only: Collection[str] = ()) -> None:
        self._only = frozenset(only)
        self.repo = REPOSITORY
        self.base = self.head = base
        self.history = history

    def tree(self, commit: str = "") -> Tree:
        return MemoryTree(repo=REPOSITORY, commit=commit or self.head, history=self.history, only=self._only)

    def exists(self, commit: str) -> bool:
        return commit in self.history.files

    def changed(self, before: str, after: str) -> tuple[ChangedPath, ...]:
        old, new = self.history.files[before], self.history.files[after]
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        return tuple(
            ChangedPath(path=path, status="A" if path not in old else "D" if path not in new else "M")
            for path in paths
        )

    def diff(self, before: str, after: str) -> str:
        old, new = self.history.files[before], self.history.files[after]
        lines: list[str] = []
        for one in self.changed(before, after):
            lines.append(f"diff --git a/{one.path} b/{one.path}\n")
            lines += difflib.unified_diff(
                old.get(one.path, "").splitlines(keepends=True),
                new.get(one.path, "").splitlines(keepends=True),
                f"a/{one.path}",
                f"b/{one.path}",
            )
        return "".join(lines)

    def readable_diff(self) -> str:
        return self.diff(self.base, self.head)

    def commit(
        self, files: Mapping[str, FileChange | None], message: str, *, keep_as: str = "", parent: str = ""
    ) -> str:
        changed = dict(self.history.files[parent or self.head])
        for path, change in files.items():
            if change is None:
                changed.pop(path, None)
            else:
                changed[path] = change.data.decode()
        made = self.history.add(changed)
        return self.keep(made, keep_as) if keep_as else made

    def keep(self, commit: str, name: str) -> str:
        self.history.refs[name] = commit
        return commit

    def keep_head(self) -> None:
        if self.head != self.base:
            self.history.refs["head"] = self.head

    def remake(self, commit: str, files: Mapping[str, FileChange | None], parent: str) -> str:
        return self.commit(files, "", parent=parent)

    def land(self, branch: str, before: tuple[str, str], commit: str = "") -> str:
        self.history.refs[branch] = commit or self.head
        return branch
