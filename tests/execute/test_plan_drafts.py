import json

import pytest
from testing.packages import package, shown_file

from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.execute.plan_drafts import left_out, paths_shown, steps_as_json


def test_steps_are_written_as_a_model_answers_them_one_a_line() -> None:
    steps = [
        PlanStep(
            id=name,
            description=f"Do {name} für alle.",
            target_files=(TargetFile(path="a.py", role="create"),),
            target_symbols=("f",),
            depends_on=needs,
        )
        for name, needs in (("s1", ()), ("s2", ("s1",)))
    ]
    lines = steps_as_json(steps).split("\n")
    assert [json.loads(line)["id"] for line in lines] == ["s1", "s2"]
    assert json.loads(lines[1]) == {
        "description": "Do s2 für alle.",
        "files": [{"path": "a.py", "role": "create"}],
        "id": "s2",
        "needs": ["s1"],
        "symbols": ["f"],
    }
    assert list(json.loads(lines[0])) == sorted(json.loads(lines[0]))
    assert "für" in lines[0]


def test_paths_are_those_of_items_and_of_files_that_are_only_named_each_once() -> None:
    given = package(shown_file("a.py", "x\n"), shown_file("b.py", "x\n"), shown_file("a.py", "y\n"))
    assert paths_shown(given) == ("a.py", "b.py")


@pytest.mark.parametrize(("names", "notes"), [((), ()), (("hunk a",), ("did not fit the prompt: hunk a",))])
def test_what_did_not_fit_is_noted(names: tuple[str, ...], notes: tuple[str, ...]) -> None:
    assert left_out(names) == notes
