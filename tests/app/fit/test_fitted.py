"""What was measured of models in the settings of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.runs.solving import Project, Script, make_project
from testing.servers.ollama_script import Answer
from testing.servers.ollama_server import OllamaServer
from tests.app.fit.measured import judgments, outcomes, strong, sums

from clean_room_agent.app.fit.decisions import choices
from clean_room_agent.app.fit.figures import Fit
from clean_room_agent.app.fit.fit_file import fit_path, write_fit
from clean_room_agent.app.fit.fitted import contradictions, fitted, sums_of_runs, verdict, with_recorded
from clean_room_agent.app.settings import Settings
from clean_room_agent.app.wiring import workspace_of


def settings(**tables: Any) -> Settings:
    models = {"base_url": "http://127.0.0.1:9", "coding": "coder:3b", "reasoning": "coder:3b"}
    budget = {"context_window": 4096, "reserved_tokens": 1024}
    limits = {"max_attempts": 1, "max_refinement_loops": 0, **tables.pop("solve", {})}
    return Settings(source="t", data={"models": models, "budget": budget, "solve": limits, **tables})


def digest(tag: str) -> str:
    """As the stand-in server lists it."""
    return f"{sum(tag.encode()):064x}"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_without_figures_settings_stay_as_they_are() -> None:
    given = settings()
    assert fitted(given) is given


def test_a_small_model_is_not_asked_for_plans_unless_that_is_configured() -> None:
    models = {**settings().data["models"], "coding": "coder:1.5b", "reasoning": "coder:1.5b"}
    small = Settings(source="t", data={**settings().data, "models": models})
    made = fitted(small)
    assert (made.orchestrator.planning, made.judgments.route) == ("none", "rank")
    assert made.data["fit"]["models"] == []
    asked = {**small.data, "orchestrator": {"planning": "one-call"}}
    assert fitted(Settings(source="t", data=asked)).orchestrator.planning == "one-call"
    adapters = {**small.data, "models": {**models, "overrides": {"part_plan": "planner"}}}
    assert fitted(Settings(source="t", data=adapters)).orchestrator.planning == "one-call"


def test_what_was_chosen_stands_below_what_is_configured() -> None:
    write_fit(strong())
    made = fitted(settings(solve={"forms": ["function"]}, judgments={"route": "batch"}))
    assert made.solve.forms == ("function",)
    assert made.judgments.route == "batch"
    assert made.models.parallel == 2
    assert made.solve.max_attempts == 1
    assert made.data["fit"]["models"] == ["coder:3b 2026-01-02T03:04:05Z"]


def test_a_run_that_is_resumed_has_what_it_had() -> None:
    write_fit(strong())
    recorded = {"models": ["old"], "chosen": {"solve": {"draws": 2}}}
    made = with_recorded(settings(), recorded)
    assert (made.solve.draws, made.solve.forms) == (2, settings().solve.forms)
    assert made.data["fit"] == recorded
    assert with_recorded(settings(), None).data == settings().data


def test_a_prompt_with_a_model_of_its_own_is_asked_as_before() -> None:
    write_fit(replace(strong(), figures={**strong().figures, "judgment": judgments(knows=False)}))
    given = settings()
    assert fitted(given).judgments.route == "rank"
    models = {**given.data["models"], "overrides": {"scope_judgment": "adapter"}}
    made = fitted(Settings(source="t", data={**given.data, "models": models}))
    assert made.judgments.route == "each"
    assert made.models.parallel == 2


def test_what_answers_came_to_in_runs_orders_forms_that_are_not_configured() -> None:
    of_runs = (sums("fill", tried=90, passed=0, tokens=10), sums("function", tried=50, passed=4, tokens=60))
    assert fitted(settings(), of_runs).solve.forms == ("function", "masked", "lines")
    given = settings(solve={"forms": ["lines", "masked", "function"]})
    assert fitted(given, of_runs).solve.forms == given.solve.forms


def test_answers_count_for_the_model_that_is_configured(tmp_path: Path) -> None:
    till: Project = make_project(tmp_path / "till")
    with OllamaServer(Script(till.oracle), fills="rightly") as server:
        assert till.solve(server, solve={"route": "auto"}).code == 0
    workspace = workspace_of(till.top)
    tried = {one.prompt: (one.tried, one.passed) for one in sums_of_runs(workspace, settings()) if one.tried}
    assert tried
    assert sum(passed for _, passed in tried.values()) == 1
    other = settings()
    other.data["models"]["coding"] = "another:7b"
    assert sums_of_runs(workspace, Settings(source="t", data=other.data)) == ()


def test_contradictions_are_what_is_configured_otherwise() -> None:
    chosen = choices({"coding": strong()})
    found = contradictions(settings(solve={"route": "planned", "answer_length": 1.0}), chosen)
    assert [one.name for one in found] == ["solve.route"]


def test_a_model_that_cannot_do_the_work_is_told_what_would() -> None:
    weak = replace(strong(), figures={"function": outcomes(0, 8)})
    assert "take a larger one" in verdict({"coding": weak})
    assert verdict({"coding": strong()}) == verdict({}) == ""


def small(tag: str) -> Fit:
    """Of a model that writes whole functions, and is not asked for judgments."""
    figures = {"function": outcomes(5, 0), "judgment": strong().figures["judgment"][:0]}
    return replace(strong(tag), digest=digest(tag), figures=figures)


def test_a_run_records_its_fit_and_a_replay_repeats_it(tmp_path: Path) -> None:
    till: Project = make_project(tmp_path / "till")
    write_fit(small("coder:3b"))
    with OllamaServer(Script(till.oracle), fills="rightly") as server:
        told = till.solve(server, solve={"route": "auto"})
        assert told.code == 0, told.err
    recorded = till.recorded()
    asked = [call.site.call_type for call in recorded.calls]
    assert "function" in asked
    assert "fill" not in asked
    assert recorded.run is not None
    config = json.loads(recorded.run.config)
    assert config["fit"]["chosen"]["solve"]["forms"] == ["function"]
    assert config["solve"]["forms"] == ["function"]
    fit_path("coder:3b", digest("coder:3b")).unlink()
    assert till.cra("replay", "@").code == 0


def test_a_broken_file_of_figures_ends_a_run_before_a_model_is_asked(tmp_path: Path) -> None:
    till: Project = make_project(tmp_path / "till")
    write_fit(small("coder:3b"))
    fit_path("coder:3b", digest("coder:3b")).write_text("{", encoding="utf-8")
    with OllamaServer(Script(till.oracle)) as server:
        told = till.solve(server)
    assert told.code == 2
    assert "cra models fit" in told.err
    assert not server.calls


def test_a_resumed_run_has_the_fit_that_it_began_with(tmp_path: Path) -> None:
    till: Project = make_project(tmp_path / "till")
    write_fit(small("coder:3b"))
    with OllamaServer(lambda _: Answer(status=500, error="out of memory")) as server:
        assert till.solve(server, solve={"route": "auto"}, models={"retries": 0}).code == 3
    fit_path("coder:3b", digest("coder:3b")).unlink()
    with OllamaServer(Script(till.oracle), fills="rightly") as server:
        till.configure(server.base_url, solve={"route": "auto"})
        resumed = till.cra("solve", "--resume", "@")
    assert resumed.code == 0, resumed.err
    assert "base_url" in resumed.err, "what has changed is told"
    assert "forms" not in resumed.err
    events = {event.kind: event.detail for event in till.recorded().events}
    assert json.loads(events["resumed_with"])["config"]["fit"]["chosen"]["solve"]["forms"] == ["function"]
