"""Scores edits step by step: they apply, the result parses, its tests pass.

The files are those of the commit that a prompt was made from, read from a clone that has it. Tests are run if that
clone's configuration says how. They pass if none fails that passes with the right answer: tests that fail anyway do not
count. Example, with tests: 0 does not apply, 1/3 does not parse, 2/3 fails, 1 passes. Without: 0, 1/2, 1.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.context import BudgetAccount, ContextPackage
from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import FileRole, TargetFile
from clean_room_agent.errors import CraError
from clean_room_agent.execute.edits.apply import apply_edits, paths_named
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.file_contents import NotTextError, TextFile, decode
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import has_commit, list_tree, read_object
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.training.dataset import TrainingRow

APPLIES, PARSES, PASSES = 1, 2, 3
"""Steps that an answer has reached; 0 is none."""
REGULAR = "100644"
NAME_CLONE = "name its clone with --clone, and a test_command in that clone's configuration"
Changes = Mapping[str, FileChange | None]


class Tested(Struct, frozen=True, kw_only=True):
    """How the tests of a clone ended."""

    problem: str
    """Why they did not come to their end; "" if they did."""
    exit_code: int
    red: frozenset[str] | None
    """The tests that failed; None if the report names none."""
    green: frozenset[str]

    def is_as_good_as(self, right: "Tested") -> bool:
        """Whether every test that passes with the right answer passes."""
        if self.problem:
            return False
        if self.red is not None and right.red is not None:
            return self.red <= right.red and right.green <= self.green
        return self.exit_code == 0


class Clone(Struct, frozen=True, kw_only=True):
    """A repository on this machine that rows may come from."""

    repo: Repository
    run_tests: Callable[[str, Changes], Tested] | None = None
    """Runs its test command on a commit with these files changed."""
    why_untested: str = ""
    """Why `run_tests` is missing."""


class EditScorer(Struct, frozen=True, kw_only=True):
    """Scores answers to one row."""

    limit: str
    """Why tests are not part of the score; "" if they are."""
    score: Callable[[tuple[PatchEdit, ...]], float]
    """The share of the steps that an answer reaches."""


class EditSteps:
    """Scores edits. A clone's tests are run once for the right answer and once for each different result."""

    def __init__(self, clones: Iterable[Clone] = ()) -> None:
        """`clones` are searched in order, and then the repository that a row's `repo` names, if that is a path."""
        self._clones = tuple(clones)

    def scorer(self, row: TrainingRow, wanted: tuple[PatchEdit, ...]) -> EditScorer | str:
        """What scores answers to the row, or why none can be scored. This runs the tests with the right answer."""
        clone, commit = self._find_clone(row), row.origin.commit
        if clone is None:
            return "no clone here has the commit that its prompt was made from"
        changes = _apply_answer(clone.repo, commit, wanted, wanted)
        if isinstance(changes, int):
            return "its right answer does not apply"
        tested = clone.run_tests

        @cache
        def run(result: tuple[tuple[str, FileChange | None], ...]) -> Tested:
            assert tested is not None
            return tested(commit, dict(result))

        limit = clone.why_untested
        right: Tested | None = None
        if tested is not None:
            right = run(tuple(sorted(changes.items())))
            if right.problem:
                limit = f"with the right answer, {right.problem}"
            elif right.red is None and right.exit_code != 0:
                limit = "they fail with the right answer, and the report does not say which"

        def score(answer: tuple[PatchEdit, ...]) -> float:
            steps = PARSES if limit or right is None else PASSES
            result = _apply_answer(clone.repo, commit, wanted, answer)
            if isinstance(result, int):
                return result / steps
            if limit or right is None or run(tuple(sorted(result.items()))).is_as_good_as(right):
                return 1.0
            return PARSES / steps

        return EditScorer(limit=limit and f"tests not run: {limit}", score=score)

    def _find_clone(self, row: TrainingRow) -> Clone | None:
        commit = row.origin.commit
        if not commit:
            return None
        for clone in self._clones:
            if has_commit(clone.repo, commit):
                return clone
        try:
            repo = open_repository(Path(row.origin.repo))
        except CraError:
            return None
        return Clone(repo=repo, why_untested=NAME_CLONE) if has_commit(repo, commit) else None


def _apply_answer(
    repo: Repository, commit: str, wanted: tuple[PatchEdit, ...], answer: tuple[PatchEdit, ...]
) -> Changes | int:
    """The files after the answer's edits, all of files that the right answer edits; or the step at which it failed."""
    roles: dict[str, FileRole] = {
        edit.file_path: edit.kind if edit.kind in {"create", "delete"} else "modify" for edit in wanted
    }
    targets = tuple(TargetFile(path=path, role=role) for path, role in roles.items())
    entries = list_tree(repo, commit)
    files: dict[str, TextFile] = {}
    for path in paths_named(answer):
        if path in entries and entries[path].kind == "blob":
            try:
                files[path] = decode(read_object(repo, entries[path].object_name))
            except NotTextError:
                continue
    budget = BudgetAccount(context_window=0, reserved_tokens=0, used_tokens=0)
    nothing = ContextPackage(pass_id="", task="", items=(), budget=budget)
    texts = {path: file.text for path, file in files.items()}
    applied = apply_edits(answer, texts, nothing, EditRules(targets=targets))
    if not applied.result.success:
        refused = {report.code for report in applied.result.reports if not report.code.accepted}
        return APPLIES if refused <= {EditCode.SYNTAX, EditCode.UNDEFINED} else 0
    changes: dict[str, FileChange | None] = {}
    for path, text in applied.texts.items():
        mode = entries[path].mode if path in entries else REGULAR
        try:
            data = None if text is None else files.get(path, decode(b"")).encode(text)
        except NotTextError:
            return 0
        changes[path] = None if data is None else FileChange(data=data, mode=mode)
    return changes
