import pytest

from clean_room_agent.artifacts.tasks import RefinementRequest


@pytest.mark.parametrize("named", ["missing_files", "missing_symbols", "missing_tests", "whole_files"])
def test_a_request_that_names_something_to_look_for_is_not_empty(named: str) -> None:
    assert not RefinementRequest(reason="NameError", **{named: ("split",)}).is_empty()


def test_words_of_errors_alone_name_nothing_to_look_for() -> None:
    assert RefinementRequest(reason="tests_failed", error_signatures=("NameError: x",)).is_empty()
