import json
from typing import Any

import pytest
from testing.runs.solving import Project
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.cli.models import ModelFault, ModelJob, ModelsView


def view(project: Project, base_url: str, **models: Any) -> tuple[int, dict[str, Any]]:
    project.configure(
        base_url, models={"base_url": base_url, "coding": "coder:3b", "reasoning": "thinker:4b", **models}
    )
    code, out, err = project.run_here("models", "--json")
    assert out, err
    return code, json.loads(out)


def test_every_job_names_its_model_and_the_rest_is_on_offer(till: Project) -> None:
    with OllamaServer([], models=("coder:3b", "thinker:4b", "big:32b", "spare:1b")) as server:
        code, seen = view(
            till,
            server.base_url,
            escalation={"coding": ["big:32b"]},
            overrides={"scope_judgment": "spare:1b", "precision": "coder:3b"},
        )
    assert code == 0
    assert {job["name"]: (job["tag"], job["window"]) for job in seen["jobs"]} == {
        "coding": ("coder:3b", 16384),
        "reasoning": ("thinker:4b", 16384),
        "classifier": ("thinker:4b", 16384),
        "escalation.coding 1": ("big:32b", 16384),
        "overrides.precision": ("coder:3b", 16384),
        "overrides.scope_judgment": ("spare:1b", 16384),
    }
    offered = {each["tag"]: each["jobs"] for each in seen["offered"]}
    assert offered["thinker:4b"] == ["reasoning", "classifier"]
    assert offered["coder:3b"] == ["coding", "overrides.precision"]
    assert not server.calls, "no model is asked anything"


def test_a_missing_model_has_a_remedy_and_a_code_of_its_own(till: Project) -> None:
    with OllamaServer([], models=("coder:3b",)) as server:
        code, seen = view(till, server.base_url)
        assert code == 3
        assert till.run_here("models")[0] == 3
    faults = {job["name"]: job["fault"] for job in seen["jobs"]}
    assert faults["coding"] is None
    assert "ollama pull thinker:4b" in faults["reasoning"]["remedy"]


def test_a_server_without_a_model_leads_to_which_one_to_take(till: Project) -> None:
    with OllamaServer([], models=()) as server:
        view(till, server.base_url)
        code, out, _ = till.run_here("models")
    assert code == 3
    assert "the server has no model" in out
    assert "1.5B: 2 GB with a window of 8,192 tokens" in out


def test_without_a_server_the_jobs_are_still_shown(till: Project) -> None:
    code, seen = view(till, "http://127.0.0.1:9")
    assert code == 3
    assert seen["fault"]["remedy"]
    assert [job["tag"] for job in seen["jobs"]] == ["coder:3b", "thinker:4b", "thinker:4b"]
    assert seen["offered"] == []


def test_a_window_that_the_server_does_not_give_is_a_fault(till: Project) -> None:
    with OpenAiServer([], window=8192) as server:
        code, seen = view(till, server.base_url, provider="openai")
    assert code == 3
    assert {job["served"] for job in seen["jobs"]} == {8192}
    assert "8,192" in seen["jobs"][0]["fault"]["text"] or "8192" in seen["jobs"][0]["fault"]["text"]


GONE = ModelFault(text="it is gone", remedy="start it", exit_code=3)


def view_with(fault: ModelFault | None, *faults: ModelFault | None) -> ModelsView:
    jobs = tuple(
        ModelJob(name="coding", purpose="writes edits", tag="m", window=4096, fault=each) for each in faults
    )
    return ModelsView(
        base_url="http://127.0.0.1:1",
        provider="ollama",
        version="",
        fault=fault,
        jobs=jobs,
        offered=(),
        fit=None,
    )


@pytest.mark.parametrize(
    ("fault", "faults", "code"), [(None, (None,), 0), (GONE, (None,), 3), (None, (None, GONE), 3)]
)
def test_a_server_or_a_job_with_a_fault_decides(
    fault: ModelFault | None, faults: tuple[ModelFault | None, ...], code: int
) -> None:
    assert view_with(fault, *faults).exit_code == code
