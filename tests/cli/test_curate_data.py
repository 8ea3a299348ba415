"""`cra curate-data`, which asks no model."""

import contextlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.repositories import copy_repository, make_repository
from testing.runs.solving import Project, project_at
from testing.seeded_record import SECRET, SECRET_IN, Seeded, Task, seed_record
from tests.cli.seeded_shop import COUNTS, rows, run
from tests.db.raw.samples import NOW
from tests.training.test_dataset import CARD, ORIGIN
from tests.training.test_examples import DirectRun

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.connection import connect_file, get_connection, transaction
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS, DatasetRow
from clean_room_agent.training.dataset import FORMATS, DatasetEntry, Message, TrainingRow, write_dataset
from clean_room_agent.training.dataset_filters import jaccard
from clean_room_agent.training.train_plan import TrainingPlan, row_of
from clean_room_agent.workspace import Workspace


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "scope_judgment" / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def curated(
    tmp_path_factory: pytest.TempPathFactory, seeded_once: Seeded
) -> tuple[Project, dict[str, Any], Path]:
    top = tmp_path_factory.mktemp("curated") / "shop"
    copy_repository(seeded_once.top, top)
    shop = project_at(top, {}, {})
    folder = shop.home / "data"
    code, told, err = run(shop, "curate-data", "--target", "scope_judgment", "-o", str(folder))
    assert code == 0, err
    return shop, told, folder


def test_a_dataset_holds_good_answers_and_bad_ones_apart(
    curated: tuple[Project, dict[str, Any], Path], seeded_once: Seeded
) -> None:
    shop, told, folder = curated
    supervised = [
        row for name in ("train.jsonl", "validation.jsonl", "test.jsonl") for row in lines(folder, name)
    ]
    assert supervised
    assert all(row["label"] for row in supervised)
    answers = Counter(row["completion"][0]["content"] for row in supervised)
    assert set(answers) == {"yes", "no"}
    labelled = [
        row for split in ("train", "validation", "test") for row in lines(folder, f"kto_{split}.jsonl")
    ]
    bad = [row for row in labelled if not row["label"]]
    assert len(bad) == COUNTS["scope"] - 1  # the task with the secret is gone
    assert {row["completion"][0]["content"] for row in bad} == {"no"}
    assert told["left_out"]["let in more than was changed"] == seeded_once.doubtful
    ((stage, examples, negative),) = rows(
        shop, "SELECT stage_name, example_count, negative_count FROM training_datasets ORDER BY id LIMIT 1"
    )
    assert (stage, examples, negative) == ("scope_judgment", len(supervised), len(bad))
    assert rows(shop, "SELECT count(*) FROM training_plans")[0][0] == 1
    assert told["left_out"]["no accepted change is known"] == 2 * COUNTS["unknown"]


def test_no_secret_reaches_a_file(curated: tuple[Project, dict[str, Any], Path]) -> None:
    _, told, folder = curated
    assert told["left_out"]["holds a secret"] > 0
    for path in folder.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_text()
    every = [row for path in folder.rglob("*.jsonl") for row in lines(folder, path.name)]
    assert all(not row["task_id"].endswith(f"{SECRET_IN:05d}:meta_plan") for row in every)


def test_splits_follow_time_and_share_no_task_and_no_near_duplicate(
    curated: tuple[Project, dict[str, Any], Path],
) -> None:
    _, _, folder = curated
    parts = {
        split: [row for prefix in ("", "kto_") for row in lines(folder, f"{prefix}{split}.jsonl")]
        for split in ("train", "validation", "test")
    }
    numbers = {split: {row["task_id"][5:10] for row in found} for split, found in parts.items()}
    assert not numbers["train"] & numbers["test"]
    assert not numbers["train"] & numbers["validation"]
    assert not numbers["validation"] & numbers["test"]
    assert max(row["timestamp"] for row in parts["train"]) < min(row["timestamp"] for row in parts["test"])

    def words(row: dict[str, Any]) -> frozenset[str]:
        question = row["prompt"][1]["content"].partition("## Task")[2].split()
        return frozenset(" ".join(question[at : at + 3]) for at in range(len(question)))

    # A row stands in a file of answers and in one of labelled answers.
    held_out = {words(row) for row in parts["test"]}
    for own in {words(row) for row in parts["train"]}:
        assert all(jaccard(own, other) < 0.7 for other in held_out)


def test_curating_again_gives_the_same_bytes(curated: tuple[Project, dict[str, Any], Path]) -> None:
    shop, told, _ = curated
    again = run(shop, "curate-data", "--plan", str(told["plan_id"]), "-o", str(shop.home / "again"))
    assert again[0] == 0
    assert again[1]["files"] == told["files"]
    assert again[1]["plan_id"] == told["plan_id"]


def test_repaired_answers_become_pairs(shop: Project) -> None:
    folder = shop.home / "data"
    code, told, err = run(shop, "curate-data", "--target", "implement", "-o", str(folder))
    assert code == 0, err
    pairs = [json.loads(line) for line in (folder / "implement/dpo_train.jsonl").read_text().splitlines()]
    assert pairs
    for pair in pairs:
        assert pair["rejected"][0]["content"].startswith("broken ")
        assert pair["chosen"][0]["content"] == pair["rejected"][0]["content"].removeprefix("broken ")
        assert "could not be read" not in pair["prompt"][1]["content"]
    assert told["folder"] == str(folder)


