"""Opens the repositories to mine: paths, URLs, or a manifest with revisions."""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from clean_room_agent.config import load_toml
from clean_room_agent.errors import ArtifactError, GitError, UsageError
from clean_room_agent.file_contents import read_given
from clean_room_agent.git.clones import clone
from clean_room_agent.git.command import git, one_line
from clean_room_agent.git.log import resolve_commit
from clean_room_agent.git.repository import remote_url

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
URL = re.compile(r"[a-z][a-z+.-]*://|[\w.-]+@[\w.-]+:")


class Listed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One repository to mine, as an argument or a manifest's entry names it."""

    source: str
    """A path, relative to the manifest, or a URL."""
    revision: str = "HEAD"
    name: str = ""
    """The name in rows; by default the address of its origin, or its folder."""
    tests: str = ""
    """The command that runs its tests, where faults are planted; by default what its files show."""


class _Manifest(Struct):
    repository: tuple[Listed, ...]


class Source(Struct, frozen=True, kw_only=True):
    """A repository on this machine, at one commit."""

    name: str
    git_dir: Path
    head: str
    tests: str = ""
    """The command that runs its tests; "" if the files of the commit are to show it."""


class Exclusions(Struct, frozen=True, kw_only=True):
    """Repositories and commits to leave out, such as those of benchmarks."""

    repositories: frozenset[str] = frozenset()
    """As `owner/name`, in lower case."""
    commits: frozenset[str] = frozenset()

    def has(self, *names: str) -> bool:
        """Whether the repository is on the list under one of these addresses or paths."""
        return any(_owner_and_name(name) in self.repositories for name in names)


def read_manifest(path: Path) -> tuple[Listed, ...]:
    """The entries of a manifest: TOML with `[[repository]]` tables.

    Raises:
        UsageError: it cannot be read.
        ArtifactError: it is not a manifest; the message says where.
    """
    try:
        entries = msgspec.convert(load_toml(read_given(path)), _Manifest).repository
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(
            f"{path} is no list of repositories: {exc}",
            hint='write [[repository]] tables with source = "PATH or URL"',
        ) from exc
    return tuple(
        each if URL.match(each.source) else replace(each, source=str(path.parent / each.source))
        for each in entries
    )


def read_exclusions(path: Path) -> Exclusions:
    """Read a list with a repository (`owner/name`, a URL, a path) or a full commit id per line; `#` begins a comment.

    Raises:
        UsageError: it cannot be read.
    """
    lines = [line.partition("#")[0].strip() for line in read_given(path).splitlines()]
    commits = frozenset(line for line in lines if HASH.fullmatch(line))
    return Exclusions(
        repositories=frozenset(_owner_and_name(line) for line in lines if line and line not in commits),
        commits=commits,
    )


def open_sources(
    listed: Iterable[Listed], clones: Path, exclusions: Exclusions, say: Callable[[str], None]
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """The repositories, and the names of those excluded. Those with URLs are cloned below `clones`, unless they were
    before, which `say` is told.

    Raises:
        UsageError: there is no such repository or revision, or two have the same name.
        GitError: a clone failed.
    """
    found: dict[str, Source] = {}
    left_out: list[str] = []
    for entry in listed:
        if not all(word.isprintable() for word in astuple(entry)):
            raise UsageError(
                f"{entry.source!r} is no name of a repository: it contains an unprintable character"
            )
        if exclusions.has(entry.source, entry.name):
            left_out.append(entry.name or entry.source)
            continue
        source = _open_source(entry, clones, say)
        if exclusions.has(source.name):
            left_out.append(source.name)
            continue
        if source.name in found:
            raise UsageError(
                f"two repositories are called {source.name}", hint="give them different names in a manifest"
            )
        found[source.name] = source
    return tuple(found.values()), tuple(left_out)


def _open_source(entry: Listed, clones: Path, say: Callable[[str], None]) -> Source:
    if URL.match(entry.source):
        name = _without_password(entry.source)
        digest = hashlib.sha256(entry.source.encode()).hexdigest()[:8]
        git_dir = clones / f"{_owner_and_name(entry.source).replace('/', '+')}-{digest}.git"
        if not git_dir.exists():
            say(f"cloning {name}")
            clone(entry.source, git_dir)
    else:
        path = Path(entry.source).absolute()
        git_dir = _git_dir(path)
        name = remote_url(git_dir) or "/".join(path.parts[-2:])
    head = resolve_commit(git_dir, entry.revision)
    if head is None:
        raise UsageError(
            f"{entry.source} has no commit {entry.revision}",
            hint=f"name another revision; to renew an earlier clone, remove {clones}",
        )
    return Source(name=entry.name or name, git_dir=git_dir, head=head, tests=entry.tests)


def _git_dir(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"no folder {path}", hint="give the path or the https URL of a git repository")
    try:
        return Path(one_line(git("rev-parse", "--absolute-git-dir", cwd=path)))
    except GitError as exc:
        raise UsageError(f"{path} is not a git repository: {exc.message}", hint=exc.hint) from exc


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.netloc else url


def _owner_and_name(address: str) -> str:
    """`owner/name`, in lower case, of an address or a path."""
    plain = address.strip().rstrip("/").removesuffix(".git").replace("+", "/").replace(":", "/").lower()
    parts = [part for part in plain.split("/") if part not in {"", "repo", "."}]
    return "/".join(parts[-2:])
