"""Choosing commits by a rule, newest first, with every exclusion counted by its reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from benchmarks.commits.checkouts import clone, git, message_of
from benchmarks.commits.checks import Measured, measure
from benchmarks.commits.commit_list import CommitEntry, CommitList, RepositoryEntry

# What the first line of a message that announces a repair says; the tests decide whether there was one.
REPAIR = re.compile(
    r"\b(fix(e[sd]|ing)?|bugs?|regress\w*|crash\w*|prevents?|avoids?|incorrect\w*|wrong\w*|correct(s|ly)?|broken"
    r"|do(es)? not|don't|preserves?|restores?|ensures?|handles?)\b",
    re.IGNORECASE,
)


class Size(Struct, frozen=True, kw_only=True):
    """How large a change may be; both ends count."""

    sources: tuple[int, int] = (1, 5)
    lines: tuple[int, int] = (0, 199)
    """Added and deleted, in source files."""


class Quota(Struct, frozen=True, kw_only=True):
    """How many commits to take: the newest of any shape, of two or more source files, that create a file."""

    newest: int
    wide: int
    creating: int


class Change(Struct, frozen=True, kw_only=True):
    """What a commit changes: paths, and the lines added and deleted in source files."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    lines: int
    created: tuple[str, ...]


class Found(Struct, frozen=True, kw_only=True):
    """The commits taken, newest first, and how many were left out for each reason."""

    commits: tuple[CommitEntry, ...]
    excluded: Counter[str]
    looked_at: int


def find(
    work: Path,
    mirror: str,
    listed: CommitList,
    repository: str,
    *,
    newest: int,
    quota: Quota,
    size: Size,
    repairs: bool,
    tell: Callable[[CommitEntry, Measured], None],
) -> Found:
    """The newest `newest` commits that are no merges have been looked at until the quota was full.

    With `repairs`, only those count whose first line speaks of one.
    """
    layout = listed.repositories[repository]
    tree = clone(work, mirror, repository)
    taken: list[CommitEntry] = []
    left = {"newest": quota.newest, "wide": quota.wide, "creating": quota.creating}
    excluded: Counter[str] = Counter()
    seen: set[str] = set()
    looked_at = 0
    for commit in git(
        tree, "log", "--no-merges", "--min-parents=1", f"-{newest}", "--format=%H", "origin/HEAD"
    ).split():
        if not any(left.values()):
            break
        looked_at += 1
        change = read_change(tree, commit, layout)
        reason = refusal(tree, commit, change, layout, seen, size=size, repairs=repairs)
        shapes = [shape for shape in shapes_of(change) if left[shape]]
        if not reason and not shapes:
            reason = "enough of its shape"
        if not reason:
            entry = describe(tree, repository, commit, change, layout)
            entry, measured = try_environments(work, mirror, listed, entry)
            tell(entry, measured)
            reason = measured.fault
        if reason:
            excluded[reason] += 1
            continue
        taken.append(entry.model_copy(update={"must_pass": measured.turned}))
        for shape in shapes:
            left[shape] -= 1
    return Found(commits=tuple(taken), excluded=excluded, looked_at=looked_at)


def try_environments(
    work: Path, mirror: str, listed: CommitList, entry: CommitEntry
) -> tuple[CommitEntry, Measured]:
    """The entry in the first of its repository's environments where it is fit, else in the last."""
    for name in listed.repositories[entry.repository].environments:
        entry = entry.model_copy(update={"environment": name})
        measured = measure(work, mirror, listed, entry)
        if not measured.fault:
            break
    return entry, measured


def shapes_of(change: Change) -> Iterator[str]:
    """The names in the quota that the change counts for."""
    yield "newest"
    if len(change.sources) > 1:
        yield "wide"
    if change.created:
        yield "creating"


def read_change(tree: Path, commit: str, layout: RepositoryEntry) -> Change:
    """The commit against its first parent, renames told as a deletion and a creation."""
    parent = f"{commit}^"
    numbers = git(tree, "diff", "--numstat", "--no-renames", "-z", parent, commit).split("\0")
    created = set(
        git(tree, "diff", "--diff-filter=A", "--no-renames", "--name-only", "-z", parent, commit).split("\0")
    )
    lines = 0
    sources, tests = [], []
    for row in filter(None, numbers):
        added, deleted, path = row.split("\t", 2)
        if re.search(layout.tests, path):
            tests.append(path)
        elif re.search(layout.sources, path):
            sources.append(path)
            lines += int(added if added != "-" else 0) + int(deleted if deleted != "-" else 0)
    return Change(
        sources=tuple(sorted(sources)),
        tests=tuple(sorted(tests)),
        lines=lines,
        created=tuple(sorted(created.intersection(sources))),
    )


def refusal(
    tree: Path,
    commit: str,
    change: Change,
    layout: RepositoryEntry,
    seen: set[str],
    *,
    size: Size,
    repairs: bool,
) -> str:
    """Why the commit is left out before any test runs, "" if it is not; `seen` learns its message."""
    message = message_of(tree, commit)
    repeated = message in seen
    seen.add(message)
    (least, most), (fewest, lines) = size.sources, size.lines
    checks = (
        (not change.sources, "changes no source file"),
        (not change.tests, "changes no test"),
        (repairs and not REPAIR.search(message.partition("\n")[0]), "its first line speaks of no repair"),
        (len(change.sources) < least, f"changes under {least} source files"),
        (len(change.sources) > most, f"changes over {most} source files"),
        (change.lines < fewest, f"changes under {fewest} source lines"),
        (change.lines > lines, f"changes {lines + 1} source lines or more"),
        (repeated, "same message as a newer one"),
        (not selected(tree, commit, change, layout), "no changed test file can be run"),
    )
    return next((reason for holds, reason in checks if holds), "")


def selected(tree: Path, commit: str, change: Change, layout: RepositoryEntry) -> tuple[str, ...]:
    """The test paths for the command's end; `folders` widens each changed file to the folder around it."""
    held = set(git(tree, "ls-tree", "-r", "-z", "--name-only", commit, "--", *change.tests).split("\0"))
    modules = [path for path in change.tests if path in held and re.search(layout.test_modules, path)]
    if layout.select == "folders":
        return tuple(sorted({str(PurePosixPath(path).parent) + "/" for path in modules}))
    return tuple(sorted(modules))


def describe(
    tree: Path, repository: str, commit: str, change: Change, layout: RepositoryEntry
) -> CommitEntry:
    """The list's entry, still without the tests that it must turn green."""
    chosen: Sequence[str] = () if layout.select == "all" else selected(tree, commit, change, layout)
    return CommitEntry(
        id=f"{repository.split('/')[1]}-{commit[:8]}",
        repository=repository,
        commit=commit,
        base=git(tree, "rev-parse", f"{commit}^").strip(),
        environment=layout.environments[0],
        sources=change.sources,
        changed_lines=change.lines,
        test_files=change.tests,
        command=(*layout.command, *chosen),
    )
