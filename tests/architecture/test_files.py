"""What every file of the repository keeps to."""

import ast
import os
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import git
from tests.architecture.syntax_trees import nodes

from clean_room_agent import proc

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 600
MAX_FUNCTION = 80
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
REGISTRIES = re.compile(
    r"(?:pypi|pythonhosted|npmjs|yarnpkg|rubygems|golang|crates|conda|anaconda)\.(?:org|com|io)\b"
)
WORKPLACE = re.compile("(?<![\\w.<])/" + "(?:work|tmp/e2e|work/venv)/")
"""Where this was written is nobody's business; written so that this file does not hold it."""
README_COMMANDS = ("demo", "tests")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    """The files that git knows, without binaries' bytes being looked at; needs a clone, which is what is checked."""
    return [ROOT / name for name in git(ROOT, "ls-files", "-z").split("\0") if name]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def in_protocol(path: Path) -> set[int]:
    """Lines that stand in classes which only say what others do."""
    lines: set[int] = set()
    for node in nodes(path):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def is_empty(body: list[ast.stmt]) -> bool:
    """Whether nothing is done: a docstring, `pass`, `...`, or an exception that says it is not written yet."""
    for statement in body:
        if isinstance(statement, ast.Pass):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Raise) and "NotImplemented" in ast.unparse(statement):
            continue
        return False
    return True


def test_no_source_file_is_longer_than_a_person_reads_at_once() -> None:
    counts = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: count for name, count in counts.items() if count > MAX_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{relative(path)}:{node.name}": length
        for path in SOURCES
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION
    }
    assert long == {}


def test_init_files_are_empty() -> None:
    assert [relative(path) for path in SOURCES if path.name == "__init__.py" and path.read_bytes()] == []


def test_no_function_waits_to_be_written() -> None:
    empty = [
        f"{relative(path)}:{node.name}"
        for path in SOURCES
        for node in functions(path)
        if is_empty(node.body) and not node.decorator_list and node.lineno not in in_protocol(path)
    ]
    assert empty == []


def test_no_comment_puts_something_off() -> None:
    found: list[str] = []
    for path in SOURCES:
        if not UNFINISHED.search(path.read_text(encoding="utf-8")):
            continue  # to take all files apart takes seconds
        with path.open("rb") as file:
            comments = (token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT)
            lines = [token.start[0] for token in comments if UNFINISHED.search(token.string)]
        found += [f"{relative(path)}:{line}" for line in lines]
    assert found == []


def test_no_file_names_a_package_registry_or_the_place_where_it_was_written() -> None:
    found = [
        f"{relative(path)}: {match[0]}"
        for path in tracked()
        if path.is_file()
        for pattern in (REGISTRIES, WORKPLACE)
        for match in pattern.finditer(path.read_text(encoding="utf-8", errors="replace"))
        if path != Path(__file__)
    ]
    assert found == []


@pytest.mark.parametrize("name", README_COMMANDS)
def test_what_ci_runs_is_the_command_of_the_readme(name: str) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = re.search(r"^readme_command\(\) \{\n.*?^\}$", script, re.MULTILINE | re.DOTALL)
    assert function is not None
    command = ("bash", "-euo", "pipefail", "-c", f'{function[0]}\nreadme_command "$0"', name)
    extracted = proc.run(
        command, cwd=ROOT, env={"PATH": os.environ["PATH"]}, timeout=PATIENCE
    ).stdout.decode()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"^<!-- {name} -->\n```sh\n(.*?)```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert extracted == block[1]
    assert extracted.count("\n") == 1, "one line that can be pasted"
    assert re.search(rf"run_readme_command {name}$", script, re.MULTILINE)


def test_the_readme_has_no_other_marked_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^<!-- (\w+) -->$", readme, re.MULTILINE)) == README_COMMANDS


def test_every_page_that_the_readme_links_to_is_there() -> None:
    for page in ("README.md", "planning/architecture.md", "planning/pipeline.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
        assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []
