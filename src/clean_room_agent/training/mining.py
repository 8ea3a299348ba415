"""Selects the commits of a history that make good tasks: described in words, and small enough for one step.

The first filter that refuses a commit is the one that counts it, so the counts and the commits kept add up to the history.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec import Struct

from clean_room_agent import syntax
from clean_room_agent.execute.edits.rules import path_fault
from clean_room_agent.git.log import CommitChange, PathChange
from clean_room_agent.paths import is_secret_name, kind_of

MAX_FILES = 5
MAX_LINES = 200
"""Added and deleted lines in source files, from which on a commit is too large."""
MIN_WORDS = 5
MAX_CHARACTERS = 2000
"""Of a message; longer ones are logs of many changes."""
PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})

BOT = re.compile(
    r"\[bot\]|\b(?:bot|dependabot|renovate|pre-commit-ci|github-actions|greenkeeper)\b", re.IGNORECASE
)
HOUSEKEEPING = re.compile(
    r"(?ix) ^\s* (?:\w+(?:\([^)]*\))?!?:\s*)? (?:"
    r"  (?:bump|release|releasing|version|prepare\ (?:for\ )?(?:release|version)|update\ (?:version|change|deps|dependenc|lock))\b"
    r"| v?\d+\.\d+ | merge\b | revert\b | wip\b | fixup! | squash! | backport\b | cherry[- ]?pick"
    r"| (?:re)?format\b | reformat | (?:run|apply)\ (?:black|ruff|isort|prettier|eslint|pyupgrade|pre-commit) | lint\b"
    r"| (?:fix|correct)\ (?:a\ )?(?:typos?|lint|flake8|pep8|formatting|whitespace|indentation)\b | typos?\b"
    r")"
    r"| \b(?:code\ style|whitespace\ only|pep\ ?8|isort|gofmt|changelog\ only)\b"
)  # fmt: skip
LINK = re.compile(r"https?://|\bwww\.", re.IGNORECASE)
HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
TRAILER = re.compile(
    r"^(?:signed-off-by|co-authored-by|reviewed-by|acked-by|change-id|cc|tested-by|reported-by|suggested-by|git-svn-id"
    r"|pull request|pr|issue|bug|ref|refs|see|closes|close|closed|fixes|fix|fixed|resolves|resolve|related)"
    r"[\s:-]+(?:#|gh-|[\w.-]+/[\w.-]+\#|.*@|[0-9a-fI]{8,})\S*.*$",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"(?:[\s.;,]*\b(?:closes|fixes|resolves|refs?|see|issue|pr|bug))?[\s:]*\(?(?:#|gh-)\d+\)?[\s.]*$",
    re.IGNORECASE,
)
"""The number of an issue or pull request at the end of a subject."""
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
LAST_SECOND = 253_402_300_799
"""Of the year 9999, since 1970 UTC: no calendar of Python has later ones."""
MAX_READ = 100_000
"""Characters of a message with its trailers."""
WORDS = re.compile(r"[A-Za-z][\w'.-]*")


class MinedCommit(Struct, frozen=True, kw_only=True):
    """A commit that passed the filters that need no content."""

    hash: str
    parent: str
    timestamp: str
    """The committer's, UTC, ISO 8601."""
    task: str
    """The message as a user would have given the task: without trailers and numbers of pull requests."""
    files: tuple[str, ...]
    """The source files that it changes, tests left out, sorted."""
    names_gold: bool
    """Whether the task says which file is changed."""


def mine(
    changes: Iterable[CommitChange], refused: Counter[str], *, skip: Collection[str] = ()
) -> Iterator[MinedCommit]:
    """The commits that pass, in the history's order; `refused` counts the others by the filter that refused them.

    `skip` are full names of commits that are not to be used.
    """
    for change in changes:
        reason = "excluded by list" if change.hash in skip else refusal(change)
        if reason:
            refused[reason] += 1
            continue
        files = tuple(sorted(entry.path for entry in _source_files(change.files)))
        task = clean_message(change.message)
        yield MinedCommit(
            hash=change.hash,
            parent=change.parents[0],
            timestamp=datetime.fromtimestamp(change.timestamp, tz=UTC).isoformat(),
            task=task,
            files=files,
            names_gold=names_file(task, files),
        )


def refusal(change: CommitChange) -> str:
    """Why the commit is not used as a task; "" if it may be."""
    if len(change.parents) != 1:
        return "merge" if change.parents else "first commit"
    return _unstorable_reason(change) or _refused_message(change) or _refused_files(change.files)


def _unstorable_reason(change: CommitChange) -> str:
    """What no row of a dataset can hold."""
    if change.timestamp > LAST_SECOND:
        return "date after the year 9999"
    if len(change.message) > MAX_READ:
        return "message too long"
    if UNREADABLE.search(f"{change.author}{change.message}"):
        return "message or author not in UTF-8, or with control characters"
    return ""


def _refused_message(change: CommitChange) -> str:
    subject = change.message.split("\n", 1)[0]
    task = clean_message(change.message)
    if BOT.search(change.author):
        return "by a bot"
    if HOUSEKEEPING.search(subject):
        return "bump, release or formatting"
    if len(WORDS.findall(task.split("\n", 1)[0])) < MIN_WORDS:
        return "message of few words"
    if len(task) > MAX_CHARACTERS:
        return "message too long"
    if LINK.search(task) or HASH.search(task):
        return "message with a link or a hash"
    return ""


def _refused_files(files: tuple[PathChange, ...]) -> str:
    sources = _source_files(files)
    if not sources:
        has_tests = any(kind_of(entry.path) == "test" for entry in files)
        return "tests only" if has_tests else "no source file" if files else "no file"
    paths = [entry.path for entry in sources]
    is_plain = all(entry.status in "AMD" and entry.is_file and entry.lines is not None for entry in sources)
    checks = (
        (f"more than {MAX_FILES} source files", len(sources) > MAX_FILES),
        ("other files", any(not _may_stand_beside(one.path) for one in files if one not in sources)),
        ("not plain text files", not is_plain),
        (f"{MAX_LINES} changed lines or more", sum(entry.lines or 0 for entry in sources) >= MAX_LINES),
        (
            "file names that are not shown or edited",
            any(is_secret_name(PurePosixPath(path).name) or path_fault(path) for path in paths),
        ),
    )
    return next((reason for reason, refused in checks if refused), "")


def clean_message(message: str) -> str:
    """The message without trailers, references to issues on lines of their own, and a pull request's number."""
    lines = [line.rstrip() for line in message.strip().split("\n")]
    kept = [line for line in lines if not TRAILER.match(line.strip())]
    if kept:
        kept[0] = NUMBER.sub("", kept[0])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def names_file(task: str, files: Collection[str]) -> bool:
    """Whether a word of the task is the path or the name of one of the files."""
    words = {word.strip("`'\"()[]{},.:;") for word in task.split()}
    named = words | {word.split(":", 1)[0] for word in words}
    return any(path in named or PurePosixPath(path).name in named for path in files)


def _source_files(files: Iterable[PathChange]) -> tuple[PathChange, ...]:
    """The files of code in a language that is indexed whole; no tests, examples or set-up files."""
    return tuple(
        entry
        for entry in files
        if syntax.grammar_of(entry.path) is not None and kind_of(entry.path) == "code"
    )


def _may_stand_beside(path: str) -> bool:
    """Whether the file may be changed besides the sources: tests, which a task here does not ask for, and prose, which
    its edits need not contain.
    """
    kind = kind_of(path)
    return (
        kind == "test" or PurePosixPath(path).suffix.lower() in PROSE or (kind == "side" and "." not in path)
    )
