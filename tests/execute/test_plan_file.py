import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanArtifact, PlanStep, TargetFile
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.plan_file import (
    build_artifact,
    load_plan,
    plan_from_artifact,
    written_text,
)

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
    with pytest.raises(ArtifactError, match=r"p\.json is not valid JSON"):
        load_plan(text, "p.json")


def test_a_file_that_a_plan_is_to_modify_has_to_be_there() -> None:
    text = artifact().model_dump_json().replace("a.py", "till/mony.py")
    with pytest.raises(
        ArtifactError, match=r"till/mony\.py, which does not exist; did you mean till/money\.py\?"
    ):
        load_plan(text, "plan.json", ("till/money.py",))


PATHS = frozenset({"till/money.py", "till/receipt.py", "old.py"})
PLAN = """\
task = "Bills lose cents"
rationale = "Keep the order of the shares."

[[steps]]
description = "Give the rest to the first people."
files = ["till/money.py"]
symbols = ["split"]

[[steps]]
description = "Print it."
files = [
    "till/receipt.py",
    "till/notes.py",
    {path = "old.py", role = "delete"},
]
depends_on = ["s1"]
"""


def load_short(text: str, source: str = "plan.toml") -> PlanArtifact:
    plan = load_plan(text, source, PATHS)
    assert isinstance(plan, PlanArtifact)
    return plan


def fault_of(text: str) -> str:
    with pytest.raises(ArtifactError) as caught:
        load_short(text)
    return caught.value.message


def test_what_is_not_written_is_filled_in() -> None:
    plan = load_short(PLAN)
    assert (plan.task, plan.task_summary) == ("Bills lose cents", "Bills lose cents")
    assert plan.execution_order == ("plan/s1", "plan/s2")
    assert [(file.path, file.role) for file in plan.affected_files] == [
        ("till/money.py", "modify"),
        ("till/receipt.py", "modify"),
        ("till/notes.py", "create"),
        ("old.py", "delete"),
    ]
    followed = plan_from_artifact(plan)
    assert followed.rationale == "Keep the order of the shares."
    assert [(step.id, step.depends_on, step.target_symbols) for step in followed.steps] == [
        ("s1", (), ("split",)),
        ("s2", ("s1",), ()),
    ]


def test_a_task_with_files_is_one_step_that_changes_what_it_needs_of_them() -> None:
    (step,) = plan_from_artifact(load_short('task = "Mend it"\nfiles = ["till/money.py", "old.py"]')).steps
    assert (step.id, step.description, step.any_of_files) == ("s1", "Mend it", True)
    assert [target.path for target in step.target_files] == ["till/money.py", "old.py"]


def test_steps_may_be_sentences_over_the_files_of_the_plan() -> None:
    text = 'task = "Mend it"\nfiles = ["new.py"]\nsteps = ["Begin it.", "End it."]'
    steps = plan_from_artifact(load_short(text)).steps
    assert [(step.description, step.target_files[0].role) for step in steps] == [
        ("Begin it.", "create"),
        ("End it.", "modify"),
    ]


def test_json_says_the_same() -> None:
    data = {"task": "Mend it", "steps": [{"description": "Mend split.", "files": ["till/money.py"]}]}
    text = 'task = "Mend it"\n[[steps]]\ndescription = "Mend split."\nfiles = ["till/money.py"]'
    assert (
        load_short(json.dumps(data), "plan.json") == load_short(text) == load_short(json.dumps(data), "plan")
    )


def test_a_filled_in_plan_reads_back_and_is_followed_step_by_step() -> None:
    plan = load_short(PLAN)
    assert plan.as_steps
    assert load_short(plan.model_dump_json(), "plan.json") == plan


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('task = "Bills lose cents"\n', "", "task: missing"),
        ('"Bills lose cents"', '" "', "task: it is empty"),
        ('"Bills lose cents"', "7", "task: Input should be a valid string"),
        ("symbols =", "symbol =", "steps[1].symbol: unknown key; did you mean 'symbols'?"),
        ('description = "Print it."\n', "", "steps[2].description: missing"),
        ('role = "delete"', 'role = "burn"', "steps[2].files[3].role: Input should be"),
        ('["s1"]', '["s9"]', "step s2 needs s9, which is not in the plan"),
        ('"till/notes.py"', '"../notes.py"', "step s2: '../notes.py': the path"),
        ('"till/notes.py"', '".git/config"', "step s2: .git/config steers git"),
        (
            'files = ["till/money.py"]',
            'files = ["till/mony.py"]',
            "steps[1].files: till/mony.py does not exist; write 'till/money.py', or {path = ",
        ),
        ('files = ["till/money.py"]\n', "", "steps[1]: which files does it change? Write files"),
        ('description = "Print it."', "description = Print it.", "is not valid TOML: "),
    ],
)
def test_a_fault_is_told_with_its_key(before: str, after: str, fault: str) -> None:
    assert before in PLAN
    said = fault_of(PLAN.replace(before, after))
    assert said.startswith(("plan.toml: " + fault, "plan.toml " + fault))


