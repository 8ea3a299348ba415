"""A short run of the races that `python -m benchmarks.faults races` runs for long."""

from pathlib import Path

import pytest
from testing.faults import races


def test_no_link_that_is_swapped_in_wins_a_race(tmp_path: Path) -> None:
    escapes, control = races.run("short", tmp_path)
    assert (escapes.found, escapes.met) == (0, True)
    assert control.met, "the races were not run: the one that must be lost was not"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("swapped", [False, True])
def test_each_race_is_told_as_lost_only_where_it_is(swapped: bool, tmp_path: Path) -> None:
    scene = races.make_scene(tmp_path / "scene")
    if swapped:
        (scene.top / "dir").rename(scene.top / "real")
        (scene.top / "swap_dir").rename(scene.top / "dir")
    assert [race for race in races.races() if race(scene)] == []
    assert races._check_first(scene) is False
    (scene.outside / "new").write_text("x")
    assert races._outside_changed(scene)
