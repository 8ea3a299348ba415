"""The commits of a run: its snapshot, the accepted attempts since, and attempts to be tested."""

from collections.abc import Collection, Mapping
from functools import cached_property

from msgspec import Struct

from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.file_contents import NotTextError, TextFile, decode
from clean_room_agent.git.commits import FileChange, commit_files, conversions_at
from clean_room_agent.git.history import (
    ChangedPath,
    changed_paths,
    date_and_message,
    diff,
    has_commit,
    list_tree,
    read_blob,
    readable_diff,
)
from clean_room_agent.git.refs import keep_commit, land, list_refs, update_ref
from clean_room_agent.git.repository import CONVERTED, Repository
from clean_room_agent.orchestrator.spending import Timed, untimed

REGULAR_MODES = frozenset({"100644", "100755"})
OTHERS = {"120000": "a link", "160000": "a submodule"}


class Tree(Struct, frozen=True, kw_only=True, dict=True):
    """The files of `commit`, read from git's objects and never from the folder in which tests ran."""

    repo: Repository
    commit: str
    converted: frozenset[str] = frozenset()
    """Files that git converts, to another encoding or by a filter driver."""
    only: frozenset[str] = frozenset()
    """The files that the user allows to be changed, besides tests; empty: all."""

    @cached_property
    def paths(self) -> frozenset[str]:
        """The regular files of the tree."""
        entries = list_tree(self.repo, self.commit)
        return frozenset(path for path, entry in entries.items() if entry.mode in REGULAR_MODES)

    @cached_property
    def places(self) -> Places:
        """The files that edits may change, and what else stands in the tree."""
        entries = list_tree(self.repo, self.commit)
        others = {path: OTHERS[entry.mode] for path, entry in entries.items() if entry.mode in OTHERS}
        return Places(self.paths, others | dict.fromkeys(self.converted, CONVERTED), only=self.only)

    def mode(self, path: str) -> str | None:
        """The mode of the file as git writes it; None if the tree has no such file or link."""
        entry = list_tree(self.repo, self.commit).get(path)
        return entry.mode if entry is not None and entry.kind == "blob" else None

    def data(self, path: str) -> bytes | None:
        """The bytes as they are stored; None if the tree has no such file or link."""
        return read_blob(self.repo, self.commit, path)

    def change(self, path: str) -> FileChange | None:
        """The change that gives another tree this one's file; None if that means deleting it."""
        data, mode = self.data(path), self.mode(path)
        return None if data is None or mode is None else FileChange(data=data, mode=mode)

    def read(self, path: str) -> TextFile:
        """The file's text and its encoding.

        Raises:
            NotTextError: it is not a regular file, an LFS pointer, binary, or does not survive a round trip.
        """
        if self.mode(path) not in REGULAR_MODES:
            raise NotTextError("it is a link or a submodule")
        data = self.data(path)
        if data is None:
            raise NotTextError("it does not exist")
        return decode(data)

    def conversions(self, paths: tuple[str, ...]) -> Mapping[str, str]:
        """Why those of `paths` are not to be edited that git converts."""
        return conversions_at(self.repo, self.commit, paths)

    def texts(self, paths: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """(texts of those of `paths` that exist and can be edited, reason by path for those that cannot, or that could
        not be created).
        """
        texts: dict[str, str] = {}
        refused = dict(self.conversions(paths))
        for path in paths:
            if path not in self.paths or path in refused:
                continue
            try:
                texts[path] = self.read(path).text
            except NotTextError as error:
                refused[path] = str(error)
        return texts, refused

    def encode(self, texts: Mapping[str, str | None]) -> dict[str, FileChange | None] | EditReport:
        """The bytes and modes for `texts` (None deletes), or the report of the first text that cannot be encoded."""
        changes: dict[str, FileChange | None] = {}
        for path, text in sorted(texts.items()):
            if text is None:
                changes[path] = None
                continue
            try:
                changes[path] = self._encode_file(path, text)
            except NotTextError as error:
                return EditReport(index=0, file_path=path, code=EditCode.PROTECTED, detail=f"{path}: {error}")
        return changes

    def _encode_file(self, path: str, text: str) -> FileChange:
        if path not in self.paths:
            return FileChange(data=text.encode("utf-8"), mode="100644")
        return FileChange(data=self.read(path).encode(text), mode=self.mode(path) or "100644")


class RunCommits:
    """The commits of one run, and the only place where it writes to git.

    A change that must not be left half done is completed before Ctrl-C ends the run.
    """

    def __init__(
        self,
        repo: Repository,
        task_id: str,
        base: str,
        interrupts: Interrupts,
        timed: Timed = untimed,
        *,
        only: Collection[str] = (),
    ) -> None:
        """`base` is the snapshot's commit, `only` are the files that the user allows to be changed, besides tests (empty: all)."""
        self._only = frozenset(only)
        self.repo = repo
        self.base = base
        self.head = base
        """The newest accepted commit."""
        self._refs = f"refs/cra/{task_id}"
        self._interrupts = interrupts
        self._timed = timed
        self._kept_head: str | None = None
        """What the head's ref names, "" where it does not exist; None before that is looked up. A resumed run is behind it
        until it goes on.
        """

    def tree(self, commit: str = "") -> Tree:
        """The files of a commit; by default of the newest accepted one."""
        return Tree(
            repo=self.repo, commit=commit or self.head, converted=self._converted_paths, only=self._only
        )

    @cached_property
    def _converted_paths(self) -> frozenset[str]:
        """As the run's snapshot has them: edits change neither attributes nor such files."""
        return frozenset(conversions_at(self.repo, self.base, list_tree(self.repo, self.base)))

    def exists(self, commit: str) -> bool:
        """Whether the commit can be read; it may be lost after a power cut."""
        return has_commit(self.repo, commit)

    def changed(self, before: str, after: str) -> tuple[ChangedPath, ...]:
        """The paths that differ between two commits, sorted."""
        return changed_paths(self.repo, before, after)

    def diff(self, before: str, after: str) -> str:
        """The unified diff between two commits."""
        return diff(self.repo, before, after)

    def readable_diff(self) -> str:
        """The run's changes so far, for a prompt; "" if there are none."""
        return readable_diff(self.repo, self.base, self.head) if self.head != self.base else ""

    def commit(
        self, files: Mapping[str, FileChange | None], message: str, *, keep_as: str = "", parent: str = ""
    ) -> str:
        """Create a commit in which `files` are as given (None deletes), on top of the head or of `parent`. `keep_as`
        names a ref for it, below the run's, so that git does not collect it.
        """
        with self._interrupts.shield(), self._timed(TimeKind.GIT, "commit"):
            made = commit_files(self.repo, parent or self.head, files, message)
            return self.keep(made, keep_as) if keep_as else made

    def keep(self, commit: str, name: str) -> str:
        """Keep the commit under the run's ref `name`; returns the commit that it names, which may be an equal earlier
        one.
        """
        with self._interrupts.shield():
            return keep_commit(self.repo, f"{self._refs}/{name}", commit)

    def keep_head(self) -> None:
        """Set the ref of the head to the newest accepted commit."""
        ref = f"{self._refs}/head"
        if self._kept_head is None:
            self._kept_head = list_refs(self.repo, ref).get(ref, "")
        if self.head not in {self.base, self._kept_head}:
            update_ref(self.repo, ref, self.head, expected=self._kept_head)
            self._kept_head = self.head

    def remake(self, commit: str, files: Mapping[str, FileChange | None], parent: str) -> str:
        """Create a commit like `commit` (message, date) on another parent, in which `files` are as given; made again, it is the
        same.
        """
        with self._interrupts.shield(), self._timed(TimeKind.GIT, "commit"):
            date, message = date_and_message(self.repo, commit)
            return commit_files(self.repo, parent, files, message, date=date)

    def land(self, branch: str, before: tuple[str, str], commit: str = "") -> str:
        """Put a branch at the head, or at `commit`, and return its name: `branch`, or that with a number appended; see
        `git.branches.land`.
        """
        with self._timed(TimeKind.GIT, "branch"):
            return land(self.repo, branch, commit or self.head, before=before)
