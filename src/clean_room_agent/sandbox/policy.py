"""What a sandboxed command can see and do, as arguments for bubblewrap.

Everything is built up from nothing: the root is an empty folder in memory, made read-only at the end, and contains only
what is named here. That includes the folders of the interpreters and tools that a command needs, in the user's home or elsewhere:

PATH and the commands are the user's: what they name is shown with its prefix, and with the targets of its links. The
repository is not trusted: of its links, only those of a virtual environment's interpreter are followed, and only to a
real interpreter. That is a machine-code file in the `bin` of a prefix whose `lib` contains Python's own library, which
is how Python finds it, too. Of this prefix, `bin`, `lib` and similar folders are shown, if they are really inside it,
and nothing next to it, wherever the prefix is: `~/.pyenv/versions/3.11.9` is a prefix, `~/.pyenv` and `~/.ssh` are not.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

USER = 1000
"""The user's id inside, even if it is root outside."""
NAME = "cra"
GIT = Path("/run/cra-git")
NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--unshare-net", "--disable-userns", "--die-with-parent", "--new-session"),
    *("--hostname", NAME, "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL"),
)
ETC = (
    *("alternatives", "ca-certificates", "debian_version", "fonts", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release"),
    *("protocols", "services", "ssl/certs", "ssl/openssl.cnf", "pki/ca-trust/extracted", "pki/tls/certs"),
    *("terminfo", "timezone"),
)
"""What is shown of `/etc`: no names, no keys, no settings that contain passwords."""
ETC_PATTERNS = ("java-*", "python3*")
READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure")
"""Files of root that root may write without any capability."""
HIDDEN_PROC = ("kcore", "keys", "timer_list", "latency_stats")
VARIABLES = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "CI", "NO_COLOR", "FORCE_COLOR"),
        *("VIRTUAL_ENV", "JAVA_HOME", "GOROOT", "NODE_ENV", "NODE_OPTIONS", "NODE_PATH", "MAKEFLAGS"),
        *("DJANGO_SETTINGS_MODULE", "FLASK_APP", "RAILS_ENV", "OMP_NUM_THREADS", "TQDM_DISABLE"),
    }
)
VARIABLE_BEGINNINGS = ("LC_", "PYTHON", "PYTEST_", "COVERAGE_", "HYPOTHESIS_", "CRA_TEST_")
"""Prefixes of variables that are passed on; everything else counts as secret unless `[sandbox] environment` names it.
"""


class GitFolder(Struct, frozen=True, kw_only=True):
    """A read-only stand-in for a repository's `.git`."""

    written: Mapping[str, bytes]
    """Files with their contents: the configuration without passwords, the refs."""
    folders: Mapping[str, Path]
    """Folders with their sources: the objects."""
    worktree: Path
    """Git's metadata about the worktree, of which HEAD and the index are shown."""


class Policy(Struct, frozen=True, kw_only=True):
    """Where a command runs. All paths are absolute."""

    tree: Path
    """The writable folder; it is mounted at `at`, and nowhere else."""
    at: Path
    home: Path
    """An empty folder in memory."""
    reports: Path | None = None
    """A second writable folder, at its own path."""
    mounts: tuple[tuple[Path, Path], ...] = ()
    """(source, place): mounted read-only over what is there in the tree."""
    read: tuple[Path, ...] = ()
    """Shown read-only at their own paths."""
    git: GitFolder | None = None
    scratch_bytes: int = 512 << 20


class _Step(Struct, frozen=True, kw_only=True):
    at: Path
    arguments: tuple[str, ...]


def variables(given: Mapping[str, str], more: Sequence[str], home: Path) -> dict[str, str]:
    """The environment inside, from the environment outside and the names of `more` variables."""
    kept = {
        name: value
        for name, value in given.items()
        if name in VARIABLES or name in more or name.startswith(VARIABLE_BEGINNINGS)
    }
    return kept | {"HOME": str(home_inside(home)), "TMPDIR": "/tmp", "USER": NAME, "LOGNAME": NAME}  # noqa: S108


