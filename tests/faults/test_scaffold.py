"""A run whose step creates a file, as a command: what it shows and leaves. What becomes of declarations, and that a run goes on
after them and replays, is said in tests/orchestrator/steps/test_scaffolded_steps.py.
"""

from pathlib import Path

import pytest
from testing.repositories import git
from testing.runs.bills import ALWAYS, BILLS, BILLS_PATH, STUBS, bills_project, events_of
from testing.runs.solving import Project, Told

from clean_room_agent.execute.scaffold import SCAFFOLD

MADE = "it creates till/bills.py; it parses and imports; stubs: " + ", ".join(
    f"{BILLS_PATH}::{symbol}" for symbol in STUBS
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return bills_project(tmp_path)


def check_solved(project: Project, told: Told) -> None:
    assert (told.code, told.recorded.ending, told.traces) == (0, ("complete", ""), {}), told.err
    assert project.branch_file(BILLS_PATH).decode() == BILLS


def test_declarations_and_bodies_are_one_commit_and_both_are_shown(project: Project) -> None:
    told = project.solve_scripted(solve=ALWAYS)
    check_solved(project, told)
    assert events_of(told) == [("scaffold", MADE)]
    (branch,) = told.branches
    assert git(project.top, "rev-list", "--count", f"HEAD..{branch}").strip() == "1"
    assert f"scaffold: {MADE}" in project.run_here("show")[1]
    one = project.run_here("show", "@/p1/s1/1")[1]
    assert f"scaffold: {MADE}" in one
    assert " scaffold " in one
    assert SCAFFOLD.title in project.run_here("show", "@/p1/s1/1", "--prompt")[1]
