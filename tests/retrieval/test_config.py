import msgspec
import pytest

from clean_room_agent.retrieval.config import JudgmentsConfig, StagesConfig, split_stages


def judgments(**values: object) -> JudgmentsConfig:
    return msgspec.convert(values, JudgmentsConfig)


def test_stages_are_named_with_commas_and_blanks_do_not_count() -> None:
    assert split_stages(" scope, precision ,") == ("scope", "precision")
    assert StagesConfig().names() == ("scope", "precision")


@pytest.mark.parametrize(
    ("values", "files", "symbols"),
    [
        ({}, False, False),
        ({"route": "batch"}, True, True),
        ({"route": "batch", "scope_route": "each"}, False, True),
        ({"precision_route": "batch"}, False, True),
    ],
)
def test_a_route_of_its_own_wins_over_the_one_for_both(
    values: dict[str, object], files: bool, symbols: bool
) -> None:
    config = judgments(**values)
    assert (config.files_in_one_question, config.symbols_in_one_question) == (files, symbols)


def test_in_one_question_the_first_are_judged_whatever_their_scores() -> None:
    bound = judgments(route="batch", top_k=2, max_symbols=1).files_to_judge([1.0, 0.1, 0.0])
    assert (bound.count, bound.reason) == (2, "ranks below the first 2")


def test_one_by_one_what_is_far_below_the_best_is_not_asked_about() -> None:
    config = judgments(each_files=3, each_symbols=3, each_share=0.5)
    near = config.files_to_judge([1.0, 0.6, 0.2])
    assert (near.count, near.reason) == (2, "has less than 50% of the best score")
    full = config.symbols_to_judge([1.0, 0.9, 0.8, 0.7])
    assert (full.count, full.reason) == (3, "ranks below the first 3")


def test_a_file_between_two_that_are_near_is_asked_about_too() -> None:
    assert judgments(each_files=3, each_share=0.5).files_to_judge([1.0, 0.1, 0.9]).count == 3


def test_nothing_to_judge_is_no_question() -> None:
    assert judgments().files_to_judge([]).count == 0


def test_without_a_model_everything_is_one_question() -> None:
    sorting = judgments(route="each", scope_route="each").sorting()
    assert sorting.files_in_one_question
    assert sorting.symbols_in_one_question


@pytest.mark.parametrize("values", [{"top_k": 0}, {"threshold": 1.5}, {"route": "some"}])
def test_values_that_make_no_sense_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        judgments(**values)
