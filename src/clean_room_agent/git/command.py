"""Runs git, so that neither the environment nor a configuration can make it run another program."""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.errors import CommandError, GitError
from clean_room_agent.proc import inherited_environment

ResultT = TypeVar("ResultT")
HEX = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
OUTPUT_BOUND = 1 << 30

# On the command line they win over every configuration file.
SAFE = (
    "core.hooksPath=/dev/null",
    "core.fsync=reference",  # a ref that was not synced may be empty after a power cut, and git then complains of it
    "core.fsyncMethod=fsync",  # else a configured "writeout-only" leaves it to the disk's cache
    "core.fsmonitor=false",
    # Hooks that configuration files name: known by event to later versions of git than by name (see NO_HOOK).
    "hook.reference-transaction.enabled=false",
    "hook.post-checkout.enabled=false",
    "hook.post-index-change.enabled=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",  # a split index would be written beside the user's own
    "core.sparseCheckout=false",
    "core.safecrlf=false",
    "core.editor=true",
    "core.askPass=",
    "core.sshCommand=false",
    "core.quotePath=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "credential.helper=",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "worktree.guessRemote=false",
    "worktree.useRelativePaths=false",  # would be written into the shared configuration
    "checkout.workers=0",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.orderFile=/dev/null",
    "diff.context=3",
    "diff.interHunkContext=0",
    "diff.algorithm=default",
    "diff.suppressBlankEmpty=false",
    "diff.renames=true",
    "diff.renameLimit=1000",
    "diff.submodule=short",
    "diff.ignoreSubmodules=none",
    "color.ui=false",
    "apply.ignoreWhitespace=no",
    "log.showSignature=false",
    "log.mailmap=false",
)

FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # wins over protocol.<name>.allow, which wins over protocol.allow
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
NO_FILTER = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
NO_HOOK = (("enabled", "false"), ("event", ""), ("command", "true"))
"""Each of them is enough; which ones git supports depends on its version (2.54 was the first with such hooks)."""


class NamedPrograms(Struct, frozen=True, kw_only=True):
    """Programs under names that a configuration chose, so that no fixed setting turns them off; sorted."""

    filters: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()

    def __or__(self, other: "NamedPrograms") -> "NamedPrograms":
        """The union of both."""
        return NamedPrograms(
            filters=tuple(sorted({*self.filters, *other.filters})),
            hooks=tuple(sorted({*self.hooks, *other.hooks})),
        )


LITTLE = 1 << 20
"""Bytes; if fewer are free, that is taken for the reason why a file could not be written."""
UNWRITTEN = r"(couldn't|could not|cannot|unable to|failed to) (write|create|close|update|append)"
MAKE_ROOM = "free some space on the disk of git's folder, and start again"
REMEDIES = (
    (
        "not a git repository: |there is no folder",
        "git's folder was removed or damaged while it was in use; bring it back, then start again",
    ),
    (
        "promisor remote",
        "this clone lacks objects, and nothing is fetched here; fetch them: git fetch --refetch --no-filter",
    ),
    (
        r"Read-only file system|insufficient permission|unable to create directory|(cannot|could not|unable to) (create|lock|write).*Permission denied",
        "git's folder must be writable: the snapshot and the result are kept there",
    ),
    ("No space left|Disk quota exceeded", MAKE_ROOM),
    (
        r"\.lock': File exists",
        "another git process is at work, or died at it: if none is running, remove the file that git names",
    ),
    (
        "index file corrupt|index file smaller|bad signature|bad index file",
        "git's index is damaged; it can be rebuilt from HEAD: rm .git/index && git reset",
    ),
    (
        "corrupt|bad object|unable to read|missing (blob|tree|commit)|not a valid object|invalid object",
        "the repository is damaged; `git fsck --full` says where, and another clone may have what is lost",
    ),
)
"""Patterns of git's messages with their remedies; the first that matches counts."""


def git(
    *arguments: str,
    cwd: Path,
    pins: Mapping[str, str] | None = None,
    named: NamedPrograms | None = None,
    input: bytes = b"",  # noqa: A002 - as in proc.run
    ok: tuple[int, ...] = (0,),
) -> bytes:
    """Run git and return its output. `pins` are variables such as GIT_DIR; the programs in `named` do not run.

    Raises:
        GitError: git is missing, or ended with a code that is not in `ok`; the message contains git's own.
    """
    try:
        done = proc.run(
            command_line(*arguments),
            cwd=cwd,
            env=environment(pins or {}, named or NamedPrograms()),
            timeout=None,
            input=input,
            check=False,
            bound=OUTPUT_BOUND,
            contain=False,
        )
    except CommandError as exc:
        raise GitError(exc.message, hint=exc.hint or remedy_for(exc.message, _free_at(cwd))) from exc
    if done.returncode not in ok:
        words = _error_message(done.stderr)
        raise GitError(
            f"git {_subcommand(arguments)} (exit {done.returncode}): {words}",
            hint=remedy_for(words, _free_at(cwd)),
        )
    if done.stdout_cut:
        raise GitError(f"git {_subcommand(arguments)}: more than {OUTPUT_BOUND} bytes of output")
    return done.stdout


