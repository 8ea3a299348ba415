"""The user's repository: where it is, whether a run can work with it, and which files it lists."""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct, structs

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import (
    HEX,
    NamedPrograms,
    fields,
    git,
    joined,
    named_programs,
    names,
    one_line,
)
from clean_room_agent.git.generated import Generated, is_regular, split_generated
from clean_room_agent.proc import inherited_environment

ATTRIBUTE = "working-tree-encoding"
UTF8 = re.compile(r"utf-?8", re.IGNORECASE)
WITHOUT_ENCODING = frozenset({"unspecified", ""})
NO_NAME = frozenset({"set", "unset"})
"""What git says of an attribute without a value; it stops at such a file."""
CONVERTED = f"a file that git converts ({ATTRIBUTE}, or a filter driver)"
FILE = ".gitattributes"
OF_ALL_USERS = tuple(
    Path(place) / "gitattributes" for place in ("/etc", "/usr/local/etc", "/opt/homebrew/etc")
)


# Which files git stores as UTF-8 and writes into a working tree in another encoding (`working-tree-encoding`): git itself
# is asked, since attributes come from several files, and by way of macros.


def encodings(ask: Callable[[tuple[str, ...], bytes], bytes], paths: Iterable[str]) -> dict[str, str]:
    """The encoding of those of `paths` that git converts, by path; one of `NO_NAME` where the attribute names none.
    `ask` runs git with arguments and an input.
    """
    given = tuple(paths)
    told = fields(ask(("-z", "--stdin", ATTRIBUTE), joined(given))) if given else ()
    pairs = zip(told[0::3], told[2::3], strict=True)
    return {path: name for path, name in pairs if name not in WITHOUT_ENCODING and not UTF8.fullmatch(name)}


def why_not_shown(encoding: str) -> str:
    """Why a file that git converts is neither shown nor edited."""
    if encoding in NO_NAME:
        return f"its attribute {ATTRIBUTE} names no encoding"
    return f"git converts it to {encoding} in a working tree ({ATTRIBUTE})"


def has_attributes(top: Path, paths: Iterable[str], configured: Iterable[str]) -> bool:
    """Whether any file can give attributes to the files of the working tree; `configured` are values of
    `core.attributesFile`.
    """
    env = inherited_environment(without="GIT_")
    home = Path(env.get("HOME", "/"))
    users = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git/attributes"
    if any(configured) or not (top / ".git").is_dir():
        return True
    files = (users, *OF_ALL_USERS, top / ".git/info/attributes")
    return any(file.exists() for file in files) or any(f"/{path}".endswith(f"/{FILE}") for path in paths)


REMOTE_URLS = r"remote\..*\.url"
READ_BY_GIT = (
    *(".gitignore", ".gitattributes", ".gitmodules", ".git/info/exclude", ".git/info/attributes"),
    *(".git/info/sparse-checkout", ".git/objects/info/alternates", ".git/shallow", ".git/packed-refs"),
    *(".git", ".git/HEAD", ".git/config", ".git/config.worktree", ".git/index", ".git/commondir"),
    ".git/info/grafts",
)
DEFAULT_AUTHOR = ("cra", "cra@localhost")
DROPPED = r"""[\x00-\x20.,:;<>"'\\]*"""
"""What git strips from both ends of a name; it refuses a name of which nothing is left."""
UNTRACKED = "?"
"""As `git ls-files -t` marks it."""
PLACES = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
IN_PROGRESS = (
    ("MERGE_HEAD", "merge", "git merge --abort"),
    ("CHERRY_PICK_HEAD", "cherry-pick", "git cherry-pick --abort"),
    ("REVERT_HEAD", "revert", "git revert --abort"),
    ("rebase-merge", "rebase", "git rebase --abort"),
    ("rebase-apply/applying", "git am", "git am --abort"),
    ("rebase-apply", "rebase", "git rebase --abort"),
    ("sequencer", "cherry-pick or revert", "git cherry-pick --abort, or git revert --abort"),
)


