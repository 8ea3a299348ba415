"""The numbers of adapters."""

from pathlib import Path

from clean_room_agent.app.adapter_training import version_of


def test_a_number_is_above_all_that_are_taken_and_resuming_takes_that_of_the_interrupted(
    tmp_path: Path,
) -> None:
    assert version_of(tmp_path, "scope_judgment", set(), resume=False) == 1
    assert version_of(tmp_path, "scope_judgment", {2}, resume=False) == 3
    assert version_of(tmp_path, "scope_judgment", {2}, resume=True) == 3
    (tmp_path / "scope_judgment-v4.training").mkdir()
    (tmp_path / "scope_judgment-v1").mkdir()
    (tmp_path / "task_analysis-v7.training").mkdir()
    assert version_of(tmp_path, "scope_judgment", {2}, resume=False) == 5
    assert version_of(tmp_path, "scope_judgment", {2}, resume=True) == 4