@pytest.mark.parametrize(
    ("asked", "answer"), [("function", "```python\nreturn {}\n```"), ("fill", " return {}")]
)
def test_green_candidates_become_rows_and_pairs_with_red_ones_of_their_prompt(
    asked: str, answer: str, tmp_path: Path
) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "x = 1\n"})
    shop = project_at(top, {}, {})
    shop.configure("http://127.0.0.1:1")
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn, transaction(conn):
        for task in range(3):
            DirectRun(conn, top, Task(number=task, words=f"repair {task}"), random.Random(task)).answered(
                asked,
                (f"place {task}", answer.format(1), AttemptOutcome.TESTS_FAILED),
                (f"place {task}", answer.format(2 + task), AttemptOutcome.APPLIED_AND_PASSED),
                (f"elsewhere {task}", answer.format(9), AttemptOutcome.TESTS_FAILED),
            )
    folder = shop.home / "data"
    code, _, err = run(shop, "curate-data", "--target", asked, "-o", str(folder))
    assert code == 0, err

    def read(prefix: str) -> list[dict[str, Any]]:
        files = sorted((folder / asked).glob(f"{prefix}t[re][as]*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    green = {answer.format(2 + task) for task in (0, 2)}  # of three tasks one is for validation
    assert {row["completion"][0]["content"] for row in read("")} == green
    pairs = {(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in read("dpo_")}
    assert pairs == {(chosen, answer.format(1)) for chosen in green}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "--plan ID|FILE"),
        (("--plan", "77"), "no training plan 77"),
        (("--plan", "no-such.json"), "cannot read no-such.json"),
    ],
)
def test_bad_usage_is_told_and_leaves_nothing(shop: Project, args: tuple[str, ...], words: str) -> None:
    code, _, err = run(shop, "curate-data", *args)
    assert code == 2
    assert words in err
    assert rows(shop, "SELECT count(*) FROM training_plans")[0][0] == 0
    assert rows(shop, "SELECT count(*) FROM task_runs WHERE mode = 'curate_data'")[0][0] == 0


def test_a_plan_file_with_a_wrong_field_names_it(shop: Project) -> None:
    (shop.home / "plan.json").write_text('{"target": "scope_judgment"}')
    code, _, err = run(shop, "curate-data", "--plan", str(shop.home / "plan.json"))
    assert code == 2
    assert "base_model" in err


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    code, _, err = run(shop, "curate-data", "--target", "scope_judgment")
    assert code == 2
    assert "pip install 'clean-room-agent[data]'" in err


def test_mined_rows_are_mixed_in_by_weight_and_asked_for_where_there_are_none(tmp_path: Path) -> None:
    seed_record(make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"}), {"scope": 30})
    shop = project_at(tmp_path / "shop", {}, {})
    plan = {
        "target": "scope_judgment",
        "base_model": "m",
        "criteria": {"synthetic_weight": 0.1, "max_ratio": 1000},
    }
    (shop.home / "plan.json").write_text(json.dumps(plan))
    args = ("curate-data", "--plan", str(shop.home / "plan.json"))
    code, _, err = run(shop, *args, "-o", str(shop.home / "none"))
    assert code == 2
    assert "cra bootstrap" in err
    assert not (shop.home / "none").exists()
    mined = [
        DatasetEntry(
            split="train",
            kind="sft",
            row=TrainingRow(
                prompt=(Message(role="user", content=f"question {number} " * 5),),
                completion=(Message(role="assistant", content="yes"),),
                origin=replace(ORIGIN, source="synthetic", repo="/mined", task_id="", commit=f"c{number}"),
            ),
        )
        for number in range(200)
    ]
    write_dataset(shop.home / "mined", mined, CARD, FORMATS["trl"])
    conn = connect_file("raw", Workspace(repo=shop.top).raw)
    known = TRAINING_PLANS.insert(
        conn, row_of(TrainingPlan(target="scope_judgment", base_model="m"), task_id="t", raw="", now=NOW)
    )
    TRAINING_DATASETS.insert(
        conn,
        DatasetRow(
            training_plan_id=known,
            stage_name="scope_judgment",
            base_model="m",
            source="synthetic",
            dataset_path=str(shop.home / "mined"),
            example_count=200,
            positive_count=200,
            negative_count=0,
            format="trl",
            timestamp=NOW,
        ),
    )
    conn.close()
    code, _, err = run(shop, *args, "-o", str(shop.home / "mixed"))
    assert code == 0, err
    sources = json.loads((shop.home / "mixed/card.json").read_text())["sources"]
    supervised = [
        row
        for split in ("train", "validation", "test")
        for row in lines(shop.home / "mixed", f"{split}.jsonl")
    ]
    taken = Counter(row["source"] for row in supervised)
    assert taken["synthetic"] == round(0.1 * taken["logged"]) > 0
    assert sources["synthetic"] >= taken["synthetic"]