def home_inside(home: Path) -> Path:
    """The user's home, if that can be hidden by an empty folder; else a separate folder.

    A service's home may be within the folders that are shown of the system, and is hidden there; one that is itself a
    folder of programs, such as `/usr/sbin`, does not count as a home.
    """
    if not home.is_absolute() or home == Path("/") or home.parts[1] in {"etc", "run", "proc", "dev", "sys"}:
        return Path("/home") / NAME
    apart = not is_system(home) or (home.is_relative_to("/opt") and home != Path("/opt"))
    return home if apart else Path("/home") / NAME


def arguments(policy: Policy, data: Callable[[bytes], int]) -> list[str]:
    """The arguments of bubblewrap, without the program and the command; `data` returns an open file with the bytes.

    Mounts are ordered by depth, so that none hides another below it; of two at the same place the later counts: the
    tree over an empty home, and mounts over the tree.
    """
    readable = _readable_paths(policy)
    steps = [
        *_etc_steps(policy, data),
        *_tmpfs_steps(policy),
        *(_bind_step(path, path, "--ro-bind-try") for path in readable),
        _bind_step(policy.tree, policy.at, "--bind"),
        *_git_steps(policy, data),
        *(_bind_step(source, place) for source, place in policy.mounts),
    ]
    shown = [(path, path) for path in (*SYSTEM, *readable)]
    sockets = hidden_sockets(Path("/proc/net/unix"), (*shown, *policy.mounts))
    steps += [_bind_step(Path("/dev/null"), at) for at in sockets]
    if policy.reports is not None:
        steps.append(_bind_step(policy.reports, policy.reports, "--bind"))
    ordered = sorted(steps, key=lambda step: len(step.at.parts))
    return [
        *NAMESPACES,
        *_system_arguments(),
        *_proc_and_devices(policy),
        *(argument for step in ordered for argument in step.arguments),
        *("--remount-ro", "/", "--chdir", str(policy.at)),
    ]


def hidden_sockets(listing: Path, shown: Iterable[tuple[Path, Path]]) -> tuple[Path, ...]:
    """The places at which named sockets of the system, by the kernel's listing, would be visible inside; sorted.
    `shown` are (source, place). Mounting a folder read-only does not prevent connections to a socket in it. Sockets
    that were bound by a relative name, or are created later, are not found.
    """
    lines = listing.read_bytes().splitlines() if listing.exists() else []
    named = {Path(os.fsdecode(line[line.index(b" /") + 1 :])) for line in lines if b" /" in line}
    pairs = ((name, source, place) for name in named for source, place in shown if _is_in(name, source))
    return tuple(
        sorted({place / name.relative_to(source) for name, source, place in pairs if name.is_socket()})
    )


def _system_arguments() -> list[str]:
    found: list[str] = []
    for folder in SYSTEM:
        if folder.is_symlink():
            found += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            found += ["--ro-bind", str(folder), str(folder)]
    return found


def _readable_paths(policy: Policy) -> list[Path]:
    """The readable paths, without those inside of others, and without any that would expose the home or the tree's
    folder.
    """
    guarded = (home_inside(policy.home), policy.home, policy.at, policy.tree)
    fit = [
        path
        for path in sorted(set(policy.read))
        if not any(_is_in(hidden, path) for hidden in guarded)
        and not _is_in(path, policy.at)
        and not is_system(path)
    ]
    kept: list[Path] = []
    for path in fit:  # sorted by its parts: what is inside of a folder comes right behind it
        if not kept or not _is_in(path, kept[-1]):
            kept.append(path)
    return kept


def _is_in(path: Path, folder: Path) -> bool:
    """`path.is_relative_to(folder)`, which is 50 times slower, and is asked for hundreds of pairs before each command."""
    return f"{path}/".startswith(f"{str(folder).rstrip('/')}/")


def _etc_steps(policy: Policy, data: Callable[[bytes], int]) -> list[_Step]:
    etc = Path("/etc")
    names = [*ETC, *(path.name for pattern in ETC_PATTERNS for path in sorted(etc.glob(pattern)))]
    steps = [_bind_step(etc / name, etc / name, "--ro-bind-try") for name in names]
    written = {
        "passwd": f"{NAME}:x:{USER}:{USER}::{home_inside(policy.home)}:/bin/sh\n",
        "group": f"{NAME}:x:{USER}:\n",
        "hosts": f"127.0.0.1 localhost {NAME}\n::1 localhost\n",
    }
    return [*steps, *(_file_step(etc / name, text.encode(), data) for name, text in written.items())]


