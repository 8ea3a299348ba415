"""Worktrees outside of the repository: one for a task, reset to a commit between attempts; and, for mining a history, one that
checks out commit after commit of a repository that it never writes to.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field, structs

from clean_room_agent import safe_open
from clean_room_agent.errors import GitError
from clean_room_agent.folders import FolderState, flock, folder_states, remove_all_but, remove_tree
from clean_room_agent.git.command import HEX, NamedPrograms, git, named_programs, names, one_line, require_hex
from clean_room_agent.git.generated import split_generated
from clean_room_agent.git.history import list_tree
from clean_room_agent.git.repository import Repository

ADD = ("worktree", "add", "-q", "--detach", "--no-checkout", "--lock")
READ_TREE = ("-c", "core.trustctime=true", "-c", "core.checkStat=default", "read-tree", "--reset", "-u")
LOCK_WORD = "cra "
"""Comes before the task's id in the reason for which git keeps the worktree locked."""
MOST_WORKTREES = 16
"""Of one run; `[testing] parallel` allows no more."""
CHECK = "check the folder and the space that is left there"
REMOVED = "somebody removed it while the run used it; start again, and leave the folder alone until the run has ended"


class HeldIndex(Struct, eq=False):
    """A worktree's index as git left it after the last reset, its time in nanoseconds, and the folders that existed."""

    data: bytes = b""
    written: int = 0
    folders: dict[str, FolderState] = field(default_factory=dict)


class Worktree(Struct, frozen=True, kw_only=True):
    """A linked worktree. `git_dir` was read before anything ran in it; `submodules` are folders that are kept empty.

    Without a sandbox, programs that run in it can also write its index, and hide files from a reset by flags, so
    `index` is what counts.
    """

    path: Path
    git_dir: Path
    repo: Repository
    submodules: tuple[str, ...]
    index: HeldIndex = field(default_factory=HeldIndex)

    @property
    def pins(self) -> dict[str, str]:
        """The variables that bind git to this worktree and to the repository's own configuration."""
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_COMMON_DIR": str(self.repo.common_dir),
            "GIT_WORK_TREE": str(self.path),
        }


def add_worktree(repo: Repository, commit: str, where: Path, task_id: str) -> Worktree:
    """Create a locked worktree of `commit` at `where`, which must not exist or be empty; no branch is checked out.

    Raises:
        GitError: it cannot be created, with git's own message; nothing is left of it.
    """
    require_hex(commit)
    try:
        with _one_at_a_time(repo):
            repo.git(*ADD, *("--reason", f"{LOCK_WORD}{task_id}"), "--", str(where), commit)
        # Read now: what runs in there later may replace it.
        git_dir = Path(os.fsdecode((where / ".git").read_bytes()).removeprefix("gitdir: ").rstrip("\n"))
        worktree = Worktree(path=where, git_dir=git_dir, repo=repo, submodules=())
        try:
            # Only now: a filter that the configuration names for this place alone is known.
            worktree = _known_in_place(worktree, commit)
            _read_tree(worktree, commit)
            worktree.index.folders = folder_states(where, frozenset(list_tree(repo, commit)))
        except BaseException:
            remove_worktree(worktree)
            raise
    except GitError as exc:
        raise GitError(f"cannot create a worktree at {where}: {exc.message}", hint=exc.hint or CHECK) from exc
    return worktree


def _known_in_place(worktree: Worktree, commit: str) -> Worktree:
    """The new worktree with its submodules, and the programs that git's configuration names when it is read there."""
    repo = worktree.repo
    named = named_programs(worktree.path, pins=worktree.pins) | repo.named
    return structs.replace(
        worktree,
        repo=structs.replace(repo, named=named),
        submodules=tuple(path for path, entry in list_tree(repo, commit).items() if entry.kind == "commit"),
    )


def stand_on(worktree: Worktree, commit: str) -> None:
    """Set HEAD of the worktree to `commit`; its files stay as they are, so what differs counts as uncommitted."""
    worktree.repo.git("update-ref", "--no-deref", "--", "HEAD", require_hex(commit), pins=worktree.pins)


