"""Which adapter answers: forth, back, and with the process killed at each line on the way."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clean_room_agent.config import read_toml
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated.metadata import get_active_adapter
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    ADAPTER_REGISTRY,
    TRAINING_DATASETS,
    TRAINING_PLANS,
    AdapterRow,
    DatasetRow,
    DeploymentRow,
    TrainingPlanRow,
    get_adapter,
    list_adapters,
    list_deployments,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.training import deployment
from clean_room_agent.training.deployment import Deployer, previous_tag
from clean_room_agent.workspace import Workspace

NOW = "2026-01-02T03:04:05Z"
SCOPE = "scope_judgment"
CONFIG = """\
# mine
[models]
coding = "m"       # the small one

[models.overrides]    # another model for one prompt or stage
implement = "other"   # kept

[budget]
context_window = 8192
"""


def trained(record: Record, tag: str, stage: str = SCOPE) -> AdapterRow:
    """An adapter in the registry, with the plan and the dataset that it needs."""
    plan = TrainingPlanRow(
        task_id="t",
        target_stage=stage,
        base_model="m",
        source="logged",
        data_criteria="{}",
        hyperparameters="{}",
        improvement_targets="{}",
        raw_plan="",
        timestamp=NOW,
    )
    plan_id = record.write(TRAINING_PLANS.insert, plan)
    dataset = DatasetRow(
        training_plan_id=plan_id,
        stage_name=stage,
        base_model="m",
        source="logged",
        dataset_path="/nowhere",
        example_count=1,
        positive_count=1,
        negative_count=0,
        format="trl",
        timestamp=NOW,
    )
    row = AdapterRow(
        dataset_id=record.write(TRAINING_DATASETS.insert, dataset),
        stage_name=stage,
        base_model="m",
        model_tag=tag,
        training_loss=0.5,
        trained_at=NOW,
    )
    found = record.write(get_adapter, record.write(ADAPTER_REGISTRY.insert, row))
    assert found is not None
    return found


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(repo=tmp_path / "shop")
    found.repo.mkdir()
    found.create()
    found.config.write_text(CONFIG)
    connect_file("curated", found.curated).close()
    return found


@pytest.fixture
def record(workspace: Workspace) -> Iterator[Record]:
    with Record.open(workspace.repo, clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def deployer(workspace: Workspace, record: Record) -> Deployer:
    return Deployer(workspace=workspace, record=record, roles={SCOPE: "classifier", "implement": "coding"})


def active(workspace: Workspace) -> str | None:
    with closing(connect_file("curated", workspace.curated, read_only=True)) as conn:
        found = get_active_adapter(conn, SCOPE)
    return found.model_tag if found else None


def deployed(record: Record) -> list[str]:
    return [each.model_tag for each in record.write(list_adapters) if each.deployed]


def test_an_adapter_is_in_force_everywhere_and_the_rest_of_the_file_is_as_it_was(
    workspace: Workspace, record: Record, deployer: Deployer
) -> None:
    changed = deployer.deploy(trained(record, "m:v1"), evaluation_id=None, reason="a try")
    assert (changed.tag, changed.replaced_tag) == ("m:v1", "")
    assert workspace.config.read_text() == CONFIG.replace("# kept\n", '# kept\nscope_judgment = "m:v1"\n')
    assert (deployed(record), active(workspace)) == (["m:v1"], "m:v1")
    (row,) = record.write(list_deployments, SCOPE)
    assert (row.action, row.tag, row.reason) == ("deploy", "m:v1", "a try")


def test_each_retirement_is_one_step_back_down_to_the_base(
    workspace: Workspace, record: Record, deployer: Deployer
) -> None:
    first, second = trained(record, "m:v1"), trained(record, "m:v2")
    deployer.deploy(first, evaluation_id=None)
    deployer.deploy(second, evaluation_id=None)
    assert (deployed(record), active(workspace)) == (["m:v2"], "m:v2")
    assert deployer.retire(second).tag == "m:v1"
    assert (deployed(record), active(workspace)) == (["m:v1"], "m:v1")
    assert deployer.retire(first).tag == ""
    assert (deployed(record), active(workspace)) == ([], None)
    assert workspace.config.read_text() == CONFIG


def test_going_back_never_turns_in_circles(record: Record, deployer: Deployer) -> None:
    first, second = trained(record, "m:v1"), trained(record, "m:v2")
    deployer.deploy(first, evaluation_id=None)
    deployer.deploy(second, evaluation_id=None)
    deployer.deploy(first, evaluation_id=None)
    assert deployer.retire(first).tag == "m:v2"
    assert deployer.retire(second).tag == ""
    deployer.deploy(first, evaluation_id=None)
    deployer.deploy(second, evaluation_id=None)
    assert deployer.retire(second).tag == "m:v1"


def test_what_a_person_wrote_into_the_file_comes_back_too(
    workspace: Workspace, record: Record, deployer: Deployer
) -> None:
    adapter = trained(record, "m:v1", "implement")
    deployer.deploy(adapter, evaluation_id=None)
    assert read_toml(workspace.config)["models"]["overrides"]["implement"] == "m:v1"
    deployer.retire(adapter)
    assert workspace.config.read_text() == CONFIG


def announced(action: str, tag: str, replaced: str) -> DeploymentRow:
    return DeploymentRow(
        adapter_id=1,
        evaluation_id=None,
        stage_name=SCOPE,
        action="deploy" if action == "deploy" else "retire",
        tag=tag,
        replaced_tag=replaced,
        timestamp=NOW,
    )


def test_an_announcement_that_nothing_followed_counts_for_nothing() -> None:
    rows = [announced("deploy", "v1", ""), announced("deploy", "v2", "v1"), announced("deploy", "v3", "v2")]
    assert previous_tag(rows, "v2") == "v1"
    assert previous_tag(rows, "v1") == ""
    assert previous_tag(rows, "by hand") == ""


def test_what_is_not_in_force_cannot_be_retired_nor_deployed_twice(
    record: Record, deployer: Deployer
) -> None:
    adapter = trained(record, "m:v1")
    with pytest.raises(UsageError, match="its base is in force"):
        deployer.retire(adapter)
    deployer.deploy(adapter, evaluation_id=None)
    with pytest.raises(UsageError, match="already"):
        deployer.deploy(adapter, evaluation_id=None)


@pytest.mark.parametrize("left", ["old", "new"])
def test_a_process_that_dies_leaves_the_old_adapter_or_the_new_one_and_the_next_command_says_so(
    workspace: Workspace, record: Record, deployer: Deployer, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    first, second = trained(record, "m:old"), trained(record, "m:new")
    deployer.deploy(first, evaluation_id=None)
    dies_at = "atomic_write" if left == "old" else "set_active_adapters"

    def die(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(deployment, dies_at, die)
        with pytest.raises(KeyboardInterrupt):
            deployer.deploy(second, evaluation_id=None)
    deployer.tell_who_is_in_force()
    assert (deployer.in_force()[SCOPE], deployed(record), active(workspace)) == (
        f"m:{left}",
        [f"m:{left}"],
        f"m:{left}",
    )
    assert deployer.retire(first if left == "old" else second).tag == ("" if left == "old" else "m:old")
