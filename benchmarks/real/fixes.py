"""One wrong function in a small repository: HumanEvalFix (octopack) and QuixBugs, told as "it fails its tests".

HumanEvalFix: the function with its docstring; the examples of the docstring are tests in sight, all tests judge. Where there
are no examples, all tests are in sight. QuixBugs: its tests are in sight and judge; the correct programs are left out.
"""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.commits.checkouts import git, mirror_path
from benchmarks.real.tasks import PYTEST, Bench, Listed, Task, split_of, write_files

OCTOPACK = "bigcode-project/octopack"
OCTOPACK_COMMIT = "e17a8f6470264286bc6a52eb8263582083bf3bf6"
OCTOPACK_FILE = "evaluation/create/humaneval-x/data/python/data/humanevalpack.jsonl"
QUIXBUGS = "jkoppel/QuixBugs"
QUIXBUGS_COMMIT = "4257f44b0ff1181dedaedee6a447e133219fcebf"
WORDS = "`{name}` in {path} is wrong: it fails its tests. Find the bug and fix it."
CALL = re.compile(r"^check\(\w+\)\s*\Z", re.MULTILINE)


def tasks(mirrors: str) -> list[Listed]:
    """HumanEvalFix by number, then QuixBugs by name."""
    lines = git(mirror_path(mirrors, OCTOPACK), "show", f"{OCTOPACK_COMMIT}:{OCTOPACK_FILE}").split("\n")
    found = [humaneval_fix(json.loads(line)) for line in lines if line]
    place = f"{QUIXBUGS_COMMIT}:python_testcases"
    files = git(mirror_path(mirrors, QUIXBUGS), "ls-tree", "--name-only", place).split("\n")
    names = [file.removeprefix("test_").removesuffix(".py") for file in files if file.startswith("test_")]
    return found + [quixbug(name) for name in sorted(names)]


def listed(task_id: str, fill: Any) -> Listed:
    """The task that `fill` makes in a folder."""
    split = split_of(task_id)

    def make(bench: Bench) -> Task:
        return bench.cached(task_id, lambda folder: fill(bench, folder, split))

    return Listed(id=task_id, split=split, make=make)


def humaneval_fix(row: dict[str, str]) -> Listed:
    """One line of the data."""
    number, name = row["task_id"].partition("/")[2], row["entry_point"]
    task_id, path, tests = f"humanevalfix-{number}", f"{name}.py", f"test_{name}.py"

    def test_file(text: str) -> str:
        body = CALL.sub("", text.strip())
        return f"from {name} import *\nfrom {name} import {name}\n\n{body}\n\ndef test_{name}():\n    check({name})\n"

    def fill(bench: Bench, folder: Path, split: str) -> Task:
        in_sight = row["example_test"] if row["example_test"].strip() else row["test"]
        wrong = row["prompt"] + row["buggy_solution"]
        write_files(folder / "start", {path: wrong, tests: test_file(in_sight)})
        write_files(folder / "judge", {tests: test_file(row["test"])})
        right = {path: row["prompt"] + row["canonical_solution"], tests: test_file(row["test"])}
        return Task(
            id=task_id,
            set="fixes",
            split=split,
            words=WORDS.format(name=name, path=path),
            command=(*PYTEST, tests),
            judge_command=(*PYTEST, tests),
            must_pass=bench.passing(folder / "start", right, (*PYTEST, tests)),
            changed=(path,),
            files=(path,),
        )

    return listed(task_id, fill)


def quixbug(name: str) -> Listed:
    """One program."""
    task_id, path, tests = (
        f"quixbugs-{name}",
        f"python_programs/{name}.py",
        f"python_testcases/test_{name}.py",
    )

    def fill(bench: Bench, folder: Path, split: str) -> Task:
        mirror = mirror_path(bench.mirrors, QUIXBUGS)
        held = git(mirror, "ls-tree", "-r", "--name-only", QUIXBUGS_COMMIT).split("\n")

        def text(file: str) -> str:
            return git(mirror, "show", f"{QUIXBUGS_COMMIT}:{file}") + "\n"

        helpers = ("conftest.py", "python_testcases/load_testdata.py", "python_testcases/node.py")
        wanted = (path, tests, *helpers, "python_programs/node.py", f"json_testcases/{name}.json")
        start = {file: text(file) for file in wanted if file in held}
        write_files(folder / "start", start)
        write_files(folder / "judge", {tests: start[tests]})
        right = {path: text(f"correct_python_programs/{name}.py")}
        return Task(
            id=task_id,
            set="fixes",
            split=split,
            words=WORDS.format(name=name, path=path),
            command=(*PYTEST, tests),
            judge_command=(*PYTEST, tests),
            must_pass=bench.passing(folder / "start", right, (*PYTEST, tests)),
            changed=(path,),
            files=(path,),
        )

    return listed(task_id, fill)
