from pathlib import Path

import pytest
from benchmarks.retrieval.fit import Task, ascend, fit, quality
from testing.index_dump import index
from testing.repositories import commit, make_repository

from clean_room_agent.query.ranking import WEIGHTS


def test_quality_is_the_mean_of_reciprocal_rank_and_recall() -> None:
    task = Task(shares={1: (1.0, 0.0), 2: (0.0, 1.0)}, changed=(2,))
    assert quality([task], (1.0, 2.0)) == 1.0
    assert quality([task], (2.0, 1.0)) == pytest.approx((1 / 2 + 1) / 2)
    lost = Task(shares={1: (1.0, 0.0)}, changed=(3,))
    assert quality([lost], (1.0, 1.0)) < 0.001


def test_ascent_finds_the_signal_that_is_right() -> None:
    tasks = [Task(shares={1: (1.0, 0.0), 2: (0.0, 0.9)}, changed=(2,))] * 3
    weights = ascend(tasks, (1.0, 1.0))
    assert quality(tasks, weights) == 1.0


def test_a_short_past_gives_no_fit_and_a_long_one_does(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "a = 0\n", "b.py": "b = 0\n"})
    index(top)
    assert fit(top) is None
    for number in range(30):
        name = "ab"[number % 2]
        commit(top, {f"{name}.py": f"{name} = {number + 1}\n"}, f"Change the value of {name} once more")
    index(top)
    found = fit(top)
    assert found is not None
    assert found.tasks == 30
    assert set(found.weights) == set(WEIGHTS)