def reset_worktree(worktree: Worktree, commit: str, *, keep: tuple[str, ...] = ()) -> None:
    """Reset the worktree to `commit` and nothing else, not even ignored files, except for the relative paths in `keep`.

    What ran in it may have replaced its `.git` file, its index or its permissions; that is undone first.

    Raises:
        GitError: it cannot be reset, with git's own message, or it is gone.
    """
    require_hex(commit)
    _require_folders(worktree)
    _restore_link(worktree)
    _restore_index(worktree)
    try:
        _restore_files(worktree, commit, keep)
    except GitError:
        # A broken index is ours to fix, once.
        _require_folders(worktree)
        (worktree.git_dir / "index").unlink(missing_ok=True)
        _restore_files(worktree, commit, keep)
    except OSError as exc:
        raise GitError(f"the worktree at {worktree.path} cannot be reset: {exc}", hint=CHECK) from exc


def _require_folders(worktree: Worktree) -> None:
    for folder in (worktree.repo.common_dir, worktree.git_dir, worktree.path):
        if not folder.is_dir():
            raise GitError(f"the worktree is gone: there is no folder {folder}", hint=REMOVED)


def remove_worktree(worktree: Worktree) -> None:
    """Remove the worktree and git's metadata about it, even if they are incomplete.

    Raises:
        GitError: something in it cannot be removed.
    """
    there = worktree.repo.common_dir.is_dir()
    with _one_at_a_time(worktree.repo) if there else contextlib.nullcontext():
        try:
            for folder in (worktree.path, worktree.git_dir):
                remove_tree(folder)
        except OSError as exc:
            raise GitError(
                f"the worktree at {worktree.path} cannot be removed: {exc}",
                hint="remove the folder yourself, then say: git worktree prune",
            ) from exc
        with contextlib.suppress(OSError):
            worktree.git_dir.parent.rmdir()


def remove_leftovers(repo: Repository, task_id: str, where: Path) -> bool:
    """Remove a worktree of the task at `where`, complete or not, and git's metadata about it; whether there was
    anything.

    The caller has made sure that no process is working on the task. What belongs to others according to git's metadata
    is not touched.
    """
    notes = tuple(folder for folder in _worktree_admin_folders(repo) if _is_about(folder, where))
    if not all(_is_of(folder, task_id) for folder in notes):
        return False
    was_there = bool(notes) or where.exists()
    for folder in notes or ((where / ".git-notes",) if where.exists() else ()):
        remove_worktree(Worktree(path=where, git_dir=folder, repo=repo, submodules=()))
    return was_there


def worktree_places(first: Path) -> tuple[Path, ...]:
    """The places where worktrees of a run may be, that of the run itself first."""
    return (first, *(first.with_name(f"{first.name}-{number}") for number in range(2, MOST_WORKTREES + 1)))


def reports_beside(place: Path) -> Path:
    """The folder for the results of tests that run in the worktree at `place`."""
    return place.with_name(f"{place.name}-reports")


def tasks_of_worktrees(repo: Repository, folder: Path) -> tuple[str, ...]:
    """The tasks with worktrees in `folder`, according to git."""
    found = set()
    for notes in _worktree_admin_folders(repo):
        reason, place = _lock_reason(notes) or "", _place_of(notes)
        if reason.startswith(LOCK_WORD) and place is not None and place.parent.resolve() == folder.resolve():
            found.add(reason.removeprefix(LOCK_WORD))
    return tuple(sorted(found))


def _worktree_admin_folders(repo: Repository) -> tuple[Path, ...]:
    top = repo.common_dir / "worktrees"
    return tuple(sorted(path for path in top.iterdir() if path.is_dir())) if top.is_dir() else ()


def _place_of(notes: Path) -> Path | None:
    """The worktree that git's metadata is about; None if git was killed before it wrote that."""
    try:
        return Path(os.fsdecode((notes / "gitdir").read_bytes()).rstrip("\n")).parent
    except OSError:
        return None


def _lock_reason(notes: Path) -> str | None:
    try:
        return (notes / "locked").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _is_about(notes: Path, where: Path) -> bool:
    place = _place_of(notes)  # if that is unknown, the folder has the same name
    return notes.name == where.name if place is None else place.resolve() == where.resolve()