def stream_git(
    *arguments: str, cwd: Path, separator: bytes, pins: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """The pieces of git's output as they arrive. `pins` are variables.

    Raises:
        GitError: as `git`, after the last piece.
    """
    try:
        yield from proc.stream(
            command_line(*arguments),
            cwd=cwd,
            env=environment(pins or {}, NamedPrograms()),
            separator=separator,
        )
    except CommandError as exc:
        words = _error_message(exc.stderr) or exc.message
        raise GitError(
            f"git {_subcommand(arguments)}: {words}", hint=remedy_for(words, _free_at(cwd)) or exc.hint
        ) from exc


class InBackground(threading.Thread, Generic[ResultT]):
    """Work that is done while the caller does something else."""

    def __init__(self, work: Callable[[], ResultT]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._results: list[ResultT] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Do the work."""
        try:
            self._results.append(self._work())
        except BaseException as exc:  # noqa: BLE001 - it is the caller's to raise
            self._error = exc

    def take(self) -> ResultT:
        """Wait for the result. To be called once.

        Raises:
            What the work raised.
        """
        self.join()
        if self._error is not None:
            raise self._error
        return self._results.pop()


def command_line(*arguments: str) -> tuple[str, ...]:
    """The whole command, hardened."""
    flags = (part for setting in SAFE for part in ("-c", setting))
    return ("git", "--no-pager", "--literal-pathspecs", *flags, *arguments)


def environment(pins: Mapping[str, str], named: NamedPrograms) -> dict[str, str]:
    """The environment for git: without inherited variables that control it, and with filter drivers and configured
    hooks disabled.
    """
    # By environment, not by -c: a name may hold "=".
    emptied = [
        (f"{section}.{name}.{key}", value)
        for section, known, settings in (("filter", named.filters, NO_FILTER), ("hook", named.hooks, NO_HOOK))
        for name in known
        for key, value in settings
    ]
    counted = {"GIT_CONFIG_COUNT": str(len(emptied))} if emptied else {}
    for number, (key, value) in enumerate(emptied):
        counted[f"GIT_CONFIG_KEY_{number}"] = key
        counted[f"GIT_CONFIG_VALUE_{number}"] = value
    return inherited_environment(without="GIT_") | FIXED | counted | dict(pins)


def named_programs(place: Path, *, pins: Mapping[str, str] | None = None) -> NamedPrograms:
    """The filter drivers and hooks that the configuration defines, as git reads it in that place. `pins` must be those
    of the calls that follow, since parts of a configuration may apply to only one folder, worktree or branch.
    """
    pattern = r"^(filter\..*\.(clean|smudge|process)|hook\..*\.(command|event))$"
    found = names(
        git("config", "-z", "--name-only", "--get-regexp", pattern, cwd=place, pins=pins, ok=(0, 1))
    )
    known = {(key.partition(".")[0], key.partition(".")[2].rpartition(".")[0]) for key in found}
    filters, hooks = (
        tuple(sorted(name for kind, name in known if kind == wanted)) for wanted in ("filter", "hook")
    )
    return NamedPrograms(filters=filters, hooks=hooks)


def require_hex(name: str) -> str:
    """Check that `name` is a full object id, so that one from a record or a file cannot be an option or a ref.

    Raises:
        GitError: it is something else.
    """
    if re.fullmatch(HEX, name) is None:
        raise GitError(f"{name!r} is not the name of an object")
    return name


def fields(output: bytes) -> tuple[str, ...]:
    """The NUL-terminated fields in git's output, some of which may be empty."""
    return tuple(os.fsdecode(field) for field in output.split(b"\0")[:-1])


def names(output: bytes) -> tuple[str, ...]:
    """The NUL-terminated names in git's output, in its order; bytes that are not UTF-8 become surrogates."""
    return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)


def joined(paths: tuple[str, ...]) -> bytes:
    """Names as git reads them with `-z --stdin`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def one_line(output: bytes) -> str:
    """Output that is one value, without the line break at its end; the value itself may contain line breaks."""
    return os.fsdecode(output.removesuffix(b"\n"))


def _error_message(stderr: bytes) -> str:
    """What git said, as one message: its further lines begin with no label of their own."""
    return stderr.decode("utf-8", "replace").strip()[-1000:].replace("\nerror: ", "\n")


def _subcommand(arguments: tuple[str, ...]) -> str:
    """The name of the command, after git's own options."""
    at = 0
    while arguments[at].startswith("-"):
        at += 2 if arguments[at] == "-c" else 1
    return arguments[at]


def remedy_for(words: str, free: int) -> str:
    """What to do about a failure of git with this message, while so many bytes are free; "" if that is unknown. Git
    does not always say that it could not write a small file because the disk was full.
    """
    known = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, words)), "")
    return known or (MAKE_ROOM if free < LITTLE and re.search(UNWRITTEN, words) else "")


def _free_at(folder: Path) -> int:
    import shutil  # noqa: PLC0415 - loads compression modules, and is needed only where something failed

    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return LITTLE