class Repository(Struct, frozen=True, kw_only=True):
    """A repository with a working tree and a commit. `head` is that commit.

    `named` are the filter drivers (LFS, git-crypt, ...) and hooks found in its configuration: they never run for us.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    head: str
    named: NamedPrograms

    @property
    def zero(self) -> str:
        """The object id of all zeros, which means none."""
        return "0" * len(self.head)

    @property
    def pins(self) -> dict[str, str]:
        """The variables that hold git to this repository."""
        return {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.top)}

    def git(
        self,
        *arguments: str,
        pins: Mapping[str, str] | None = None,
        input: bytes = b"",  # noqa: A002 - as in proc.run
        ok: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run git on exactly this repository, whatever its folders contain by now, and return the output.

        `pins` add to, or replace, the variables that name its folders.

        Raises:
            GitError: git ended with a code that is not in `ok`.
        """
        pinned = self.pins | dict(pins or {})
        where = Path(pinned["GIT_WORK_TREE"])
        return git(*arguments, cwd=where, pins=pinned, named=self.named, input=input, ok=ok)


class Listing(Struct, frozen=True, kw_only=True):
    """A working tree as git lists it."""

    top: Path
    head: str | None
    """The commit that is checked out; None before the first one."""
    paths: tuple[str, ...]
    """What git tracks or would offer to add, relative, some perhaps twice; files, links and submodules. Untracked files
    in a generated folder are left out."""
    remote_url: str | None
    generated: tuple[Generated, ...] = ()
    """The generated folders."""
    encoded: tuple[tuple[str, str], ...] = ()
    """(path, reason) of files that git converts to another encoding; they are not in `paths`. Sorted."""


def open_repository(path: Path) -> Repository:
    """Open the repository that contains `path`.

    Raises:
        RepositoryError: there is none, or it is bare, without a commit, or in the middle of a merge or similar
            operation.
    """
    _require_folder(path)
    asked = git(*PLACES, "HEAD^{commit}", "--", cwd=path, ok=(0, 128))
    lines = asked.decode("utf-8", "surrogateescape").splitlines()
    if len(lines) == 5 and lines[-1] == "--":
        top, git_dir, common_dir = _require_utf8_name(Path(lines[0])), Path(lines[1]), Path(lines[2])
        head = lines[3]
    else:  # no commit yet, a name of several lines, or something that needs an explanation
        top = find_top(path)
        git_dir = Path(one_line(git("rev-parse", "--absolute-git-dir", cwd=top)))
        common_dir = Path(one_line(git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=top)))
        head = one_line(git("rev-parse", "--verify", "-q", "HEAD^{commit}", cwd=top, ok=(0, 1, 128)))
    if not head:
        raise RepositoryError(
            f"{top} has no commit yet", hint="make a first one: git add -A && git commit -m 'first commit'"
        )
    for marker, name, abort in IN_PROGRESS:
        if (git_dir / marker).exists():
            raise RepositoryError(
                f"a {name} is in progress in {top}", hint=f"finish it, or abort it: {abort}"
            )
    unmerged = sorted({entry.partition("\t")[2] for entry in names(git("ls-files", "-u", "-z", cwd=top))})
    if unmerged:
        raise RepositoryError(
            f"unresolved conflicts in {', '.join(unmerged[:5])}", hint="resolve them, then: git add <file>"
        )
    repo = Repository(top=top, git_dir=git_dir, common_dir=common_dir, head=head, named=NamedPrograms())
    return as_configured_now(repo)


def as_configured_now(repo: Repository) -> Repository:
    """The repository with the programs that its configuration names now, which may depend on the branch."""
    return structs.replace(repo, named=named_programs(repo.top, pins=repo.pins))


def find_top(path: Path) -> Path:
    """The top folder of the working tree that contains `path`.

    Raises:
        RepositoryError: there is none, or git refuses it.
    """
    _require_folder(path)
    try:
        top = _require_utf8_name(Path(one_line(git("rev-parse", "--show-toplevel", cwd=path))))
    except GitError as exc:
        if _is_bare(path):
            raise RepositoryError(
                f"{path} is a bare repository: it has no files to work on", hint="clone it first"
            ) from exc
        raise _refusal_of(path, exc) from exc
    return top


