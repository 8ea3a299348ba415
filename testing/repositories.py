"""Small real git repositories with fixed authors and dates, and a fingerprint of all that is the user's."""

import atexit
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from clean_room_agent import proc, workspace
from clean_room_agent.git.commits import FILE, FileChange, commit_files
from clean_room_agent.git.repository import Repository
from clean_room_agent.proc import inherited_environment
from testing.patience import PATIENCE

AUTHOR = ("Ada Example", "ada@example.org")
SETTINGS = """\
[user]
\tname = {}
\temail = {}
[core]
\tautocrlf = false
[commit]
\tgpgSign = false
""".format(*AUTHOR)
COMMIT = ("-c", "maintenance.auto=false", "commit", "-q", "--allow-empty")
"""Without the process by which git looks whether there is much to tidy up."""
FIRST_DATE = 1_700_000_000
TEMPORARY = tempfile.gettempdir()
"""Before any test names another place, which goes with it."""
STATE_FILES = (
    "index",
    "HEAD",
    "config",
    "config.worktree",
    "packed-refs",
    "shallow",
    "ORIG_HEAD",
    "FETCH_HEAD",
)
STATE_FOLDERS = ("hooks", "info", "logs")

Files = Mapping[str, str | bytes | None]


def git(top: Path, *arguments: str, feed: bytes = b"", date: int = FIRST_DATE) -> str:
    """What git answers to the user, without configuration from outside `top`; less the line break at its end."""
    env = inherited_environment(without="GIT_") | {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_AUTHOR_DATE": f"{date} +0000",
        "GIT_COMMITTER_DATE": f"{date} +0000",
    }
    done = proc.run(("git", *arguments), cwd=top, env=env, timeout=PATIENCE, input=feed, contain=False)
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def make_repository(top: Path, files: Files, *, message: str = "Begin") -> Path:
    """`top`, made with one commit of `files` on branch `main`."""
    if top.exists():
        return _commit_first(top, files, message)
    shutil.copytree(_made(tuple(files.items()), message), top, symlinks=True)
    return top