def _tmpfs_steps(policy: Policy) -> list[_Step]:
    size = str(policy.scratch_bytes)
    # In the sandbox, its own.
    folders = (("1777", Path("/tmp")), ("1777", Path("/var/tmp")), ("0700", home_inside(policy.home)))  # noqa: S108
    return [
        _Step(at=at, arguments=("--perms", mode, "--size", size, "--tmpfs", str(at))) for mode, at in folders
    ]


def _proc_and_devices(policy: Policy) -> list[str]:
    found = ["--proc", "/proc"]
    for name in READ_ONLY_PROC:
        found += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for name in HIDDEN_PROC:
        if Path("/proc", name).exists():
            found += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    shared = ("--perms", "1777", "--size", str(policy.scratch_bytes), "--tmpfs", "/dev/shm")  # noqa: S108
    return [*found, "--dev", "/dev", *shared, "--remount-ro", "/dev"]


def _git_steps(policy: Policy, data: Callable[[bytes], int]) -> list[_Step]:
    """The steps that create a git folder for the tree, and make the tree's `.git` a file that leads there and cannot be
    replaced.
    """
    git, link = policy.git, policy.at / ".git"
    if git is None:
        return []
    notes = GIT / "worktrees" / git.worktree.name
    written = {GIT / name: content for name, content in git.written.items()}
    written |= {notes / "commondir": b"../..\n", notes / "gitdir": f"{link}\n".encode()}
    pointer = str(data(f"gitdir: {notes}\n".encode()))
    return [
        *(_Step(at=GIT / name, arguments=("--dir", str(GIT / name))) for name in ("refs", "objects")),
        *(_file_step(at, content, data) for at, content in written.items()),
        *(_bind_step(source, GIT / name) for name, source in git.folders.items()),
        *(_bind_step(source, notes / source.name) for source in _checkout_files(git.worktree)),
        _Step(at=link, arguments=("--ro-bind-data", pointer, str(link))),
    ]


def _checkout_files(worktree: Path) -> list[Path]:
    """The files of a worktree's git metadata that say what is checked out."""
    usual = [worktree / name for name in ("HEAD", "index", "reftable")]
    return [path for path in (*usual, *sorted(worktree.glob("sharedindex.*"))) if path.exists()]


def _file_step(at: Path, content: bytes, data: Callable[[bytes], int]) -> _Step:
    """A file in the root folder, which is made read-only at the end."""
    return _Step(at=at, arguments=("--perms", "0644", "--file", str(data(content)), str(at)))


def _bind_step(source: Path, at: Path, how: str = "--ro-bind") -> _Step:
    return _Step(at=at, arguments=(how, str(source), str(at)))


SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")))
"""Shown as they are."""
SYSTEM_PREFIXES = tuple(f"{folder}/" for folder in SYSTEM)
PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg")
"""Parts of a tool's prefix that running it may need. Not `share`: below `~/.local` that contains keyrings."""
SHIM_PARTS = ("shims", "libexec", "versions", "installs", "plugins", "bin", "version")
"""The same for programs that are found through shims, such as pyenv's."""
MAX_HOPS = 16
MACHINE_CODE = b"\x7fELF"
LIBRARY = ("lib/python3*/os.py", "lib64/python3*/os.py", "lib/pypy3*/os.py")
"""A file of Python's own library, relative to its prefix."""


def tool_places(
    environment: Mapping[str, str], commands: Sequence[str], repository: Path | None = None
) -> tuple[Path, ...]:
    """The files and folders beyond the system's that programs of PATH, of an active virtual environment and of
    `commands` (shell text) need to run, and the folders of PYTHONPATH; existing, absolute, sorted, links not resolved.
    Links in `repository` are followed only to interpreters.
    """
    programs = [Path(entry) for entry in environment.get("PATH", "").split(":") if entry.startswith("/")]
    if environment.get("VIRTUAL_ENV", "").startswith("/"):
        programs.append(Path(environment["VIRTUAL_ENV"]) / "bin")
    named = [path for command in commands for path in _absolute_programs(command)]
    programs.extend(path.parent for path in named if path.parent.name == "bin")
    found = {path for path in named if not _stands_in(path, repository)}
    for folder in programs:
        if not _stands_in(folder, repository):
            found.update(_places_around(folder))
        elif (folder.parent / "pyvenv.cfg").is_file():
            found.update(interpreter_places(folder.parent))
    for entry in environment.get("PYTHONPATH", "").split(":"):
        if entry.startswith("/"):
            found.add(Path(entry))
    return tuple(sorted(path for path in found if os.access(path, os.R_OK) and not is_system(path)))