def _require_folder(path: Path) -> None:
    """Check that `path` is a folder, and that no pipe is where git reads files in the repository around it: any git command
    would wait for it forever.
    """
    if not path.is_dir():
        told = f"{path} is a file" if os.path.lexists(path) else f"no folder {path}"
        raise RepositoryError(told, hint="give the path of a git repository")
    if not os.access(path, os.R_OK | os.X_OK):
        raise RepositoryError(f"the folder {path} cannot be read", hint="let your user read and enter it")
    place = path.absolute()
    top = next((each for each in (place, *place.parents) if os.path.lexists(each / ".git")), place)
    for name in READ_BY_GIT:
        with contextlib.suppress(OSError):  # there is none
            if stat.S_ISFIFO((top / name).stat().st_mode):
                raise RepositoryError(
                    f"{top / name} is a pipe: git would wait for it forever", hint=f"remove it: rm {name}"
                )


def list_work_tree(path: Path) -> Listing:
    """List the working tree that contains `path`, as git sees it now, with as few processes as possible.

    Raises:
        RepositoryError: there is none, git refuses it, or it would wait for a pipe forever.
    """
    _require_folder(path)
    asked = git("rev-parse", "--is-bare-repository", "--show-toplevel", "HEAD", "--", cwd=path, ok=(0, 128))
    lines = asked.decode("utf-8", "surrogateescape").splitlines()
    if len(lines) == 4 and lines[0] == "false":
        top, head = _require_utf8_name(Path(lines[1])), lines[2]
    else:  # no commit yet, a name of several lines, or something that needs an explanation
        top = find_top(path)
        head = one_line(git("rev-parse", "--verify", "-q", "HEAD^{commit}", cwd=top, ok=(0, 1, 128)))
    paths, generated = _list_paths(top)
    configured = _config_entries(top, rf"^({REMOTE_URLS}|core\.attributesfile)$")
    remote = [(key, value) for key, value in configured if key != "core.attributesfile"]
    encoded: dict[str, str] = {}
    if has_attributes(top, paths, (value for key, value in configured if key == "core.attributesfile")):
        encoded = encodings(lambda args, given: git("check-attr", *args, cwd=top, input=given), paths)
    return Listing(
        top=top,
        head=head if re.fullmatch(HEX, head) else None,
        paths=tuple(path for path in paths if path not in encoded) if encoded else paths,
        remote_url=_shown_url(remote),
        generated=generated,
        encoded=tuple((path, why_not_shown(name)) for path, name in sorted(encoded.items())),
    )


def is_partial_clone(top: Path) -> bool:
    """Whether this clone may lack contents that only a remote has."""
    found = git("config", "-z", "--name-only", "--get-regexp", r"^remote\..*\.promisor$", cwd=top, ok=(0, 1))
    return bool(names(found))


def list_files(top: Path) -> tuple[str, ...]:
    """Relative paths of the regular files that git tracks or would offer to add, sorted.

    Files that are ignored, deleted, links, or inside a submodule, another repository or a generated folder are left
    out. In a name, bytes that are not UTF-8 become surrogates.
    """
    return tuple(sorted(path for path in set(_list_paths(top)[0]) if is_regular(top / path)))


def list_ignored(top: Path, suffixes: tuple[str, ...], *, besides: str) -> tuple[str, ...]:
    """The regular files that git ignores and whose names end in one of `suffixes`, outside of generated folders, sorted; without
    those that the patterns in the file `besides` match, if there is one.
    """
    wanted = [f":(top,glob)**/*{suffix}" for suffix in suffixes]
    skipped = [
        f":(top,exclude,glob)**/{name}/**" for name in ("node_modules", ".venv", "venv", "__pycache__")
    ]
    others = ("--no-literal-pathspecs", "ls-files", "-z", "--others", "--ignored")
    listed = names(git(*others, "--exclude-standard", "--", *wanted, *skipped, cwd=top))
    if not listed:
        return ()
    if (top / besides).is_file():
        known = set(names(git(*others, f"--exclude-from={besides}", "--", *wanted, *skipped, cwd=top)))
        listed = tuple(path for path in listed if path not in known)
    kept, _ = split_generated(str(top), names(git("ls-files", "-z", "--cached", cwd=top)), listed)
    return tuple(sorted(path for path in set(kept) if is_regular(top / path)))


