import sqlite3

from tests.db.raw.samples import sample

from clean_room_agent.db.raw import training


def test_an_adapter_is_traced_to_its_data_its_comparison_and_its_deployment(conn: sqlite3.Connection) -> None:
    plan_id = training.TRAINING_PLANS.insert(conn, sample(training.TrainingPlanRow))
    dataset_id = training.TRAINING_DATASETS.insert(
        conn, sample(training.DatasetRow, training_plan_id=plan_id)
    )
    adapter_id = training.ADAPTER_REGISTRY.insert(conn, sample(training.AdapterRow, dataset_id=dataset_id))
    training.ADAPTER_EVALUATIONS.insert(conn, sample(training.EvaluationRow, adapter_id=adapter_id))
    training.ADAPTER_DEPLOYMENTS.insert(conn, sample(training.DeploymentRow, adapter_id=adapter_id))
    training.ADAPTER_REGISTRY.update(conn, adapter_id, deployed=True)
    adapter = training.get_adapter(conn, adapter_id)
    assert adapter is not None
    assert adapter.deployed
    dataset = training.get_dataset(conn, adapter.dataset_id)
    assert dataset is not None
    plan = training.get_training_plan(conn, dataset.training_plan_id)
    assert plan is not None
    assert plan.target_stage == "scope_judgment"
    assert [row.passed for row in training.list_evaluations(conn, adapter_id)] == [True]
    assert [row.action for row in training.list_deployments(conn, "scope_judgment")] == ["deploy"]


def test_data_sets_are_told_apart_by_where_their_rows_come_from(conn: sqlite3.Connection) -> None:
    training.TRAINING_PLANS.insert(conn, sample(training.TrainingPlanRow))
    for source in ("logged", "synthetic"):
        training.TRAINING_DATASETS.insert(conn, sample(training.DatasetRow, source=source))
    assert [row.id for row in training.list_datasets_of_stage(conn, "scope_judgment", "logged")] == [1]
    assert training.list_datasets_of_stage(conn, "implement", "logged") == ()
