"""A whole run where environments and packages stand untracked, yet not ignored, and the tests need them."""

import json
import sys
from pathlib import Path

from testing.repositories import git, read_tree, write
from testing.runs.solving import TILL, make_project

CHECK = f"""\
#!/bin/sh
test -f node_modules/left/index.js && test -f .worktree-note/node_modules/a.js && exec {sys.executable} -m unittest -v
"""


def test_untracked_environments_are_linked_as_ignored_ones_are(tmp_path: Path) -> None:
    project = make_project(
        tmp_path,
        {**TILL, ".worktreeinclude": ".worktree-note/node_modules/\n"},
        test_command="sh .venv/bin/check",
    )
    write(
        project.top,
        {
            ".venv/pyvenv.cfg": "home = /usr\n",
            ".venv/bin/check": CHECK,
            ".venv/lib/six.py": "def split(cents, people):\n    return []\n",
            "node_modules/left/index.js": "module.exports = 1\n",
            ".worktree-note/node_modules/a.js": "1\n",
        },
    )
    told = project.solve_scripted(None, "--apply", "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert answer["generated"] == [
        {"path": ".venv", "what": "a Python environment"},
        {"path": ".worktree-note/node_modules", "what": "installed packages"},
        {"path": "node_modules", "what": "installed packages"},
    ]
    assert told.err.count("left out, made by tools and not tracked: .venv/ (a Python environment)") == 1
    assert "nothing uncommitted" in told.err
    assert (answer["carries_uncommitted"], answer["applied"]) == (False, ["till/money.py"])
    assert set(read_tree(project.top, answer["branch"])) == {*TILL, ".worktreeinclude"}
    assert git(project.top, "status", "--porcelain", "till").split() == ["M", "till/money.py"]
    shown = json.loads(project.cra("show", answer["task_id"], "--json").out)
    assert shown["run"]["generated"] == answer["generated"]
    assert (
        "made by tools: .venv, .worktree-note/node_modules, node_modules"
        in project.cra("show", answer["task_id"]).out
    )
