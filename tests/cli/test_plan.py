"""`cra plan`, and `cra solve` along a plan that a person has reviewed."""

import json
import shutil
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, Project, Script, edit, make_project, serving
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import ADJUSTMENT, META_PLAN, PART_PLAN


@pytest.fixture
def till(indexed: Project) -> Project:
    return indexed


@pytest.fixture(scope="module")
def planned_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A repository with a run that planned, and the plan."""
    till = make_project(tmp_path_factory.mktemp("planned"))
    path = till.home / "plan.json"
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "-o", str(path))
    assert told.code == 0, told.err
    assert told.out == ""
    assert f"cra solve --plan {path}" in told.err
    assert told.traces == {}
    assert repositories.git(till.top, "for-each-ref", "refs/cra/") == ""
    return till.top, path


@pytest.fixture
def plan(till: Project, tmp_path: Path, planned_once: tuple[Path, Path]) -> Path:
    """The plan for `till`, which is a copy of where it was made."""
    top, path = planned_once
    shutil.rmtree(till.top)
    repositories.copy_repository(top, till.top)
    return Path(shutil.copy(path, tmp_path))


def titles(server: OllamaServer) -> set[str]:
    return {call.title for call in server.calls}


def test_a_plan_names_the_task_and_the_files_and_steps(plan: Path, till: Project) -> None:
    written = json.loads(plan.read_text())
    assert written["task"] == till.task
    assert [entry["path"] for entry in written["affected_files"]] == ["till/money.py"]


def test_solve_follows_the_plan_and_plans_nothing(plan: Path, till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--plan", str(plan), "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert (answer["status"], answer["steps"]) == ("complete", {"done": 1, "total": 1})
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    assert titles(server).isdisjoint({META_PLAN.title, PART_PLAN.title, ADJUSTMENT.title})


def test_solve_starts_at_the_parts_of_the_plan(plan: Path, till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--meta-plan", str(plan))
    assert told.code == 0, told.err
    assert META_PLAN.title not in titles(server)
    assert PART_PLAN.title in titles(server)


def test_an_edited_plan_that_lost_a_field_is_refused_by_its_name(plan: Path, till: Project) -> None:
    broken = json.loads(plan.read_text())
    del broken["affected_files"]
    plan.write_text(json.dumps(broken))
    told = till.cra("solve", "--plan", str(plan))
    assert told.code == 2
    assert "affected_files" in told.err
    assert str(plan) in told.err


def test_where_no_plan_comes_of_it_the_code_is_1(till: Project, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    bad = ["no plan, sorry"] * 9
    with OllamaServer(Script(till.oracle, {META_PLAN.title: bad})) as server:
        till.configure(server.base_url, orchestrator={"plan_fallback": False})
        told = till.cra("plan", till.task, "-o", str(target))
    assert (told.code, told.out) == (1, "")
    assert "no plan" in told.err
    assert not target.exists()


HAND = """\
task = "Splitting a bill loses cents"

# a note of mine
[[steps]]
description = "Give the cents that are left over to the first people."
files = ["till/money.py"]

[[steps]]
description = "Say in the receipts what a share is."
files = ["till/receipt.py"]
"""


def test_a_plan_by_hand_is_done_step_by_step_in_its_order(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND)
    receipt = edit('lines + [f"total:', 'lines + [f"sum:', path="till/receipt.py")
    with serving(till, Script(till.oracle, {IMPLEMENT.title: [None, receipt]})) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--plan", str(path), "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert (answer["status"], answer["steps"]) == ("complete", {"done": 2, "total": 2})
    assert [entry["step_id"] for entry in answer["passes"]] == ["s1", "s2"]
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    assert "sum:" in till.branch_file("till/receipt.py").decode()
    assert titles(server).isdisjoint({META_PLAN.title, PART_PLAN.title, ADJUSTMENT.title})


def test_a_fault_in_a_plan_by_hand_ends_before_anything_is_done(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND.replace('"till/receipt.py"', '"receipt.py"'))
    told = till.cra("solve", "--plan", str(path))
    assert (told.code, told.traces) == (2, {})
    assert f"{path}: steps[2].files: receipt.py does not exist; write 'till/receipt.py'" in told.err


def test_a_plan_in_toml_has_its_steps_to_edit(till: Project, tmp_path: Path) -> None:
    target = tmp_path / "plan.toml"
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "-o", str(target))
        assert told.code == 0, told.err
        target.write_text(target.read_text().replace('description = "', 'description = "Carefully: '))
        told = till.cra("solve", "--plan", str(target), "--json")
    assert (told.code, json.loads(told.out)["steps"]) == (0, {"done": 1, "total": 1}), told.err
