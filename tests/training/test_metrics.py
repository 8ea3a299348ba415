"""What an answer is worth."""

from types import SimpleNamespace
from typing import Any

import pytest

from clean_room_agent.app.training_parts import TARGETS
from clean_room_agent.training.metrics import METRICS, FilesNamed, NamesFound

ROW: Any = None


def analysis(areas: list[str], symbols: list[str]) -> Any:
    return SimpleNamespace(areas=areas, symbols=symbols)


def plan(*paths: str) -> Any:
    return SimpleNamespace(steps=[SimpleNamespace(files=[SimpleNamespace(path=path) for path in paths])])


@pytest.mark.parametrize(
    ("named", "worth"), [(["a"], 0.5), (["a", "f"], 1.0), (["z"], 0.0), (["a", "z", "y"], 0.5)]
)
def test_an_analysis_is_worth_the_names_that_it_finds(named: list[str], worth: float) -> None:
    assert NamesFound().score(ROW, analysis(["a"], ["f"]), analysis(named, [])) == worth


def test_a_plan_is_worth_the_files_that_it_names() -> None:
    assert FilesNamed().score(ROW, plan("a.py", "b.py"), plan("b.py", "c.py")) == 0.5


def test_a_row_without_anything_to_find_cannot_be_scored() -> None:
    assert NamesFound().fault(ROW, analysis([], []))
    assert FilesNamed().fault(ROW, plan())
    assert FilesNamed().fault(ROW, plan("a.py")) == ""


def test_every_metric_is_for_a_prompt_that_can_be_trained() -> None:
    assert METRICS.keys() <= {*TARGETS}
