"""Runs the tests of a clone on an answer, in a worktree and the sandbox of a run."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from clean_room_agent.git.commits import commit_files
from clean_room_agent.git.repository import Repository, author_of
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.sandbox_setup import SandboxInputs
from clean_room_agent.orchestrator.testing.worktree_pool import RunnerSetup, WorktreePool
from clean_room_agent.training.edit_steps import Changes, RunTests

MESSAGE = "An answer under evaluation\n"


@contextlib.contextmanager
def opened_tests(
    repo: Repository, sandbox_inputs: SandboxInputs, place: Path, task_id: str, environment: Mapping[str, str]
) -> Iterator[RunTests]:
    """A function that runs the repository's test command, in a worktree at `place` that is deleted afterwards.

    Raises:
        ConfigError: there can be no sandbox, and one is wanted.
        GitError: there can be no work tree.
    """
    setup = RunnerSetup(repo=repo, sandbox_inputs=sandbox_inputs, environment=environment, place=place)
    with WorktreePool(setup, task_id, Nobody()).open(repo.head) as pool:
        runner = pool.first

        def run(commit: str, changes: Changes) -> TestRun:
            runner.checkout(commit_files(repo, commit, changes, MESSAGE, author_of(repo)))
            return runner.run_all("answer")

        yield run
