"""The tests of a clone, run on answers: in a work tree of its own, in the sandbox that a run's tests have."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from clean_room_agent.git.commits import commit_files
from clean_room_agent.git.included import included_files
from clean_room_agent.git.repository import Repository, author_of
from clean_room_agent.git.worktree import add_worktree, remove_worktree
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.shelter import Ground, make_shelter
from clean_room_agent.orchestrator.testbench import TestBench
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.training.edit_steps import Changes, RunTests

MESSAGE = "An answer under evaluation\n"


class _Nobody:
    """Watches no run."""

    def notice(self, event: Event) -> None:
        """Nothing is done with it."""
        del event


@contextlib.contextmanager
def opened_tests(
    repo: Repository, ground: Ground, place: Path, task_id: str, environment: Mapping[str, str]
) -> Iterator[RunTests]:
    """What runs the repository's test command, in a work tree at `place`, which is gone afterwards.

    Raises:
        ConfigError: there can be no sandbox, and one is wanted.
        GitError: there can be no work tree.
    """
    worktree = add_worktree(repo, repo.head, place, task_id)
    report = place.with_name(f"{place.name}-reports") / "results.xml"
    try:
        shelter = make_shelter(ground, worktree, environment, report)
        bench = TestBench(
            config=ground.testing,
            worktree=worktree,
            repo_top=repo.top,
            inherited=environment,
            report=report,
            keep=ground.worktree.link,
            observer=_Nobody(),
            sandbox=shelter.sandbox,
            included=included_files(repo),
            copies=shelter.copies,
        )

        def run(commit: str, changes: Changes) -> TestRun:
            bench.checkout(commit_files(repo, commit, changes, MESSAGE, author_of(repo)))
            return bench.run_all("answer")

        yield run
    finally:
        remove_worktree(worktree)
        shutil.rmtree(report.parent, ignore_errors=True)
