"""`cra train` as it is typed, with a scripted trainer."""

import json
import stat
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.repositories import make_repository
from testing.runs.solving import Project, project_at
from tests.training.test_deployment import NOW, trained
from tests.training.test_train import FAKE, dataset_at

from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, get_dataset, list_adapters
from clean_room_agent.workspace import Workspace


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    project = project_at(make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"}), {}, {})
    project.configure("http://127.0.0.1:1")
    return project


def dataset_in(project: Project, folder: Path) -> int:
    """The number of a dataset in the record whose rows stand in the folder."""
    with Record.open(project.top, clock=lambda: NOW) as record:
        known = record.write(get_dataset, trained(record, "m:scope_judgment-v1").dataset_id)
        assert known is not None
        return record.write(TRAINING_DATASETS.insert, replace(known, id=0, dataset_path=str(folder)))


def trainable(shop: Project, tmp_path: Path) -> tuple[str, ...]:
    """A training that is sure to work, as it is typed."""
    python = tmp_path / "python"
    python.write_text(FAKE.format(python=sys.executable, mode="works"))
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "base.gguf").write_text("weights")
    number = dataset_in(shop, dataset_at(tmp_path / "data"))
    return ("train", str(number), "--base", str(tmp_path / "base.gguf"), "--python", str(python), "--json")


def test_an_adapter_has_a_number_a_tag_and_a_folder(shop: Project, tmp_path: Path) -> None:
    given = trainable(shop, tmp_path)
    code, out, err = shop.run_here(*given)
    assert code == 0, err
    told = json.loads(out)
    assert told["adapter"]["model_tag"] == "m:scope_judgment-v2"
    assert Path(told["folder"]) == Workspace(repo=shop.top).adapters / "scope_judgment-v2"
    assert (Path(told["folder"]) / "cra.json").exists()
    with Record.open(shop.top, clock=lambda: NOW) as record:
        assert "m:scope_judgment-v2" in [each.model_tag for each in record.write(list_adapters)]


def test_a_dataset_that_there_is_not_is_said(shop: Project, tmp_path: Path) -> None:
    dataset_in(shop, tmp_path)
    code, _, err = shop.run_here("train", "99", "--base", str(tmp_path))
    assert code == 2
    assert "there is no dataset 99" in err
    assert "cra curate-data" in err


def test_a_python_is_named_from_the_folder_where_the_command_is_given(
    shop: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = trainable(shop, tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, err = shop.run_here(*given, "--python", "./python")
    assert code == 0, err


def test_labelled_answers_are_trained_two_at_a_time(shop: Project, tmp_path: Path) -> None:
    given = (*trainable(shop, tmp_path), "--kind", "kto")
    code, _, err = shop.run_here(*given, "--micro-batch", "1")
    assert code == 2
    assert "--kind kto needs 2 rows at a time" in err
    code, out, err = shop.run_here(*given)
    assert code == 0, err
    about = json.loads((Path(json.loads(out)["folder"]) / "cra.json").read_text())
    assert about["job"]["micro_batch"] == 2