def test_a_plan_without_files_says_what_to_write() -> None:
    assert fault_of('task = "Mend it"').startswith("plan.toml: steps: missing; each has a description")


@pytest.mark.parametrize("text", ["", "[]", "x", "[[steps]]\n[[steps]]", "steps = 3", 'files = "a"'])
def test_what_is_no_plan_is_an_error_that_names_the_file(text: str) -> None:
    assert fault_of(text).startswith("plan.toml")


def planned(*steps: PlanStep) -> PlanArtifact:
    """As the model planned it, in two parts that are done in the other order."""
    parts = (Part(id="b", description="B.", depends_on=("a",)), Part(id="a", description="A."))
    half = len(steps) // 2
    plans = (
        PartPlan(part_id="b", task_summary="B.", steps=steps[half:]),
        PartPlan(part_id="a", task_summary="A.", steps=steps[:half]),
    )
    return build_artifact(
        task_id="t",
        task='Two\nlines, """quotes""" and \\',
        model="m",
        created_at="now",
        meta_plan=MetaPlan(task_summary="Do both.", parts=parts, rationale="Because."),
        part_plans=plans,
    )


def step_of(name: str, path: str, *needs: str, some: bool = False) -> PlanStep:
    new, known = TargetFile(path=path, role="create"), TargetFile(path="till/money.py")
    return PlanStep(
        id=name, description=f"Do {path}.", target_files=(new, known), depends_on=needs, any_of_files=some
    )


def test_a_planned_plan_is_written_as_steps_that_read_back() -> None:
    plan = planned(
        step_of("s1", "a.py"),
        step_of("s2", "b.py", "s1"),
        step_of("s1", "c.py", some=True),
        step_of("s2", "d.py", "s1"),
    )
    text = written_text(plan, PATHS)
    again = load_short(text)
    assert again.task == plan.task
    steps = plan_from_artifact(again).steps
    assert [(step.id, step.target_files[0].path, step.depends_on, step.any_of_files) for step in steps] == [
        ("s1", "a.py", (), False),
        ("s2", "b.py", ("s1",), False),
        ("s3", "c.py", (), True),
        ("s4", "d.py", ("s3",), False),
    ]
    assert written_text(again, PATHS) == text


def test_a_file_whose_role_would_be_filled_in_otherwise_has_it_written() -> None:
    plan = load_short(
        'task = "x"\n[[steps]]\ndescription = "x"\nfiles = [{path = "money.py", role = "create"}]'
    )
    text = written_text(plan, PATHS)
    assert '{ path = "money.py", role = "create" }' in text
    assert load_short(text) == plan


def test_a_plan_whose_files_are_not_those_of_its_steps_cannot_be_written_as_steps() -> None:
    plan = load_short(PLAN).model_copy(update={"affected_files": load_short(PLAN).affected_files[:1]})
    with pytest.raises(ArtifactError, match="affected_files: with as_steps these are the target_files"):
        written_text(plan, PATHS)
    with pytest.raises(ArtifactError, match=r"p\.json: affected_files"):
        load_short(plan.model_dump_json(), "p.json")


WORDS = st.text(min_size=1).filter(lambda text: bool(text.strip()) and "\r" not in text)


@given(task=WORDS, description=WORDS, rationale=st.text().filter(lambda text: "\r" not in text))
def test_any_words_survive(task: str, description: str, rationale: str) -> None:
    data = {
        "task": task,
        "rationale": rationale,
        "steps": [{"description": description, "files": ["old.py"]}],
    }
    plan = load_short(json.dumps(data), "plan.json")
    again = load_short(written_text(plan, PATHS))
    assert again == plan


EVIDENCE = """
[evidence]
checks = ["assert split(100, 3) == [34, 33, 33]", 'sh: make "check"']
tests = ["tests/test_money.py::test_split"]
files = ["till/money.py"]
"""


def test_how_the_task_is_judged_stands_in_the_plan_and_reads_back() -> None:
    plan = load_short(PLAN + EVIDENCE)
    assert plan.evidence.checks[1] == 'sh: make "check"'
    assert plan.evidence.files == ("till/money.py",)
    assert load_short(written_text(plan, PATHS)).evidence == plan.evidence
    assert load_short(plan.model_dump_json(), "plan.json").evidence == plan.evidence
    assert "evidence" not in written_text(load_short(PLAN), PATHS)


def test_an_unknown_key_of_the_evidence_is_told_with_those_that_there_are() -> None:
    assert "did you mean 'checks'?" in fault_of(PLAN + EVIDENCE.replace("checks", "check"))
