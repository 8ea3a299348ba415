"""Trainings of one prompt at a time have numbers of their own."""

from pathlib import Path

from clean_room_agent.app.train_adapter import held_version

PROMPT = "scope_judgment"


def test_two_trainings_at_a_time_have_two_numbers(tmp_path: Path) -> None:
    with (
        held_version(tmp_path, PROMPT, lambda: {1}) as first,
        held_version(tmp_path, PROMPT, lambda: {1}) as second,
    ):
        assert (first, second) == (2, 3)
    assert list(tmp_path.iterdir()) == []


def test_the_highest_number_counts_and_not_how_many_there_are(tmp_path: Path) -> None:
    with held_version(tmp_path, PROMPT, lambda: {2}) as version:
        assert version == 3


def test_a_training_that_was_broken_off_comes_first_unless_it_runs_again(tmp_path: Path) -> None:
    (tmp_path / f"{PROMPT}-v1.training").mkdir()
    (tmp_path / "task_analysis-v7.training").mkdir()
    with (
        held_version(tmp_path, PROMPT, lambda: {2}) as resumed,
        held_version(tmp_path, PROMPT, lambda: {2}) as other,
    ):
        assert (resumed, other) == (1, 3)


def test_an_adapter_that_came_while_its_number_was_waited_for_keeps_it(tmp_path: Path) -> None:
    answers = iter([set[int](), {1}, {1}])
    with held_version(tmp_path, PROMPT, lambda: next(answers)) as version:
        assert version == 2


def test_a_folder_that_is_there_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / f"{PROMPT}-v1").mkdir()
    with held_version(tmp_path, PROMPT, set[int]) as version:
        assert version == 2
