"""`cra plan`, and `cra solve` along a plan that a person has reviewed."""

import json
from pathlib import Path

import pytest
from tests.fakes import repositories
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.solving import MENDED_MONEY, Project, Script, serving

from clean_room_agent.execute.prompts.adjustment import ADJUSTMENT
from clean_room_agent.execute.prompts.meta_plan import META_PLAN
from clean_room_agent.execute.prompts.part_plan import PART_PLAN


@pytest.fixture
def plan(till: Project, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "-o", str(path))
    assert told.code == 0, told.err
    assert told.out == ""
    assert f"cra solve --plan {path}" in told.err
    assert told.traces == {}
    assert repositories.git(till.top, "for-each-ref", "refs/cra/") == ""
    return path


def titles(server: OllamaServer) -> set[str]:
    return {call.title for call in server.calls}


def test_a_plan_names_the_task_and_the_files_and_steps(plan: Path, till: Project) -> None:
    written = json.loads(plan.read_text())
    assert written["task"] == till.task
    assert [entry["path"] for entry in written["affected_files"]] == ["till/money.py"]


def test_without_a_file_the_plan_is_the_answer(till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task)
    assert json.loads(told.out)["task"] == till.task


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


def test_the_two_ways_exclude_one_another(plan: Path, till: Project) -> None:
    told = till.cra("solve", "--plan", str(plan), "--meta-plan", str(plan))
    assert told.code == 2
    assert "exclude one another" in told.err


def test_an_edited_plan_that_lost_a_field_is_refused_by_its_name(plan: Path, till: Project) -> None:
    broken = json.loads(plan.read_text())
    del broken["affected_files"]
    plan.write_text(json.dumps(broken))
    told = till.cra("solve", "--plan", str(plan))
    assert told.code == 2
    assert "affected_files" in told.err
    assert str(plan) in told.err


def test_a_file_that_is_not_there_is_named(till: Project) -> None:
    till.configure("http://127.0.0.1:1")
    told = till.cra("solve", "--plan", "nowhere.json")
    assert told.code == 2
    assert "nowhere.json" in told.err


def test_where_no_plan_comes_of_it_the_code_is_1(till: Project, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    bad = ["no plan, sorry"] * 9
    with OllamaServer(Script(till.oracle, {META_PLAN.title: bad})) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "-o", str(target))
    assert (told.code, told.out) == (1, "")
    assert "no plan" in told.err
    assert not target.exists()
