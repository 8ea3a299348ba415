"""Measuring stand-ins whose minds are known: what is chosen is what suits them."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from testing.runs.solving import Project, make_project
from testing.servers.made_up_answers import NO, MadeUpAnswers
from testing.servers.ollama_script import Answer, ChatCall, Fills
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.fit.figures import FIGURES
from clean_room_agent.app.fit.fit_file import read_fit
from clean_room_agent.app.fit.made_up_tasks import made_up_tasks


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "till")


MODELS = {"coding": "coder:3b", "reasoning": "coder:3b", "provider": "openai"}


def measure(
    project: Project, mind: Any, *, fills: Fills = "rightly", code: int = 0, **tables: Any
) -> tuple[dict[str, Any], OpenAiServer]:
    """What `cra models fit` says of the stand-in, and the server that it asked."""
    with OpenAiServer(mind, fills=fills, slots=2, window=16_384) as server:
        models = {
            "base_url": server.base_url,
            "coding": "coder:3b",
            "reasoning": "coder:3b",
            "provider": "openai",
        }
        project.configure(server.base_url, models=models, sandbox={"mode": "none"}, **tables)
        ended, out, err = project.run_here("models", "fit", "--json")
    assert ended == code, err
    return json.loads(out), server


def chosen(view: dict[str, Any]) -> dict[str, Any]:
    return {f"{one['table']}.{one['key']}": one["value"] for one in view["chosen"]}


def test_a_model_that_always_knows_is_asked_for_plans_lines_and_judgments(project: Project) -> None:
    view, server = measure(project, MadeUpAnswers())
    found = chosen(view)
    assert set(found["solve.forms"]) == {"masked", "function", "lines"}
    assert found["solve.forms"].index("lines") < found["solve.forms"].index("function")
    assert (found["solve.route"], found["orchestrator.planning"]) == ("auto", "one-call")
    assert found["judgments.route"] == "each"
    assert view["verdict"] == ""
    assert len(server.calls) < 110, "a clear figure stops early"
    assert any("writes whole functions: 100% apply, 100% right" in one for one in view["figures"])


def test_a_form_in_which_a_model_errs_is_left_out(project: Project) -> None:
    view, _ = measure(project, MadeUpAnswers(lost={"lines"}))
    assert "lines" not in chosen(view)["solve.forms"]
    assert "function" in chosen(view)["solve.forms"]


def test_gaps_are_left_out_where_the_server_fills_none(project: Project) -> None:
    view, _ = measure(project, MadeUpAnswers(), fills="")
    assert "masked" not in chosen(view)["solve.forms"]
    assert "fills no gaps on this server" in view["figures"]


def test_a_model_that_says_yes_to_all_is_not_asked_to_judge(project: Project) -> None:
    view, _ = measure(project, MadeUpAnswers({"meta_plan"}, agrees=True))
    assert chosen(view)["judgments.route"] == "rank"
    assert "yes/no: AUC .50 of 8: not asked" in view["figures"]
    assert chosen(view)["orchestrator.planning"] == "none"


def test_a_model_that_is_a_bit_surer_of_what_is_needed_but_says_yes_is_not_asked_either(
    project: Project,
) -> None:
    class Unsure(MadeUpAnswers):
        def __call__(self, call: ChatCall) -> Answer | str:
            said = super().__call__(call)
            if isinstance(said, Answer) and said.likely == NO:  # not where it is asked about nothing
                return Answer(text="yes", likely=(("yes", 0.8), ("no", 0.18)))
            return said

    view, _ = measure(project, Unsure())
    assert chosen(view)["judgments.route"] == "rank"


def test_a_model_that_cannot_code_is_told_so_and_nothing_is_chosen(project: Project) -> None:
    view, server = measure(
        project, MadeUpAnswers({"function", "lines", "implement", "gap"}), fills="", code=1
    )
    assert "cannot do the work" in view["verdict"]
    assert view["chosen"] == []
    titles = {call.title for call in server.calls}
    assert not any("file matters" in title for title in titles), "the rest is not worth measuring"


def test_measuring_goes_on_where_it_was_interrupted(project: Project) -> None:
    class Failing(MadeUpAnswers):
        left = 30

        def __call__(self, call: ChatCall) -> Answer | str:
            self.left -= 1
            return super().__call__(call) if self.left > 0 else Answer(status=500, error="out of memory")

    with OpenAiServer(Failing(), fills="rightly", slots=2, window=16_384) as server:
        models = {
            "base_url": server.base_url,
            "coding": "coder:3b",
            "reasoning": "coder:3b",
            "provider": "openai",
        }
        project.configure(server.base_url, models={**models, "retries": 0}, sandbox={"mode": "none"})
        ended, _, err = project.run_here("models", "fit")
    assert ended == 3
    assert "goes on from there" in err
    begun = read_fit("coder:3b", "")
    assert begun is not None
    assert begun.ended
    assert set(begun.ended) < set(FIGURES)
    known = to_builtins(begun.figures["function"])
    view, server = measure(project, MadeUpAnswers())
    assert view["whole"]
    whole = read_fit("coder:3b", "")
    assert whole is not None
    assert to_builtins(whole.figures["function"]) == known
    assert not any(call.title == "Write one definition anew" for call in server.calls), "known already"
    again, server = measure(project, MadeUpAnswers())
    assert not server.calls
    assert again["figures"] == view["figures"]


def test_the_same_model_measured_twice_gives_the_same_choices(project: Project, tmp_path: Path) -> None:
    first, _ = measure(project, MadeUpAnswers({"lines"}))
    for file in (tmp_path / "state" / "cra" / "fits").iterdir():
        file.unlink()
    second, _ = measure(project, MadeUpAnswers({"lines"}))
    timed = {"models.parallel", "solve.gaps"}  # the stand-in takes no time
    assert {key: value for key, value in chosen(first).items() if key not in timed} == {
        key: value for key, value in chosen(second).items() if key not in timed
    }


def test_held_tasks_are_asked_and_shown_beside(project: Project) -> None:
    view, _ = measure(project, MadeUpAnswers())
    fit = read_fit("coder:3b", "")
    assert fit is not None
    held = [one for one in fit.figures["function"] if one.held]
    assert held
    assert all(made_up_tasks().is_held(one.task) for one in held)
    assert any("(held: 100% of" in told for told in view["figures"])


def test_what_is_configured_otherwise_is_shown_by_models_and_check(project: Project) -> None:
    view, _ = measure(project, MadeUpAnswers(), solve={"route": "planned"})
    assert [f"{one['table']}.{one['key']}" for one in view["overridden"]] == [
        "solve.route",
        "judgments.route",
    ]
    with OpenAiServer(MadeUpAnswers(), fills="rightly", slots=2, window=16_384) as server:
        models = {
            "base_url": server.base_url,
            "coding": "coder:3b",
            "reasoning": "coder:3b",
            "provider": "openai",
        }
        project.configure(server.base_url, models=models, solve={"route": "planned"})
        code, out, _ = project.run_here("models")
        checked = project.run_here("check")[1]
    assert code == 0
    assert 'solve.route = "auto" (but something else is configured)' in out
    assert "plans: 2 of 2 right (held: 1 of 1)" in out
    assert '[solve] route = "planned" is configured, where "auto" would be chosen' in checked


def test_as_many_answers_are_asked_for_at_a_time_as_the_server_gives(project: Project) -> None:
    """However many are configured."""

    class Slow(MadeUpAnswers):
        def __call__(self, call: ChatCall) -> Answer | str:
            return Answer(text=str(super().__call__(call)), load_seconds=0.02)

    with OpenAiServer(Slow({"meta_plan"}), slots=4, window=16_384) as server:
        models = {"base_url": server.base_url, **MODELS, "parallel": 1}
        project.configure(server.base_url, models=models, sandbox={"mode": "none"})
        code, _, err = project.run_here("models", "fit")
    assert code == 0, err
    assert server.peak == 4
    fit = read_fit("coder:3b", "")
    assert fit is not None
    assert sorted(fit.widths) == [1, 4]
    assert fit.widths[1].work > sum(one.tokens for one in fit.figures["function"][1:3])
