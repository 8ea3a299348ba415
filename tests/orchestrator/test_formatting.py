"""The repository's formatter, in whole runs: what it does to a result, and what it cannot do."""

import sys
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, TILL, Project, make_project

FORMATTER = """\
import pathlib, sys
for name in sys.argv[2:]:
    path = pathlib.Path(name)
    path.write_text({new})
{more}
"""
COMMENT = '"# formatted\\n" + path.read_text()'
ELSEWHERE = """\
for name in ("till/receipt.py", "new.py"):
    pathlib.Path(name).write_text("broken(")"""


def project(tmp_path: Path, new: str = COMMENT, more: str = "") -> Project:
    return make_project(tmp_path, {**TILL, "fmt.py": FORMATTER.format(new=new, more=more)})


def formatted_by(till: Project) -> tuple[str, list[str], dict[str, bytes]]:
    """The line about it, the subjects of the branch's commits, and the branch's files."""
    command = f"{sys.executable} fmt.py --write"
    told = till.solve_scripted(testing={"format_command": command})
    assert (told.code, told.traces, told.recorded.ending) == (0, {}, ("complete", "")), told.err
    (line,) = [row.detail for row in told.recorded.events if row.kind == "formatted"]
    assert f"note: {line}" in told.err
    (branch,) = told.branches
    log = repositories.git(till.top, "log", "--format=%s", f"main..{branch}").splitlines()
    return line, log, repositories.read_tree(till.top, branch)


def test_the_changed_files_are_formatted_in_a_commit_of_its_own(tmp_path: Path) -> None:
    till = project(tmp_path, more=ELSEWHERE)
    line, log, files = formatted_by(till)
    assert line.startswith("formatted till/money.py by ")
    assert line.endswith("; it also changed till/receipt.py, which stays as it was")
    assert log[0] == "Format what was changed"
    assert len(log) == 2
    before = repositories.read_tree(till.top, "HEAD")
    assert files == {**before, "till/money.py": b"# formatted\n" + MENDED_MONEY.encode()}
    replayed = till.cra("replay", "@")
    assert replayed.code == 0, replayed.err


@pytest.mark.parametrize(
    ("new", "more", "said"),
    [
        (COMMENT, 'print("no such style"); sys.exit(3)', ": no such style"),
        ('"def split("', "", "nothing is formatted: then "),
        (COMMENT, "path.unlink()", "left of till/money.py: "),
    ],
)
def test_a_formatter_that_fails_does_no_harm(tmp_path: Path, new: str, more: str, said: str) -> None:
    till = project(tmp_path, new, more)
    line, log, files = formatted_by(till)
    assert said in line
    assert len(log) == 1
    assert files["till/money.py"].decode() == MENDED_MONEY