def list_others(top: Path) -> dict[str, str]:
    """What git lists that is not for edits, by path: a link, a submodule (any other repository), a file that git converts."""
    listing = list_work_tree(top)
    listed = {path.rstrip("/") for path in listing.paths}
    links = {path: "a link" for path in listed if (top / path).is_symlink()}
    submodules = {path: "a submodule" for path in listed - links.keys() if (top / path).is_dir()}
    return links | submodules | {path: CONVERTED for path, _ in listing.encoded}


def author_of(repo: Repository) -> tuple[str, str]:
    """The user's name and address as git would write them; `DEFAULT_AUTHOR` if either is not configured, or git would
    refuse it.
    """
    told = names(repo.git("config", "-z", "--get-regexp", r"^user\.(name|email)$", ok=(0, 1)))
    values = dict(entry.partition("\n")[::2] for entry in told)  # of several, the last counts
    name, mail = values.get("user.name", ""), values.get("user.email", "")
    return DEFAULT_AUTHOR if re.fullmatch(DROPPED, name) or re.fullmatch(DROPPED, mail) else (name, mail)


def remote_url(top: Path) -> str | None:
    """Where `origin`, or else the first remote, points to, without any user name or password; None if these cannot be
    separated from it.
    """
    return _shown_url(_config_entries(top, rf"^{REMOTE_URLS}$"))


def _config_entries(top: Path, pattern: str) -> list[tuple[str, str]]:
    found = names(git("config", "-z", "--get-regexp", pattern, cwd=top, ok=(0, 1)))
    return [entry.partition("\n")[::2] for entry in found]


def _shown_url(remotes: list[tuple[str, str]]) -> str | None:
    urls: dict[str, str] = {}
    for key, url in remotes:
        urls.setdefault(key[len("remote.") : -len(".url")], url)
    if not urls:
        return None
    url = urls["origin"] if "origin" in urls else urls[min(urls)]
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme in {"http", "https"}:
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return url or None


def tracked_below(top: Path, name: str) -> tuple[str, ...]:
    """The tracked paths at or below `name` in the top folder, sorted; `name` matches in any case."""
    whole = ("--no-literal-pathspecs", "ls-files", "-z", "--", f":(top,icase,literal){name}")
    return names(git(*whole, cwd=top))


def _is_bare(path: Path) -> bool:
    try:
        return one_line(git("rev-parse", "--is-bare-repository", cwd=path)) == "true"
    except GitError:
        return False


def _list_paths(top: Path) -> tuple[tuple[str, ...], tuple[Generated, ...]]:
    """The paths that git tracks or would offer to add, and the folders of which only tracked files are taken."""
    listed = names(git("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", cwd=top))
    # Each name has a letter and a blank before it; git lists what it does not track first.
    first = next((at for at, entry in enumerate(listed) if entry[0] != UNTRACKED), len(listed))
    tracked = tuple(entry[2:] for entry in listed[first:])
    if not first:
        return tracked, ()
    kept, generated = split_generated(str(top), tracked, tuple(entry[2:] for entry in listed[:first]))
    return (*kept, *tracked), generated


def _require_utf8_name(top: Path) -> Path:
    try:
        str(top).encode()
    except UnicodeEncodeError as exc:
        raise RepositoryError(
            f"the name of the folder {top} is not UTF-8, but records and reports are",
            hint="rename the folder, or mount it under another name",
        ) from exc
    return top


def _refusal_of(path: Path, exc: GitError) -> RepositoryError:
    if "dubious ownership" in exc.message:
        hint = f"it belongs to another user; if you trust it: git config --global --add safe.directory {path}"
    elif "not a git repository" in exc.message:
        hint = "run the command inside a repository, or make one: git init && git add -A && git commit"
    elif "must be run in a work tree" in exc.message:
        hint = "run the command in the work tree, not in .git"
    else:
        hint = exc.hint
    return RepositoryError(f"{path}: {exc.message}", hint=hint)
