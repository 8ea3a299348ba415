"""`cra train-plan`."""

import json

import pytest
from testing.runs.solving import Project
from tests.cli.seeded_shop import GOOD_PLAN, Mind, rows, run

from clean_room_agent.app.model_server import RECORDED_MODELS
from clean_room_agent.training.prompts import TARGET_JUDGMENT, TRAIN_PLAN
from clean_room_agent.workspace import Workspace


def test_a_plan_is_made_for_the_prompt_that_loses_most_and_stands_in_the_record(shop: Project) -> None:
    mind = Mind()
    code, told, err = run(shop, mind, "train-plan", "-o", str(shop.home / "plan.json"))
    assert code == 0, err
    assert told["waterfall"]["charged"] == {
        "retrieval": 5,
        "scope": 205,
        "precision": 0,
        "budget": 0,
        "planning": 0,
        "format": 6,
        "implement": 4,
    }
    assert mind.asked == [TARGET_JUDGMENT.title] * 2 + [TRAIN_PLAN.title], "once about nothing"
    assert told["plan"]["target"] == "scope_judgment"
    assert told["plan"]["base_model"] == "thinker:4b"
    assert told["plan"]["hyperparameters"]["rank"] == 8
    assert told["plan"]["hyperparameters"]["learning_rate"] == 1e-4
    assert told["plan"]["improvement"]["now"] == pytest.approx(1 - 205 / 440)
    assert told["plan"]["improvement"]["examples_to_see_it"] > 0
    assert json.loads((shop.home / "plan.json").read_text()) == told["plan"]
    ((mode, success, stages, final),) = rows(
        shop, "SELECT mode, success, stages, final_plan FROM task_runs WHERE mode = 'train_plan'"
    )
    assert (mode, success, stages) == ("train_plan", 1, "log_analysis")
    assert json.loads(final) == told["plan"]
    task_id = told["plan"]["task_id"]
    assert [
        tuple(row)
        for row in rows(
            shop,
            f"SELECT call_type, stage_name FROM retrieval_llm_calls WHERE task_id = '{task_id}' ORDER BY id",
        )
        if row[0] != "window_probe"
    ][-2:] == [("target_judgment", "log_analysis"), ("train_plan", "")]
    decided = rows(
        shop, f"SELECT path, included, call_id IS NULL FROM retrieval_decisions WHERE task_id = '{task_id}'"
    )
    assert ("scope_judgment", 1, 0) in [tuple(row) for row in decided]
    assert [tuple(row) for row in decided if row[0] == "implement"] == [("implement", 0, 1)]
    assert rows(shop, f"SELECT count(*) FROM session_archives WHERE task_id = '{task_id}'")[0][0] == 1
    assert not list(Workspace(repo=shop.top).sessions.glob("session_*"))


def test_a_plan_with_faults_goes_back_once_and_is_then_refused(shop: Project) -> None:
    mind = Mind({**GOOD_PLAN, "target": "implement"}, GOOD_PLAN)
    assert run(shop, mind, "train-plan")[0] == 0
    assert mind.asked.count(TRAIN_PLAN.title) == 2
    stubborn = Mind({**GOOD_PLAN, "expected": 0.01})
    code, told, _ = run(shop, stubborn, "train-plan")
    assert code == 1
    assert "is not above" in told["reason"]
    assert rows(shop, "SELECT count(*) FROM training_plans")[0][0] == 1


def test_a_refusal_says_how_many_are_missing_and_asks_no_model(shop: Project) -> None:
    mind = Mind()
    code, told, _ = run(shop, mind, "train-plan", "--target", "implement")
    assert code == 1
    assert mind.asked == []
    assert "10 failed tasks are charged to it, 200 are needed: 190 are missing" in told["reason"]
    assert "cra bootstrap" in told["reason"]
    ((success, detail),) = rows(shop, "SELECT success, detail FROM task_runs WHERE mode = 'train_plan'")
    assert success == 0
    assert "190 are missing" in detail


def test_runs_tells_of_training_plans(shop: Project) -> None:
    assert run(shop, Mind(), "train-plan", "--target", "implement")[0] == 1
    code, out, _ = shop.run_here("runs", "--limit", "1")
    assert code == 0
    assert "train-plan" in out
    assert "(a training plan)" in out


def test_what_the_record_lacks_is_told_where_no_model_can_be_asked(shop: Project) -> None:
    """As in the demo's folder, whose models are a recording."""
    shop.configure("http://127.0.0.1:1", models=RECORDED_MODELS)
    code, out, err = shop.run_here("train-plan", "--target", "implement")
    assert (code, err) == (1, "")
    assert out.startswith("no plan: implement: ")
    code, _, err = shop.run_here("train-plan")
    assert code == 2
    assert "the recording of `cra demo`" in err
