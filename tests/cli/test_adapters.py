"""`cra adapters` against stand-in servers: the gate, the way into each kind of server, and the way back."""

import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testing.repositories import make_repository
from testing.runs.solving import PROBE, Project, project_at
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer
from tests.training.test_dataset import CARD
from tests.training.test_deployment import trained

from clean_room_agent.config import read_toml
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import ADAPTER_REGISTRY, AdapterRow, get_adapter
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT
from clean_room_agent.training.dataset import (
    FORMATS,
    DatasetEntry,
    Message,
    RowOrigin,
    Split,
    TrainingRow,
    write_dataset,
)
from clean_room_agent.workspace import Workspace

NOW = "2026-01-02T03:04:05Z"
COUNTS: Mapping[Split, int] = {"train": 10, "validation": 30, "test": 210}
MONTHS: Mapping[Split, int] = {"train": 1, "validation": 2, "test": 3}
OLLAMA_TAG = "thinker:4b-scope_judgment-v1"
OPENAI_TAG = "thinker:4b+scope_judgment-v1"


class Mind:
    """Knows the right verdict with a probability that depends on the model."""

    def __init__(self, right: Mapping[str, float]) -> None:
        self.right = right
        self.asked: list[str] = []

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.prompt.startswith(PROBE):
            return "x"
        applied = any(each["scale"] for each in call.body.get("lora", []))
        tag = call.model + ("+" if applied else "")
        self.asked.append(tag)
        number, truth = call.prompt.split("case ")[1].split(" is ")
        draw = random.Random(f"{number}{tag}")
        yes = (truth == "yes") == (draw.random() < self.right[tag])
        share = 0.6 + 0.3 * draw.random()
        likely = (("yes", share), ("no", 1 - share)) if yes else (("no", share), ("yes", 1 - share))
        # The base is slow, so that the machine's own noise never makes the adapter look slower.
        return Answer(text=likely[0][0], likely=likely, load_seconds=0.01 if tag.endswith("control") else 0.0)


def rows(counts: Mapping[Split, int] = COUNTS) -> list[DatasetEntry]:
    found = []
    for split, count in counts.items():
        for number in range(count):
            truth = "yes" if number % 3 == 0 else "no"
            text = f"{SCOPE_JUDGMENT.heading}\n\ncase {split}{number} is {truth}"
            system = Message(role="system", content=SCOPE_JUDGMENT.system)
            origin = RowOrigin(
                stage="scope_judgment",
                source="logged",
                repo="/code/shop" if number % 2 else "/code/till",
                timestamp=f"2026-0{MONTHS[split]}-01T00:00:00Z",
                task_id=f"{split}-{number // 2}",
            )
            row = TrainingRow(
                prompt=(system, Message(role="user", content=text)),
                completion=(Message(role="assistant", content=truth),),
                origin=origin,
            )
            found.append(DatasetEntry(split=split, kind="sft", row=row))
    return found


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("adapters")
    make_repository(home / "shop", {"src/a.py": "x = 1\n"})
    write_dataset(home / "data", rows(), CARD, FORMATS["trl"])
    return home


@pytest.fixture
def shop(tmp_path: Path, seed: Path) -> Project:
    shutil.copytree(seed, tmp_path / "home", symlinks=True)
    return project_at(tmp_path / "home/shop", {}, {})


def registered(project: Project, tag: str) -> Path:
    """The folder of an adapter that stands in the registry, with all that any server wants of it."""
    data = project.top.parent / "data"
    folder = project.top.parent / "scope_judgment-v1"
    folder.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors", "scope_judgment-v1.gguf", "merged.gguf"):
        (folder / name).write_text(name)
    (folder / "control.gguf").write_text("the control")
    with Record.open(project.top, clock=lambda: NOW) as record:
        first = trained(record, "unused")
        row = AdapterRow(
            dataset_id=first.dataset_id,
            stage_name="scope_judgment",
            base_model="thinker:4b",
            model_tag=tag,
            training_loss=0.5,
            trained_at=NOW,
            adapter_path=str(folder),
        )
        assert record.write(get_adapter, record.write(ADAPTER_REGISTRY.insert, row)) is not None
    assert data.is_dir()
    return folder


def cra(project: Project, server: OllamaServer, *args: str) -> tuple[int, Any, str]:
    if not Workspace(repo=project.top).config.exists():
        provider = "openai" if isinstance(server, OpenAiServer) else "ollama"
        project.configure(server.base_url, models={"provider": provider, "parallel": 1})
    data = ["--dataset", str(project.top.parent / "data")] if args[0] in {"evaluate", "deploy"} else []
    code, out, err = project.run_here("adapters", *args, *data, "--json")
    return code, json.loads(out) if out.strip() else None, err


def overrides(project: Project) -> dict[str, str]:
    found: dict[str, str] = read_toml(Workspace(repo=project.top).config)["models"].get("overrides", {})
    return found


def count(project: Project, query: str) -> int:
    conn = connect_file("raw", Workspace(repo=project.top).raw, read_only=True)
    try:
        return int(conn.execute(query).fetchone()[0])
    finally:
        conn.close()


