"""What is chosen by figures."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.app.fit.measured import fit, judgments, outcomes, strong, sums

from clean_room_agent.app.fit.decisions import as_tables, can_work, choices, size_of, words_of
from clean_room_agent.app.fit.figures import Fit, Measured, Speed
from clean_room_agent.app.settings import TABLES
from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import check_slice
from clean_room_agent.llm.model_config import ROLES


def chosen(one: Fit) -> dict[str, Any]:
    return {
        choice.name: choice.value
        for choice in choices(dict.fromkeys(("coding", "reasoning", "classifier"), one))
    }


def test_a_model_that_always_knows_plans_judges_and_writes_lines_first() -> None:
    found = chosen(strong())
    assert found["solve.forms"] == ["lines", "masked", "function"], "by the tokens of a right answer"
    assert found["solve.route"] == "auto"
    assert found["orchestrator.planning"] == "one-call"
    assert found["judgments.route"] == "each"
    assert found["models.parallel"] == 2


def test_a_small_model_fills_gaps_first_and_neither_plans_nor_judges() -> None:
    small = fit(
        masked=outcomes(4, 4, tokens=40),
        function=outcomes(2, 6, tokens=60),
        lines=outcomes(0, 6),
        edit=outcomes(2, 2),
        plan=outcomes(0, 2),
        redrawn=outcomes(0, 3, kind="0.7") + outcomes(0, 2, kind="0.4"),
        judgment=judgments(knows=False),
    )
    assert chosen(small) == {
        "solve.forms": ["masked", "function"],
        "solve.route": "auto",
        "orchestrator.planning": "none",
        "solve.draw_temperature": 0.7,
        "solve.answer_length": 1.0,
        "models.parallel": 2,
        "judgments.route": "rank",
    }


def test_a_model_that_writes_code_in_no_form_cannot_do_the_work() -> None:
    weak = fit(
        function=outcomes(0, 8), lines=outcomes(0, 6), edit=outcomes(0, 4), judgment=judgments(knows=True)
    )
    assert can_work(weak) is False
    assert chosen(weak) == {}


def test_a_model_that_only_edits_files_is_asked_for_plans_at_once() -> None:
    found = chosen(replace(strong(), figures={"edit": outcomes(3, 0), "plan": outcomes(3, 0)}))
    assert found["solve.route"] == "planned"
    assert "solve.forms" not in found


def test_drawn_answers_are_cooler_only_where_that_is_clearly_better() -> None:
    both = outcomes(1, 3, kind="0.7") + outcomes(3, 1, kind="0.4")
    assert (
        chosen(replace(strong(), figures={**strong().figures, "redrawn": both}))["solve.draw_temperature"]
        == 0.4
    )
    both = outcomes(1, 3, kind="0.7") + outcomes(2, 2, kind="0.4")
    assert (
        chosen(replace(strong(), figures={**strong().figures, "redrawn": both}))["solve.draw_temperature"]
        == 0.7
    )


def test_answers_may_be_longer_where_right_ones_were() -> None:
    long = outcomes(2, 0, over=True) + outcomes(3, 0)
    assert (
        chosen(replace(strong(), figures={**strong().figures, "function": long}))["solve.answer_length"]
        == 1.0
    )
    figures = {**strong().figures, "function": outcomes(4, 0, over=True)}
    assert chosen(replace(strong(), figures=figures))["solve.answer_length"] == 2.0


def test_gaps_are_asked_side_by_side_where_that_is_faster() -> None:
    turn, side = Speed(work=100, seconds=10), Speed(work=100, seconds=6)
    assert (
        chosen(replace(strong(), gaps={"in-turn": turn, "side-by-side": side}))["solve.gaps"]
        == "side-by-side"
    )
    assert chosen(replace(strong(), gaps={"in-turn": turn, "side-by-side": turn}))["solve.gaps"] == "in-turn"
    assert "solve.gaps" not in chosen(replace(strong(), gaps={"in-turn": turn}))


def test_slots_that_are_hardly_faster_are_left_alone() -> None:
    widths = {1: Speed(work=100, seconds=10), 4: Speed(work=100, seconds=8.5)}
    assert chosen(replace(strong(), widths=widths))["models.parallel"] == 1


def test_what_is_not_measured_chooses_nothing() -> None:
    begun = replace(strong(), ended=["function", "masked", "lines"])
    assert chosen(begun) == {}
    assert "orchestrator.planning" not in chosen(
        replace(strong(), ended=["function", "masked", "lines", "edit"])
    )


def test_tasks_that_are_held_are_shown_and_choose_nothing() -> None:
    held = [replace(one, held=True) for one in outcomes(5, 0)]
    one = fit(function=outcomes(0, 8) + held, lines=outcomes(0, 6), edit=outcomes(0, 4))
    assert can_work(one) is False
    assert words_of(one, "function") == "writes whole functions: 100% apply, 0% right of 8 (held: 100% of 5)"


def test_figures_are_told_in_words() -> None:
    one = strong()
    assert words_of(one, "plan") == "plans: 3 of 3 right"
    assert words_of(one, "judgment") == "yes/no: AUC 1.00 of 16"
    assert words_of(fit(), "masked") == "fills no gaps on this server"
    assert words_of(fit(), "lines") == ""


def test_every_choice_is_a_valid_value_of_its_key() -> None:
    drawn: list[Measured] = outcomes(1, 3, kind="0.7") + outcomes(3, 1, kind="0.4")
    turn = Speed(work=100, seconds=10)
    one = replace(
        strong(), gaps={"in-turn": turn, "side-by-side": turn}, figures={**strong().figures, "redrawn": drawn}
    )
    tables = as_tables(choices(dict.fromkeys(("coding", "reasoning", "classifier"), one)))
    assert set(tables) == {"solve", "orchestrator", "models", "judgments"}
    for name in tables:
        check_slice(tables, name, TABLES[name], source="fit")


def test_the_form_whose_right_answers_cost_less_in_runs_comes_first() -> None:
    one = fit(masked=outcomes(5, 0, tokens=20), function=outcomes(5, 0, tokens=60))
    assert chosen(one)["solve.forms"] == ["masked", "function"]
    gaps, whole = (
        sums("fill", tried=200, passed=1, tokens=10),
        sums("function", tried=50, passed=5, tokens=60),
    )
    (learned, *_) = choices({"coding": one}, (gaps, whole))
    assert (learned.name, learned.value) == ("solve.forms", ["function", "masked"])
    assert "1 of 200 passed, 10 tokens each; writes whole functions, in runs here: 5 of 50" in learned.why
    few = sums("function", tried=39, passed=39, tokens=1)
    assert choices({"coding": one}, (gaps, few)) == choices({"coding": one})


def test_runs_order_the_forms_of_a_model_that_was_not_measured() -> None:
    gaps = sums("fill", tried=200, passed=0, tokens=10)
    whole = sums("function", tried=50, passed=1, tokens=60)
    assert [one.value for one in choices({}, (gaps, whole))] == [["function", "masked", "lines"]]
    better = sums("fill", tried=200, passed=20, tokens=10)
    assert choices({}, (better, whole)) == (), "that is how it is asked anyway"
    assert choices({}, (gaps, sums("function", tried=50, passed=0, tokens=60))) == ()


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("qwen2.5-coder:1.5b-instruct-q4_K_M", 1.5),
        ("Llama-3.2-1B-Instruct", 1.0),
        ("smollm2-135m", 0.135),
        ("Qwen2.5-7B-Instruct-1M", 7.0),
        ("qwen3:30b-a3b", 30.0),
        ("mixtral:8x7b", None),
        ("codellama:latest", None),
        ("gpt-4-turbo", None),
    ],
)
def test_a_models_size_is_read_from_its_name(model: str, size: float | None) -> None:
    assert size_of(model) == size


def test_a_small_model_that_was_not_measured_neither_plans_nor_judges() -> None:
    small = choices({}, models={"reasoning": "coder:1.5b", "classifier": "coder:1.5b"})
    assert as_tables(small) == {"orchestrator": {"planning": "none"}, "judgments": {"route": "rank"}}
    assert all("1.5B by its name" in one.why for one in small)
    assert choices({}, models={"reasoning": "coder:3b", "classifier": "coder"}) == ()
    divided = choices({}, models={"reasoning": "thinker:14b", "classifier": "tiny:0.5b"})
    assert as_tables(divided) == {"judgments": {"route": "rank"}}


def test_what_was_measured_counts_more_than_the_size() -> None:
    names: dict[Role, str] = {"reasoning": "coder:1.5b", "classifier": "coder:1.5b"}
    able: dict[Role, Fit] = dict.fromkeys(ROLES, strong("coder:1.5b"))
    assert choices(able, models=names) == choices(able)
