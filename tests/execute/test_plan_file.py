import json
from typing import Any

import pytest

from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanArtifact, PlanStep, TargetFile
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.plan_artifact import build_artifact, plan_from_artifact
from clean_room_agent.execute.plan_file import load_plan

PART = Part(id="p1", description="Change x.", affected_files=("a.py",))
META = MetaPlan(task_summary="Make x two.", parts=(PART,), rationale="x is one.")


def artifact() -> PlanArtifact:
    new = (TargetFile(path="b.py", role="create"), TargetFile(path="a.py"))
    plans = (
        PartPlan(
            part_id="p1",
            task_summary="Change x.",
            steps=(
                PlanStep(
                    id="s2",
                    description="Use b.",
                    target_files=new,
                    target_symbols=("x", "y"),
                    depends_on=("s1",),
                ),
                PlanStep(
                    id="s1",
                    description="Change x.",
                    target_files=(TargetFile(path="a.py"),),
                    target_symbols=("x",),
                ),
            ),
        ),
    )
    return build_artifact(
        task_id="t",
        task="Make x two.",
        model="m",
        created_at="2026-01-01T00:00:00Z",
        meta_plan=META,
        part_plans=plans,
    )


def test_the_reviewable_plan_collects_changes_by_file_in_order() -> None:
    plan = artifact()
    assert plan.execution_order == ("p1/s1", "p1/s2")
    assert [
        (file.path, file.role, [change.symbol for change in file.changes]) for file in plan.affected_files
    ] == [
        ("a.py", "modify", ["x", ""]),
        ("b.py", "create", [""]),
    ]
    first, second = plan.affected_files[0].changes
    assert (first.depended_by, second.depends_on) == (("p1/s2",), ("p1/s1",))


def test_a_reviewed_plan_is_one_step_over_its_files() -> None:
    (single,) = plan_from_artifact(artifact()).steps
    assert single.id == "plan"
    assert [(file.path, file.role) for file in single.target_files] == [
        ("a.py", "modify"),
        ("b.py", "create"),
    ]
    assert single.target_symbols == ("x",)
    assert "  - modify x: Change x." in single.description


def test_plan_files_read_back_with_fields_that_are_not_known() -> None:
    data = artifact().model_dump(mode="json") | {"reviewer": "me"}
    plan = load_plan(json.dumps(data), "plan.json")
    assert isinstance(plan, PlanArtifact)
    assert plan.model_dump(mode="json") == data
    meta = load_plan("\ufeff" + META.model_dump_json(), "meta.json")
    assert meta == META


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": None}, "plan.json: task_id: Input should be a valid string"),
        ({"affected_files": []}, "plan.json: affected_files: at least one file is needed"),
        ({"affected_files": [{"path": "../x"}]}, "plan.json: affected_files: '../x': the path holds"),
        (
            {"affected_files": [{"path": "a", "role": "burn"}]},
            "plan.json: affected_files.0.role: Input should be",
        ),
        ({"version": 9}, "plan.json: version: 9 is newer than this program's 1"),
        ({"parts": []}, "plan.json: parts: at least one part is needed"),
    ],
)
def test_a_plan_file_that_cannot_be_used_is_an_error_that_names_the_field(
    change: dict[str, Any], message: str
) -> None:
    data = artifact().model_dump(mode="json") | change
    with pytest.raises(ArtifactError) as caught:
        load_plan(json.dumps(data), "plan.json")
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "{}", "[" * 100_000])
def test_a_file_that_is_no_plan_is_an_error(text: str) -> None:
    with pytest.raises(ArtifactError, match=r"plan\.json"):
        load_plan(text, "plan.json")


def test_a_missing_field_is_named() -> None:
    data = artifact().model_dump(mode="json")
    del data["execution_order"], data["task"]
    with pytest.raises(ArtifactError, match="task: Field required"):
        load_plan(json.dumps(data), "plan.json")


@pytest.mark.parametrize("value", ['"\\ud800"', "NaN", "-Infinity", "1e400", "9" * 5000])
def test_a_plan_that_json_cannot_carry_is_refused(value: str) -> None:
    text = META.model_dump_json().replace('"version":1', f'"version":1,"more":{value}')
    with pytest.raises(ArtifactError, match=r"p\.json (is not valid JSON|holds half a character)"):
        load_plan(text, "p.json")


def test_a_file_that_a_plan_is_to_modify_has_to_be_there() -> None:
    text = artifact().model_dump_json().replace("a.py", "till/mony.py")
    with pytest.raises(
        ArtifactError, match=r"till/mony\.py, which does not exist; did you mean till/money\.py\?"
    ):
        load_plan(text, "plan.json", ("till/money.py",))
