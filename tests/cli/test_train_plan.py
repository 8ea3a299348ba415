"""`cra train-plan`, which asks no model."""

import json

import pytest
from testing.runs.solving import Project
from tests.cli.seeded_shop import rows, run


def test_a_plan_is_made_for_the_prompt_that_loses_most_and_stands_in_the_record(shop: Project) -> None:
    code, told, err = run(shop, "train-plan", "-o", str(shop.home / "plan.json"))
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
    assert told["plan"]["target"] == "scope_judgment"
    assert told["plan"]["base_model"] == "thinker:4b"
    assert told["plan"]["hyperparameters"]["rank"] == 8
    assert told["plan"]["hyperparameters"]["learning_rate"] == 1e-4
    gain = told["plan"]["improvement"]
    assert gain["now"] == pytest.approx(1 - 205 / 440)
    assert gain["now"] < gain["expected"] < 1
    assert gain["examples_to_see_it"] > 0
    assert json.loads((shop.home / "plan.json").read_text()) == told["plan"]
    ((success, final),) = rows(shop, "SELECT success, final_plan FROM task_runs WHERE mode = 'train_plan'")
    assert success == 1
    assert json.loads(final) == told["plan"]
    assert rows(shop, "SELECT count(*) FROM training_plans")[0][0] == 1


def test_a_refusal_says_how_many_are_missing(shop: Project) -> None:
    code, told, _ = run(shop, "train-plan", "--target", "implement")
    assert code == 1
    assert "10 failed tasks are charged to it, 200 are needed: 190 are missing" in told["reason"]
    assert "cra bootstrap" in told["reason"]
    ((success, detail),) = rows(shop, "SELECT success, detail FROM task_runs WHERE mode = 'train_plan'")
    assert success == 0
    assert "190 are missing" in detail
    code, out, _ = shop.run_here("runs", "--limit", "1")
    assert code == 0
    assert "train-plan" in out
    assert "(a training plan)" in out
