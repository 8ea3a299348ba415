"""Names that come from a record or a file, and how they reach git: as names of objects, or not at all."""

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clean_room_agent.errors import CraError
from clean_room_agent.git import history, log, refs, worktree
from clean_room_agent.git.commits import commit_files
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import ParentCheckout

SOURCE = Path(log.__file__).parent
ENDS = frozenset({"--", "--end-of-options"})
GIT = frozenset({"git", "stream_git", "Answer", "_read_objects", "_read_once", "_ask_counts"})

GIVEN: dict[str, Callable[[Repository, str], object]] = {
    "diff": lambda repo, name: history.diff(repo, name, repo.head),
    "diff, its end": lambda repo, name: history.diff_bytes(repo, repo.head, name),
    "changed paths": lambda repo, name: history.changed_paths(repo, name, repo.head),
    "counts": lambda repo, name: history.diff_stat(repo, repo.head, name),
    "blob": lambda repo, name: history.read_blob(repo, name, "a.py"),
    "object": history.read_object,
    "tree": history.list_tree,
    "ref": lambda repo, name: refs.update_ref(repo, "refs/cra/t/x", name, expected=""),
    "ref, what it was": lambda repo, name: refs.update_ref(
        repo, "refs/cra/t/x", repo.head, expected=name or "0"
    ),
    "kept": lambda repo, name: refs.keep_commit(repo, "refs/heads/main", name),
    "branch": lambda repo, name: refs.create_branch(repo, "cra/x", name),
    "synced": refs.sync_commit,
    "commit": lambda repo, name: commit_files(repo, name, {}, "m"),
    "changes": lambda repo, name: list(log.stream_changes(repo.git_dir, name)),
    "walk": lambda repo, name: list(log.walk(repo.top, name)),
    "work tree": lambda repo, name: worktree.add_worktree(repo, name, repo.top.parent / "new", "t"),
    "checkout": lambda repo, name: ParentCheckout(repo.git_dir, repo.top.parent / "new").show(name),
}
ODD = ("--output={}", "-o{}", "HEAD", "main", "", "0" * 39, "g" * 40, "a" * 41, "a" * 40 + "\n", "A" * 40)


@pytest.mark.parametrize("what", GIVEN)
def test_what_is_no_name_of_an_object_does_not_reach_git(repo: Repository, tmp_path: Path, what: str) -> None:
    target = tmp_path / "written"
    for name in ODD:
        with pytest.raises(CraError, match="not the name of an object"):
            GIVEN[what](repo, name.format(target))
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    assert not target.exists()


def test_a_commit_that_is_no_name_is_not_there(repo: Repository, tmp_path: Path) -> None:
    assert not history.has_commit(repo, f"--output={tmp_path / 'written'}")
    assert not (tmp_path / "written").exists()


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in GIT:
                yield node


def is_fixed(node: ast.expr, before: ast.expr | None) -> bool:
    """Whether the argument is written down here, or is the value of an option that is."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.JoinedStr):
        first = node.values[0]
        return isinstance(first, ast.Constant) and str(first.value).startswith(("--", "refs/", "^", "cra "))
    if isinstance(node, ast.Starred):
        return True  # tuples of options, looked at where they are made; what follows must be ended
    return isinstance(before, ast.Constant) and before.value in {
        "-p",
        "--contains",
        "--file",
        "-c",
        "--get-regexp",
    }


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.py")), ids=lambda path: path.name)
def test_every_call_ends_its_options_before_what_it_was_given(path: Path) -> None:
    checked = {"require_hex"}
    for call in calls(ast.parse(path.read_text(encoding="utf-8"))):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = (
            call.args[2:]
            if name == "_read_objects"
            else call.args[1:]
            if name in {"_read_once", "_ask_counts"}
            else call.args
        )
        before: ast.expr | None = None
        for argument in given:
            if isinstance(argument, ast.Constant) and argument.value in ENDS:
                break
            is_checked = isinstance(argument, ast.Call) and getattr(argument.func, "id", "") in checked
            assert is_checked or is_fixed(argument, before), f"{path.name}:{argument.lineno}"
            before = argument
