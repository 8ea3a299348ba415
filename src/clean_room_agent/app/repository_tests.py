"""How a repository runs its tests, judging by its files, for `cra init`: by its runners, or by tools that start these."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clean_room_agent.languages.ecmascript.package_json import SCRIPT_TEST, command_of, imports_in_tests
from clean_room_agent.languages.jsonc import as_object
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_runners import TEST_RUNNERS

RECIPES = ("test", "tests", "check")
"""Targets and recipes, the likeliest first."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
TASK = re.compile(r"^(?:  |    |\t)(\w+):", re.MULTILINE)
NOX_SESSION = re.compile(r"^def (tests?|unit_tests?|unit|pytest)\(", re.MULTILINE)


def find_test_commands(top: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """The commands that run the tests of the repository at `top`, whose files are `paths` (relative): for each of the tools that
    it uses, the most direct first. Empty if the files don't show any.
    """
    files = RepositoryFiles(top, paths)
    finders = (*(runner.detect for runner in TEST_RUNNERS), *TOOLS)
    return tuple(dict.fromkeys(filter(None, (find(files) for find in finders))))


def _ava(files: RepositoryFiles) -> str:
    return command_of(files, "ava", "ava")


def _bun(files: RepositoryFiles) -> str:
    return "bun test" if imports_in_tests(files, "bun:test") else ""


def _deno(files: RepositoryFiles) -> str:
    name = files.first(("deno.json", "deno.jsonc"))
    if not name:
        return ""
    if "test" in as_object(files.package(name).get("tasks")):
        return "deno task test"
    return "deno test" if any(map(SCRIPT_TEST.search, files.paths)) else ""


def _make(files: RepositoryFiles) -> str:
    heads = _heads(files.text(files.first(MAKEFILES)))
    target = _likeliest(word for head in heads if "=" not in head for word in head.split())
    return f"make {target}" if target else ""


def _just(files: RepositoryFiles) -> str:
    heads = _heads(files.text(files.first(JUSTFILES)))
    recipe = _likeliest(word.removeprefix("@") for head in heads for word in head.split()[:1])
    return f"just {recipe}" if recipe else ""


def _heads(text: str) -> Iterator[str]:
    """What stands before the colon of each rule of a Makefile or justfile."""
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if colon and not rest.startswith("=") and not line.startswith((" ", "\t", "#")):
            yield head


def _task(files: RepositoryFiles) -> str:
    name = _likeliest(TASK.findall(files.text(files.first(TASKFILES))))
    return f"task {name}" if name else ""


def _likeliest(names: Iterator[str] | list[str]) -> str:
    known = set(names)
    return next((name for name in RECIPES if name in known), "")


def _nox(files: RepositoryFiles) -> str:
    if "noxfile.py" not in files.paths:
        return ""
    session = NOX_SESSION.search(files.text("noxfile.py"))
    return f"nox -s {session[1]}" if session else "nox"


def _tox(files: RepositoryFiles) -> str:
    is_used = files.first(("tox.ini", "tox.toml")) or "tox" in files.tools
    return "tox -q" if is_used or "[tox:tox]" in files.text("setup.cfg") else ""


def _cargo(files: RepositoryFiles) -> str:
    return "cargo test" if "Cargo.toml" in files.paths else ""


TOOLS: tuple[Callable[[RepositoryFiles], str], ...] = (
    _ava,
    _bun,
    _deno,
    _cargo,
    _make,
    _just,
    _task,
    _nox,
    _tox,
)
"""What looks for one kind of tool each whose results are not read; a recipe may start any of those before it."""