def _is_of(notes: Path, task_id: str) -> bool:
    reason = _lock_reason(notes)
    return not (notes / "gitdir").exists() if reason is None else reason == f"{LOCK_WORD}{task_id}"


@contextlib.contextmanager
def _one_at_a_time(repo: Repository) -> Iterator[None]:
    """Keep other runs from adding or removing worktrees: git fails on one that is incomplete."""
    folder = os.open(repo.common_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flock(folder, fcntl.LOCK_EX, repo.common_dir)
        yield
    finally:
        os.close(folder)


def _restore_link(worktree: Worktree) -> None:
    link = worktree.path / ".git"
    content = b"gitdir: " + os.fsencode(worktree.git_dir) + b"\n"
    if link.is_file() and not link.is_symlink() and link.read_bytes() == content:
        return
    remove_tree(link)
    link.write_bytes(content)


def _restore_index(worktree: Worktree) -> None:
    remove_tree(worktree.git_dir / "index.lock")
    file, held = worktree.git_dir / "index", worktree.index
    if not held.data:
        return
    try:
        if file.stat().st_mtime_ns == held.written and file.read_bytes() == held.data:
            return
    except OSError:
        pass
    remove_tree(file)
    file.write_bytes(held.data)
    # With a younger time than when git wrote it, git would trust entries that are racily clean.
    os.utime(file, ns=(held.written, held.written))


def _restore_files(worktree: Worktree, commit: str, keep: tuple[str, ...]) -> None:
    # First of all, what git does not know goes: an attributes file that a test left would steer how files are checked
    # out. `git clean` would leave folders called `.git`, and take long over deep ones. Nor does git know of a folder's
    # mode and attributes: one that changed since the last reset is deleted and created again.
    files = frozenset(list_tree(worktree.repo, commit))
    kept = frozenset(path.rstrip("/") for path in keep)
    hollow = frozenset(worktree.submodules) - kept
    remove_all_but(
        worktree.path, files - hollow, folders=hollow, kept=kept | {".git"}, known=worktree.index.folders
    )
    _read_tree(worktree, commit)
    worktree.index.folders = folder_states(worktree.path, files)
    head = worktree.git_dir / "HEAD"
    is_plain = head.is_file() and not head.is_symlink()
    if not is_plain or head.read_bytes() != f"{commit}\n".encode():
        stand_on(worktree, commit)


def _read_tree(worktree: Worktree, commit: str) -> None:
    worktree.repo.git(*READ_TREE, "--end-of-options", commit, pins=worktree.pins)
    file = worktree.git_dir / "index"
    worktree.index.data, worktree.index.written = file.read_bytes(), file.stat().st_mtime_ns


INCLUDE_FILE = ".worktreeinclude"
PRIVATE = frozenset({".clean_room", ".git"})
"""Folders of git and of this program (its record, and the key that hides secrets), which no pattern can include."""
BATCH = 500
"""Paths in one command line."""


def included_files(repo: Repository) -> tuple[str, ...]:
    """The files that match `.worktreeinclude` (in .gitignore syntax) and are not in a snapshot, because they are
    ignored or in generated folders; sorted. Never files of git or of this program.
    """
    if not (repo.top / INCLUDE_FILE).is_file():
        return ()
    listed = repo.git("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE_FILE}")
    named = tuple(path for path in names(listed) if not path.endswith("/"))
    if not named:
        return ()
    outside, _ = split_generated(str(repo.top), names(repo.git("ls-files", "-z", "--cached")), named)
    found = {*named} - {*outside}
    for at in range(0, len(named), BATCH):
        ignored = repo.git(
            *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"), *named[at : at + BATCH]
        )
        found.update(names(ignored))
    return tuple(sorted(path for path in found if PRIVATE.isdisjoint(path.casefold().split("/"))))


KEPT_OUT = (".clean_room",)
"""The index of the checked-out tree is kept here; a commit's own files would replace it."""


class ParentCheckout:
    """A repository at `root` that borrows the objects of another."""

    def __init__(self, git_dir: Path, root: Path) -> None:
        """`git_dir` is the other's folder; `root` does not exist yet.

        Raises:
            GitError: git failed.
        """
        self.root = root
        self._commit = ""
        self._named = NamedPrograms()
        root.mkdir(parents=True)
        asked = ("rev-parse", "--show-object-format", "--path-format=absolute", "--git-common-dir")
        said = one_line(git(*asked, cwd=git_dir, pins={"GIT_DIR": str(git_dir)}))
        form, _, common = said.partition("\n")
        git("init", "-q", "--template=", f"--object-format={form}", cwd=root)
        own = root / ".git"
        (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(Path(common) / "objects") + b"\n")
        shallow = Path(common) / "shallow"
        if shallow.exists():
            (own / "shallow").write_bytes(shallow.read_bytes())

    def show(self, commit: str) -> None:
        """Check out the commit, with HEAD at it.

        Raises:
            GitError: git failed.
        """
        require_hex(commit)
        if git("ls-tree", "-z", "--name-only", "--", commit, *KEPT_OUT, cwd=self.root):
            raise GitError(
                f"{commit} contains a folder that belongs to this program, so it is not checked out"
            )
        self._named = self._named if self._commit else named_programs(self.root)
        force = ("checkout", "-q", "--force", "--detach")
        git(*force, require_hex(commit), "--", cwd=self.root, named=self._named)
        self._commit = commit

    def paths(self) -> frozenset[str]:
        """The paths of the commit's files, without links."""
        listed = names(git("ls-tree", "-r", "-z", "--full-tree", "--", self._commit, cwd=self.root))
        entries = (entry.partition("\t") for entry in listed)
        return frozenset(path for head, _, path in entries if head.startswith("100"))


# The part of `.git` that test commands in the sandbox may see. The folder contains passwords (`credentials`, included
# configuration, `FETCH_HEAD`), other worktrees, logs, sockets, and anything that somebody put there. So a new one is built:
# objects as a folder, all else as bytes that are read here.
SHOWN_REFS = ("refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace")
"""Not the stash, and no snapshots of other runs."""
NEEDED = (
    *("core.repositoryformatversion", "core.filemode", "core.ignorecase", "core.precomposeunicode"),
    *("core.symlinks", "core.autocrlf", "core.eol", "core.abbrev", "extensions.objectformat"),
    *("extensions.compatobjectformat", "extensions.refstorage", "extensions.noop"),
    "extensions.preciousobjects",
)


def written_files(repo: Repository) -> dict[str, bytes]:
    """The files of a stand-in for `.git`: the configuration, the refs, and the boundary of a shallow history."""
    found = {
        "config": bare_configuration(repo),
        "packed-refs": repo.git("for-each-ref", "--format=%(objectname) %(refname)", *SHOWN_REFS),
    }
    try:
        ends = safe_open.read_bytes(repo.common_dir, "shallow").decode("ascii", "replace").split()
    except OSError:
        return found
    return found | {"shallow": "".join(f"{end}\n" for end in ends if re.fullmatch(HEX, end)).encode()}


def shown_folders(repo: Repository) -> dict[str, Path]:
    """The folders that are shown unchanged: the objects, and reftables, if refs are stored that way.

    A link is not followed, nor are objects that are borrowed from another repository (`git clone --shared`): the repository
    is not trusted to name only folders of objects. Git is there without that part of the history.
    """
    folders = {name: repo.common_dir / name for name in ("objects", "reftable")}
    return {name: place for name, place in folders.items() if place.is_dir() and not place.is_symlink()}


def bare_configuration(repo: Repository) -> bytes:
    """The part of the repository's configuration that git needs to read it: no remote, no helper, no password."""
    listed = git("config", "--file", str(repo.common_dir / "config"), "--list", "-z", cwd=Path("/"))
    lines: list[str] = []
    for entry in names(listed):
        key, _, value = entry.partition("\n")
        section, _, name = key.partition(".")
        if key in NEEDED and value.isalnum():
            lines.append(f"[{section}]\n\t{name} = {value}\n")
    return "".join(lines).encode()
