"""Small changes among the real commits of the oracle's lists (`benchmarks/commits`), which say how each is tested.

At most two functions and 30 lines of one Python file change, and nothing public is added. The words are the commit's message.
In the variant `red`, the commit's tests are there; in `words`, the tests are those of its parent. The verdict: all tests
that pass with the commit.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commits.checkouts import environment_folder, git, message_of, mirror_path
from benchmarks.commits.commit_list import CommitEntry, EnvironmentEntry, read_list
from benchmarks.real.tasks import Bench, Listed, Task, split_of, write_files
from clean_room_agent.languages.python.mutations import Functions

LISTS = ("oracle_commits", "unseen_commits_5")
FOLDER = Path(__file__).parents[1] / "commits"
MOST_FUNCTIONS = 2
MOST_LINES = 30


def tasks(mirrors: str, variant: str) -> list[Listed]:
    """The tasks of the repositories that have a mirror."""
    found: list[Listed] = []
    missing: set[str] = set()
    for name in LISTS:
        listed = read_list(FOLDER / f"{name}.toml")
        for entry in listed.commits:
            environment = listed.environments[entry.environment]
            mirror = mirror_path(mirrors, entry.repository)
            if environment.kind != "python" or len(entry.sources) > 1 or entry.changed_lines > MOST_LINES:
                continue
            if not mirror.exists():
                missing.add(entry.repository)
                continue
            added, changed = changes(mirror, entry.base, entry.commit, entry.sources[0])
            if not added and 1 <= len(changed) <= MOST_FUNCTIONS:
                found.append(commit_task(entry, environment, variant))
    if missing:
        print(f"without a mirror, left out: {', '.join(sorted(missing))}", file=sys.stderr)
    return found


def changes(mirror: Path, base: str, commit: str, path: str) -> tuple[list[str], list[str]]:
    """Signatures of the public functions that a commit adds to a file, and names of all that it adds or changes there."""
    known = git(mirror, "ls-tree", "--name-only", base, "--", path)
    before = dict(signed(git(mirror, "show", f"{base}:{path}"))) if known else {}
    after = dict(signed(git(mirror, "show", f"{commit}:{path}")))
    names = [name for name in after if before.get(name) != after[name]]
    new = [name for name in names if name not in before]
    return [after[name][0] for name in new if not f".{name}".count("._")], names


def signed(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each function and method by its name, with its signature and its whole text."""
    tree = ast.parse(text)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for prefix, body in [("", tree.body), *((f"{owner.name}.", owner.body) for owner in classes)]:
        for node in body:
            if isinstance(node, Functions):
                whole = ast.unparse(node)
                returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                signature = f"def {prefix}{node.name}({ast.unparse(node.args)}){returns}"
                yield f"{prefix}{node.name}", (signature, whole)


def commit_task(entry: CommitEntry, environment: EnvironmentEntry, variant: str) -> Listed:
    """The task of one commit."""
    task_id, split = f"commit-{entry.id}-{variant}", split_of(f"{entry.repository} {entry.commit}")

    def fill(bench: Bench, folder: Path) -> Task:
        mirror = mirror_path(bench.mirrors, entry.repository)
        (path,) = entry.sources
        start = folder / "start"
        bench.export(entry.repository, entry.base, start)
        held = set(git(mirror, "ls-tree", "-r", "--name-only", entry.commit).split("\n"))
        tests = {
            test: git(mirror, "show", f"{entry.commit}:{test}") + "\n"
            for test in entry.test_files
            if test in held
        }
        write_files(folder / "judge", tests)
        place = str(environment_folder(bench.work, entry.environment, environment))
        right = tests | {path: git(mirror, "show", f"{entry.commit}:{path}") + "\n"}
        must_pass = bench.passing(start, right, entry.command, place)
        if variant == "red":
            write_files(start, tests)
        return Task(
            id=task_id,
            set=f"commits-{variant}",
            split=split,
            words=message_of(mirror, entry.commit),
            command=tuple(word for word in entry.command if word not in tests or (start / word).exists()),
            judge_command=entry.command,
            must_pass=must_pass,
            changed=entry.sources,
            environment=place,
        )

    return Listed(
        id=task_id, split=split, make=lambda bench: bench.cached(task_id, lambda at: fill(bench, at))
    )