@functools.cache
def _made(files: tuple[tuple[str, str | bytes | None], ...], message: str) -> Path:
    """A repository to copy, which takes a quarter of the time of making one; most are asked for again and again."""
    folder = Path(tempfile.mkdtemp(prefix="cra-repository-", dir=TEMPORARY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _commit_first(folder, dict(files), message)


def _commit_first(top: Path, files: Files, message: str) -> Path:
    init_repository(top)
    write(top, files)
    git(top, "add", "-A")
    git(top, *COMMIT, "-m", message)
    for sample in (top / ".git/hooks").glob("*.sample"):
        sample.unlink()  # as many files as all others
    return top


def copy_repository(source: Path, target: Path) -> Path:
    """`target`, a copy whose `.clean_room` its user trusts."""
    shutil.copytree(source, target, symlinks=True)
    folder = target / ".clean_room"
    if folder.exists():
        workspace.trust(folder)
    return target


def init_repository(top: Path) -> Path:
    """`top`, made as a repository without a commit."""
    top.mkdir(parents=True, exist_ok=True)
    git(top, "init", "-q", "-b", "main")
    with (top / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(SETTINGS)  # `git config` would be a process for each
    return top


def commit(top: Path, files: Files, message: str) -> str:
    """The new commit's name, after all of `files` were written (None: deleted) and everything was added."""
    write(top, files)
    git(top, "add", "-A")
    count = int(git(top, "rev-list", "--all", "--count"))
    git(top, *COMMIT, "-m", message, date=FIRST_DATE + 60 * count)
    return git(top, "rev-parse", "HEAD")


def commit_change(repo: Repository, files: Mapping[str, bytes | None], base: str | None = None) -> str:
    """A new commit on `base` (the repository's HEAD for None) with `files` changed, beside the user's tree."""
    changes = {
        path: None if data is None else FileChange(data=data, mode=FILE) for path, data in files.items()
    }
    return commit_files(repo, base or repo.head, changes, "Change")


def write(top: Path, files: Files) -> None:
    """Each file holds what is given; those given as None are gone."""
    for name, content in files.items():
        path = top / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def read_tree(top: Path, commit_name: str) -> dict[str, bytes]:
    """Path -> content of every blob of a commit, as stored."""
    listed = git(top, "ls-tree", "-r", "-z", commit_name).split("\0")
    entries = (line.partition("\t") for line in listed if line and " commit " not in line)
    return {path: _blob(top, head.split(" ")[2]) for head, _, path in entries}


def fingerprint(
    top: Path, *, ignore: tuple[str, ...] = (".clean_room",), refs: tuple[str, ...] = ("refs/cra/",)
) -> dict[str, str]:
    """Everything of the user's that must outlive a run unchanged; compare two of them with `==`.

    Work tree (kind, mode, modification time, content), index, HEAD, configuration, hooks, reflogs (so the stash
    too) and refs. Left out: top-level names in `ignore`, refs that begin with one of `refs`.
    """
    return _tree_marks(top, ignore) | _state_marks(top, refs) | _ref_marks(top, refs)


def _tree_marks(top: Path, ignore: tuple[str, ...]) -> dict[str, str]:
    marks: dict[str, str] = {}
    for folder, folders, files in os.walk(top):
        left_out = {".git", *ignore} if Path(folder) == top else set()
        folders[:] = sorted(set(folders) - left_out)
        for name in sorted({*folders, *files} - left_out):
            path = Path(folder) / name
            marks[f"tree:{path.relative_to(top)}"] = _mark(path)
    return marks


def _state_marks(top: Path, refs: tuple[str, ...]) -> dict[str, str]:
    git_dir, common = _git_folders(top)
    skipped = tuple(f"logs/{ref}" for ref in refs)
    marks: dict[str, str] = {}
    for place in sorted({git_dir, common}):
        found = [place / name for name in STATE_FILES]
        for folder in STATE_FOLDERS:
            found += sorted((place / folder).rglob("*"))
        for path in found:
            relative = str(path.relative_to(place))
            if path.is_file() and not relative.startswith(skipped):
                marks[f"{place.name}:{relative}"] = _mark(path)
        # Without its time: whoever reads a split index, git's own status too, touches the shared part.
        for path in place.glob("sharedindex.*"):
            marks[f"{place.name}:{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return marks


def _git_folders(top: Path) -> tuple[Path, Path]:
    """The folder of this work tree's state, and that of what all work trees share."""
    own = top / ".git"
    if own.is_dir() and not own.is_symlink() and not (own / "commondir").exists():
        return own, own
    asked = ("--path-format=absolute", "--git-dir", "--git-common-dir")
    git_dir, common = git(top, "rev-parse", *asked).splitlines()
    return Path(git_dir), Path(common)


def _ref_marks(top: Path, refs: tuple[str, ...]) -> dict[str, str]:
    return {f"ref:{name}": value for name, value in list_refs(top).items() if not name.startswith(refs)}


def list_refs(top: Path) -> dict[str, str]:
    """Name -> object of each ref, sorted. Read from git's files where they hold all refs: a process each time adds up."""
    git_dir, common = _git_folders(top)
    if git_dir != common or (common / "reftable").exists():
        lines = git(top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return {name: value for name, _, value in (line.partition(" ") for line in lines)}
    packed, found = common / "packed-refs", dict[str, str]()
    for line in packed.read_text().splitlines() if packed.is_file() else ():
        if not line.startswith(("#", "^")):
            value, _, name = line.partition(" ")
            found[name] = value
    for path in (common / "refs").rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            found[path.relative_to(common).as_posix()] = path.read_text().strip()
    return {name: found.get(value.removeprefix("ref: "), value) for name, value in sorted(found.items())}


def list_worktrees(top: Path) -> list[str]:
    """The folders of the work trees that git knows beside the repository's own."""
    _, common = _git_folders(top)
    pointers = (common / "worktrees").glob("*/gitdir")
    return [os.path.normpath(path.parent / path.read_text().strip() / "..") for path in pointers]


def _blob(top: Path, name: str) -> bytes:
    return proc.run(("git", "cat-file", "blob", name), cwd=top, timeout=PATIENCE, contain=False).stdout


def _mark(path: Path) -> str:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(info.st_mode):
        content = path.read_bytes()
    else:
        content = b""
    digest = hashlib.sha256(content).hexdigest()[:16]
    return f"{stat.filemode(info.st_mode)} {info.st_mtime_ns} {digest}"