def test_a_better_adapter_passes_is_deployed_and_retired(shop: Project) -> None:
    folder = registered(shop, OLLAMA_TAG)
    mind = Mind({f"{OLLAMA_TAG}-control": 0.6, OLLAMA_TAG: 0.95})
    with OllamaServer(mind, version="0.34.1", models=("coder:3b", "thinker:4b")) as server:
        code, told, err = cra(shop, server, "evaluate", OLLAMA_TAG)
        assert code == 0, err
        finding = told["finding"]
        assert finding["status"] == "passed"
        assert finding["examples"] == COUNTS["test"]
        assert finding["tasks"] == COUNTS["test"]  # two questions of a task are of two repositories
        assert finding["verdicts"]["candidate_auc"] > finding["verdicts"]["base_auc"]
        assert "held-out examples show a gain" in err
        # the base was asked as it comes out of the same merge, and all of it before the candidate
        of_test = mind.asked[-2 * COUNTS["test"] :]
        assert of_test == [f"{OLLAMA_TAG}-control"] * COUNTS["test"] + [OLLAMA_TAG] * COUNTS["test"]
        assert server.blobs.keys() == {each["files"]["model.gguf"] for each in server.created}
        assert overrides(shop) == {}

        code, told, err = cra(shop, server, "deploy", OLLAMA_TAG)
        assert (code, told and told["replaced"]) == (0, ""), err
        assert overrides(shop) == {"scope_judgment": OLLAMA_TAG}
        (listed,) = [each for each in cra(shop, server, "list")[1] if each["model_tag"] == OLLAMA_TAG]
        assert listed["deployed"]
        assert [each["passed"] for each in listed["evaluations"]] == [True]

        code, told, err = cra(shop, server, "evaluate", OLLAMA_TAG)
        assert code == 2
        assert "allowed only once" in err

        code, told, _ = cra(shop, server, "retire", OLLAMA_TAG)
        assert (code, told["tag"]) == (0, "")
        assert overrides(shop) == {}

        mind.right = {**mind.right, OLLAMA_TAG: 0.0}
        code, _, err = cra(shop, server, "deploy", OLLAMA_TAG)
        assert code == 2
        assert "does not answer as it did" in err
        assert overrides(shop) == {}
    assert count(shop, "SELECT count(*) FROM adapter_deployments") == 2
    assert (folder / "merged.gguf").exists()


def test_an_adapter_that_did_not_pass_is_refused_unless_forced_with_a_reason(shop: Project) -> None:
    """When one fails that has answered enough, `tests/training/test_gate.py` tests."""
    registered(shop, OLLAMA_TAG)
    data = shop.top.parent / "data"
    shutil.rmtree(data)
    write_dataset(data, rows({**COUNTS, "test": 12}), CARD, FORMATS["trl"])
    mind = Mind({f"{OLLAMA_TAG}-control": 0.7, OLLAMA_TAG: 0.7})
    with OllamaServer(mind, version="0.34.0", models=("coder:3b", "thinker:4b")) as server:
        code, told, _ = cra(shop, server, "evaluate", OLLAMA_TAG)
        assert (code, told["finding"]["status"]) == (1, "shadow")
        code, _, err = cra(shop, server, "deploy", OLLAMA_TAG)
        assert code == 2
        assert "has not passed the gate" in err
        assert cra(shop, server, "deploy", OLLAMA_TAG, "--force", " ")[0] == 2
        assert overrides(shop) == {}
        assert cra(shop, server, "deploy", OLLAMA_TAG, "--force", "to look at it")[0] == 0
        assert overrides(shop) == {"scope_judgment": OLLAMA_TAG}
    assert count(shop, "SELECT count(*) FROM adapter_deployments WHERE reason = 'to look at it'") == 1


def test_vllm_is_given_the_folder_and_answers_under_the_tag(shop: Project) -> None:
    folder = registered(shop, OPENAI_TAG)
    with OpenAiServer(
        Mind({OPENAI_TAG: 1.0}), kind="vllm", models=("coder:3b", "thinker:4b"), window=16384
    ) as server:
        code, told, err = cra(shop, server, "deploy", OPENAI_TAG, "--force", "a try")
        assert code == 0, err
        assert server.models[-1] == OPENAI_TAG
        assert str(folder) in told["note"]
    assert overrides(shop) == {"scope_judgment": OPENAI_TAG}


def test_llama_server_must_have_loaded_the_adapter_before_anything_changes(shop: Project) -> None:
    folder = registered(shop, OPENAI_TAG)
    weights = shop.top.parent / "base.gguf"
    weights.write_text("weights")
    given = ("deploy", OPENAI_TAG, "--force", "a try", "--base-gguf", str(weights))
    gguf = folder / "scope_judgment-v1.gguf"
    with OpenAiServer([], models=("coder:3b", "thinker:4b"), window=16384) as server:
        code, _, err = cra(shop, server, *given)
        assert code == 2
        assert "has not loaded scope_judgment-v1 yet" in err
        assert "--models-preset" in err
        assert overrides(shop) == {}
        preset = (Workspace(repo=shop.top).adapters / "llama-server.ini").read_text()
        assert f"[{OPENAI_TAG}]\nmodel = {weights}\nlora = {gguf}\nlora-init-without-apply = true\n" in preset
        server.adapters = (str(gguf),)
        assert cra(shop, server, *given)[0] == 0
        assert overrides(shop) == {"scope_judgment": OPENAI_TAG}


def test_other_servers_take_no_adapters(shop: Project) -> None:
    registered(shop, OPENAI_TAG)
    with OpenAiServer([], kind="lm-studio", models=("coder:3b", "thinker:4b")) as server:
        code, _, err = cra(shop, server, "deploy", OPENAI_TAG, "--force", "a try")
    assert code == 2
    assert "does not support adapters" in err
    assert overrides(shop) == {}


def test_what_is_not_there_is_said_with_what_is(shop: Project) -> None:
    registered(shop, OLLAMA_TAG)
    with OllamaServer([], models=("coder:3b", "thinker:4b")) as server:
        code, _, err = cra(shop, server, "retire", "7")
        assert code == 2
        assert OLLAMA_TAG in err
        code, _, err = cra(shop, server, "retire", OLLAMA_TAG)
        assert code == 2
        assert "its base is in force" in err
