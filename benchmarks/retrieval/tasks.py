"""Tasks from real commits: the message, the files that it changed, and a snapshot before it.

    python -m benchmarks.retrieval.tasks OWNER/NAME ... --mirror '/mirrors/{owner}+{name}' [--back N ...] [--each N]
        > TASKS.jsonl

The rule, for every repository: snapshots stand on the first parents of its newest commit, N commits back. Of the
commits that came next after a snapshot, those are tasks, oldest first, that are no merges, have a message of some
words that announces neither a release nor a version's bump nor a merge nor a revert, and change one to five source
files (no tests, documentation or examples), all of which were there at the snapshot.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.commits.checkouts import git, mirror_path
from clean_room_agent.paths import kind_of
from clean_room_agent.syntax import grammar_of

MOST_FILES = 5
SHORTEST = 12
"""Characters of a message; fewer say nothing."""
REACH = 140
"""First parents after a snapshot within which its tasks are looked for."""
BACK = (150, 700, 1800, 4000)
PARTS = (20, 6, 3, 2)
"""Where the history is shorter than `LONG`: the snapshots stand back a twentieth of it, a sixth, a third and a half."""
LONG = 5_000
CHORES = re.compile(r"(bump|merge|release|revert)", re.IGNORECASE)
TRAILERS = re.compile(r"^(co-authored|signed-off|change-id|reviewed-by).*\n?", re.IGNORECASE | re.MULTILINE)


class Task(BaseModel):
    """A line of a task file; what else it holds is not read."""

    model_config = ConfigDict(frozen=True)

    id: str
    repo: str
    snapshot_commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    commit: str
    task: str
    gold_files: Annotated[tuple[str, ...], Field(min_length=1)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", nargs="+", help="owner/name")
    parser.add_argument("--mirror", required=True, help="where it is; holds {owner} and {name}")
    parser.add_argument("--back", type=int, nargs="+", help="where snapshots stand, in first parents")
    parser.add_argument("--each", type=int, default=15, help="tasks a snapshot")
    options = parser.parse_args()
    for repository in options.repositories:
        source = mirror_path(options.mirror, repository)
        for task in find_tasks(source, repository, back=options.back, each=options.each):
            sys.stdout.write(task.model_dump_json() + "\n")


def read_tasks(path: Path) -> tuple[Task, ...]:
    """The file's tasks, in its order.

    Raises:
        ValueError: a line is not a task (pydantic's error names the key).
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(Task.model_validate_json(line) for line in lines if line.strip())


def find_tasks(
    source: Path, repository: str, *, back: Sequence[int] | None = None, each: int = 15
) -> Iterator[Task]:
    """The tasks that the rule finds in the repository at `source`: the newest snapshot's first, each one's oldest first."""
    parents = git(source, "rev-list", "--first-parent", "HEAD").split()
    places = back or (BACK if len(parents) > LONG else [len(parents) // part for part in PARTS])
    for place in (min(place, len(parents) - 1) for place in places):
        start = parents[place]
        held = frozenset(git(source, "ls-tree", "-r", "-z", "--name-only", start).split("\0"))
        later = f"{start}..{parents[max(0, place - REACH)]}"
        found = 0
        for commit in git(source, "rev-list", "--no-merges", "--reverse", later).split():
            words = words_of(git(source, "log", "-1", "--format=%B", commit))
            files = changed_sources(source, commit)
            if found == each:
                break
            if not is_task(words, files, held):
                continue
            found += 1
            yield Task(
                id=f"{repository}@{commit[:10]}",
                repo=repository,
                snapshot_commit=start,
                commit=commit,
                task=words,
                gold_files=files,
            )


def words_of(message: str) -> str:
    """The message without lines that only name people or reviews."""
    return TRAILERS.sub("", message).strip()


def is_task(words: str, files: Sequence[str], held: frozenset[str]) -> bool:
    """Whether the rule takes a commit with this message that changes these source files."""
    if len(words) < SHORTEST or CHORES.match(words):
        return False
    return 1 <= len(files) <= MOST_FILES and held.issuperset(files)


def changed_sources(source: Path, commit: str) -> tuple[str, ...]:
    """Source files that the commit creates, changes or deletes, renames told as a deletion and a creation; sorted."""
    changed = git(source, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", commit)
    return tuple(sorted(path for path in changed.split("\0") if grammar_of(path) and kind_of(path) == "code"))


if __name__ == "__main__":
    main()
