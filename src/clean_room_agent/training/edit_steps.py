"""Scores edits step by step: they apply, the result parses, its tests pass.

The files are those of the commit that a prompt was made from, read from a clone that has it. Tests are run if that
clone's configuration says how. They pass if none fails that passes with the right answer: tests that fail anyway do not
count. Example, with tests: 0 does not apply, 1/3 does not parse, 2/3 fails, 1 passes. Without: 0, 1/2, 1.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.context import BudgetAccount, ContextPackage
from clean_room_agent.artifacts.edits import EditCode, EditReport, PatchEdit
from clean_room_agent.artifacts.plans import FileRole, TargetFile
from clean_room_agent.errors import CraError
from clean_room_agent.execute.edits.apply import apply_edits, paths_named
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.git.commits import FileChange, commit_files
from clean_room_agent.git.history import has_commit
from clean_room_agent.git.repository import Repository, author_of, open_repository
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.worktrees import RunnerSetup, SandboxInputs, WorktreePool
from clean_room_agent.training.dataset import Row

APPLIES, PARSES, PASSES = 1, 2, 3
"""Steps that an answer has reached; 0 is none."""
Changes = Mapping[str, FileChange | None]
RunTests = Callable[[str, Changes], TestRun]
"""Runs a clone's test command on a commit with these files changed."""


class Clone(Struct, frozen=True, kw_only=True):
    """A repository on this machine that rows may come from."""

    repo: Repository
    run_tests: RunTests | None = None
    why_untested: str = ""
    """Why `run_tests` is missing."""


class EditSteps:
    """Scores edits. A clone's tests are run once for the right answer and once for each different result."""

    def __init__(self, clones: Iterable[Clone] = ()) -> None:
        """`clones` are searched in order, and then the repository that a row's `repo` names, if that is a path."""
        self._clones = tuple(clones)
        self._right: dict[str, TestRun | str] = {}
        """Of each row, its right answer's tests, or why they tell nothing."""
        self._runs: dict[tuple[str, str, str], TestRun] = {}

    def fault(self, row: Row, wanted: tuple[PatchEdit, ...]) -> str:
        """Why no answer can be scored; "" if answers can. This runs the tests with the right answer."""
        clone = self._clone(row)
        if clone is None:
            return "no clone here has the commit that its prompt was made from"
        changes = _result(clone, row, wanted, wanted)
        if isinstance(changes, int):
            return "its right answer does not apply"
        self._right[row.id] = self._judged(clone, row, changes)
        return ""

    def limit(self, row: Row) -> str:
        """Why tests are not part of the row's score; "" if they are."""
        found = self._right[row.id]
        return f"tests not run: {found}" if isinstance(found, str) else ""

    def score(self, row: Row, wanted: tuple[PatchEdit, ...], answer: tuple[PatchEdit, ...]) -> float:
        """The share of the steps that the answer reaches."""
        clone, right = self._clone(row), self._right[row.id]
        assert clone is not None
        steps = PARSES if isinstance(right, str) else PASSES
        changes = _result(clone, row, wanted, answer)
        if isinstance(changes, int):
            return changes / steps
        if isinstance(right, str) or _as_good(self._run(clone, row, changes), right):
            return 1.0
        return PARSES / steps

    def _judged(self, clone: Clone, row: Row, changes: Changes) -> TestRun | str:
        if clone.run_tests is None:
            return clone.why_untested
        run = self._run(clone, row, changes)
        if not run.report.whole:
            return f"with the right answer, {run.report.problem or 'they do not come to their end'}"
        if not run.report.named and run.end.returncode != 0:
            return "they fail with the right answer, and the report does not say which"
        return run

    def _run(self, clone: Clone, row: Row, changes: Changes) -> TestRun:
        assert clone.run_tests is not None
        key = (str(clone.repo.top), row.origin.commit, repr(sorted(changes.items())))
        if key not in self._runs:
            self._runs[key] = clone.run_tests(row.origin.commit, changes)
        return self._runs[key]

    def _clone(self, row: Row) -> Clone | None:
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
        why = "name its clone with --clone, and a test_command in that clone's configuration"
        return Clone(repo=repo, why_untested=why) if has_commit(repo, commit) else None


def _result(
    clone: Clone, row: Row, wanted: tuple[PatchEdit, ...], answer: tuple[PatchEdit, ...]
) -> Changes | int:
    """The files after the answer's edits, which may only change files that the right answer edits; or the step at which
    the answer failed.
    """
    tree = Tree(repo=clone.repo, commit=row.origin.commit)
    roles: dict[str, FileRole] = {
        edit.file_path: edit.kind if edit.kind in {"create", "delete"} else "modify" for edit in wanted
    }
    targets = tuple(TargetFile(path=path, role=role) for path, role in roles.items())
    texts, _ = tree.texts(paths_named(answer))
    nothing = ContextPackage(pass_id="", task="", items=(), budget=NO_BUDGET)
    applied = apply_edits(answer, texts, nothing, EditRules(targets=targets))
    if not applied.result.success:
        refused = {report.code for report in applied.result.reports if not report.code.accepted}
        return APPLIES if refused <= {EditCode.SYNTAX, EditCode.UNDEFINED} else 0
    changes = tree.encode(applied.texts)
    return 0 if isinstance(changes, EditReport) else changes


def _as_good(run: TestRun, right: TestRun) -> bool:
    """Whether every test that passes with the right answer passes."""
    if not run.report.whole:
        return False
    if run.report.named and right.report.named:
        return run.red() <= right.red() and right.green() <= run.green()
    return run.end.returncode == 0


NO_BUDGET = BudgetAccount(context_window=0, reserved_tokens=0, used_tokens=0)


MESSAGE = "An answer under evaluation\n"


@contextlib.contextmanager
def opened_tests(
    repo: Repository, sandbox_inputs: SandboxInputs, place: Path, task_id: str, environment: Mapping[str, str]
) -> Iterator[RunTests]:
    """A function that runs the repository's test command, in a worktree at `place` that is deleted afterwards.

    Raises:
        ConfigError: a sandbox is configured, but not possible.
        GitError: the worktree cannot be created.
    """
    setup = RunnerSetup(repo=repo, sandbox_inputs=sandbox_inputs, environment=environment, place=place)
    with WorktreePool(setup, task_id, Nobody()).open(repo.head) as pool:
        runner = pool.first

        def run(commit: str, changes: Changes) -> TestRun:
            runner.checkout(commit_files(repo, commit, changes, MESSAGE, author_of(repo)))
            return runner.run_all("answer")

        yield run