def interpreter_places(environment_folder: Path) -> tuple[Path, ...]:
    """What a virtual environment needs outside itself: the prefix of its interpreter, along every symbolic link."""
    found: set[Path] = set()
    for name in ("python", "python3"):
        link = environment_folder / "bin" / name
        prefix = interpreter_prefix(link)
        if prefix is None:
            continue
        found.update(_parts_within(prefix))
        for hop in _link_hops(link):
            if hop.parent.name == "bin" and hop.parent.parent.resolve() == prefix:
                found.update(_parts_within(hop.parent.parent))
            else:  # a name of the interpreter somewhere else: the one file
                found.add(hop)
    return tuple(
        sorted(path for path in found if not is_system(path) and not path.is_relative_to(environment_folder))
    )


def interpreter_prefix(link: Path) -> Path | None:
    """The prefix of the Python interpreter that the link leads to, all links resolved; None if it does not lead to one."""
    try:
        program = link.resolve(strict=True)
        prefix = program.parent.parent
        if program.parent.name != "bin" or not program.is_file() or not os.access(program, os.X_OK):
            return None
        with program.open("rb") as file:
            fit = file.read(len(MACHINE_CODE)) == MACHINE_CODE
        return prefix if fit and any(any(prefix.glob(pattern)) for pattern in LIBRARY) else None
    except (OSError, RuntimeError):  # a circle of links is a RuntimeError for pathlib
        return None


def _stands_in(path: Path, repository: Path | None) -> bool:
    if repository is None:
        return False
    return path.is_relative_to(repository) or path.resolve().is_relative_to(repository.resolve())


def _parts_within(prefix: Path) -> Iterator[Path]:
    """The parts of a prefix that are inside of it, and not links to elsewhere."""
    real = prefix.resolve()
    for name in PREFIX_PARTS:
        part = prefix / name
        if os.access(part, os.R_OK) and part.resolve().is_relative_to(real):
            yield part


def is_system(path: Path) -> bool:
    """Whether the path belongs to the system's folders, which are always shown."""
    return f"{path}/".startswith(SYSTEM_PREFIXES)


def _absolute_programs(command: str) -> Iterator[Path]:
    try:
        words = shlex.split(command)
    except ValueError:  # an apostrophe in a comment, or in the lines of `<<`
        words = command.split()
    for word in words:
        path = Path(word)
        if path.is_absolute() and os.access(path, os.X_OK) and path.is_file():
            yield path


def _places_around(folder: Path) -> Iterator[Path]:
    """The folder of programs, what belongs to it, and where an interpreter in it leads."""
    if is_system(folder) or not os.access(folder, os.R_OK | os.X_OK) or not folder.is_dir():
        return
    prefix = folder.parent
    if folder.name == "shims":
        yield from (prefix / name for name in SHIM_PARTS if os.access(prefix / name, os.R_OK))
    elif folder.name == "bin":
        yield from (prefix / name for name in PREFIX_PARTS if os.access(prefix / name, os.R_OK))
    else:
        yield folder
    if (prefix / "pyvenv.cfg").is_file():
        yield from interpreter_places(prefix)
    else:
        yield from _linked_to(folder)


def _linked_to(folder: Path) -> Iterator[Path]:
    """The targets of the links in a folder of programs, such as `~/.local/bin`."""
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            for target in _link_hops(entry):
                if target.parent == folder:
                    continue
                prefix = target.parent.parent
                parts = PREFIX_PARTS if target.parent.name == "bin" else ()
                yield from (prefix / name for name in parts if os.access(prefix / name, os.R_OK))
                if not parts and os.access(target, os.R_OK):
                    yield target


def _link_hops(link: Path) -> Iterator[Path]:
    """The paths that a link leads to, one by one, until one is not a link."""
    for _ in range(MAX_HOPS):
        if not link.is_symlink():
            return
        link = Path(os.path.normpath(link.parent / link.readlink()))
        yield link
