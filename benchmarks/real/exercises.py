"""Exercism's Python exercises as aider's benchmark had them: a stub and instructions; the exercise's tests are in sight."""

import json
from pathlib import Path

from benchmarks.commits.checkouts import git, mirror_path
from benchmarks.real.tasks import PYTEST, Bench, Listed, Task, split_of, write_files

REPOSITORY = "exercism/python"
COMMIT = "102bfb78f28a"
"""Has 133 exercises."""
PLACE = "exercises/practice"
TEXTS = ("introduction.md", "instructions.md", "instructions.append.md")
ADDENDUM = """
####

Use the above instructions to modify the supplied files: {files}
Don't change the names of existing functions or classes, as they may be referenced from other code like unit tests, etc.
Only use standard libraries, don't suggest installing any packages.
"""  # the words of aider's benchmark/prompts.py


def tasks(mirrors: str) -> list[Listed]:
    """All exercises, by name."""
    mirror = mirror_path(mirrors, REPOSITORY)
    names = git(mirror, "ls-tree", "--name-only", f"{COMMIT}:{PLACE}").split("\n")
    return [exercise(name) for name in sorted(names)]


def exercise(name: str) -> Listed:
    """One exercise."""
    task_id, split = f"exercise-{name}", split_of(f"{REPOSITORY} {name}")

    def fill(bench: Bench, folder: Path) -> Task:
        mirror = mirror_path(bench.mirrors, REPOSITORY)
        top = f"{COMMIT}:{PLACE}/{name}"
        held = git(mirror, "ls-tree", "-r", "--name-only", top).split("\n")

        def text(path: str) -> str:
            return git(mirror, "show", f"{top}/{path}") + "\n"

        files = json.loads(text(".meta/config.json"))["files"]
        start = {path: text(path) for path in held if not path.startswith(".")}
        write_files(folder / "start", start)
        write_files(folder / "judge", {path: start[path] for path in files["test"]})
        words = "\n".join(text(f".docs/{part}") for part in TEXTS if f".docs/{part}" in held)
        solution, tests = tuple(files["solution"]), (*PYTEST, *files["test"])
        right = dict(zip(solution, map(text, files["example"]), strict=False))
        return Task(
            id=task_id,
            set="exercises",
            split=split,
            words=words + ADDENDUM.format(files=" ".join(solution)),
            command=tests,
            judge_command=tests,
            must_pass=bench.passing(folder / "start", right, tests),
            changed=solution,
            files=solution,
        )

    return Listed(
        id=task_id, split=split, make=lambda bench: bench.cached(task_id, lambda at: fill(bench, at))
    )
