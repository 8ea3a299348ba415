import json
from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport
from testing.packages import package, shown_file

from clean_room_agent.artifacts.context import ContextPackage, DroppedItem
from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanStep, TargetFile
from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.execute.plan import (
    MAX_FILES,
    adjust,
    files_in_scope,
    make_meta_plan,
    make_part_plan,
    whole_part,
    whole_task,
)
from clean_room_agent.execute.plan_drafts import (
    AdjustmentAsked,
    PartAsked,
    PlanDraft,
    PlanLimits,
    StepOutcome,
)
from clean_room_agent.execute.plan_validation import MAX_WORDS, meta_plan_faults, part_plan_faults
from clean_room_agent.llm.transport import Finish, RawAnswer

CONTEXT = package(shown_file("a.py", "x = 1\n"), task="Make x two.")
LIMITS = PlanLimits(max_parts=3, max_steps=3, max_lines=200)
PART = Part(id="p1", description="Change x.", affected_files=("a.py",))
META = MetaPlan(task_summary="Make x two.", parts=(PART,), rationale="x is one.")


PATHS = frozenset({"a.py"})


def meta_answer(*parts: dict[str, Any]) -> str:
    return json.dumps({"analysis": "x is one.", "parts": parts, "summary": "Make x two."})


def steps_answer(*steps: dict[str, Any]) -> str:
    return json.dumps({"analysis": "x is one.", "steps": steps, "summary": "Change x."})


def part_of(name: object, *needs: str, files: tuple[str, ...] = ("a.py",)) -> dict[str, Any]:
    return {"description": "Change x.", "files": files, "id": name, "needs": needs}


def step_of(name: str, *needs: str, path: str = "a.py", role: str = "modify") -> dict[str, Any]:
    return {
        "description": f"Do {name}.",
        "files": [{"path": path, "role": role}],
        "id": name,
        "needs": needs,
        "symbols": ["x"],
    }


def step(name: str, path: str = "a.py") -> PlanStep:
    return PlanStep(
        id=name, description=f"Do {name}.", target_files=(TargetFile(path=path),), target_symbols=("x",)
    )


def meta_plan(transport: ScriptedTransport, *, shown: ContextPackage = CONTEXT) -> PlanDraft[MetaPlan]:
    models = model_client(transport, MemorySink())
    return make_meta_plan(
        models,
        shown,
        pass_id="t:meta_plan",
        evidence=Evidence(tests=(FailingTest(name="test_x"),)),
        limits=LIMITS,
    )


def asked(paths: frozenset[str] = PATHS, meta: MetaPlan = META) -> PartAsked:
    return PartAsked(part=PART, meta=meta, evidence=Evidence(), diff="", paths=paths, limits=LIMITS)


def part_plan(
    transport: ScriptedTransport, paths: frozenset[str] = PATHS, *, meta: MetaPlan = META
) -> PlanDraft[PartPlan]:
    models = model_client(transport, MemorySink())
    return make_part_plan(models, CONTEXT, asked(paths, meta), pass_id="t:part_plan:p1")


def test_the_planner_of_a_part_is_told_of_the_whole_plan_where_there_are_other_parts() -> None:
    other = Part(id="p2", description="Change y.", affected_files=("b.py",))
    for meta, told in ((META, False), (MetaPlan(task_summary="Two and three.", parts=(PART, other)), True)):
        transport = ScriptedTransport([steps_answer(step_of("s1"))])
        part_plan(transport, meta=meta)
        assert ("## Plan for the whole task" in transport.requests[0].prompt) is told


def test_a_task_is_divided_into_parts() -> None:
    planned = meta_plan(
        ScriptedTransport([meta_answer(part_of("p1"), part_of("p2", "p1", files=("./b.py", "b.py")))])
    )
    assert planned.value is not None
    assert [(part.id, part.affected_files, part.depends_on) for part in planned.value.parts] == [
        ("p1", ("a.py",), ()),
        ("p2", ("b.py",), ("p1",)),
    ]
    assert (planned.faults, planned.notes, planned.call_ids) == ((), (), (1,))


def test_names_that_cannot_stand_in_a_pass_id_are_replaced_and_noted() -> None:
    planned = meta_plan(
        ScriptedTransport(
            [meta_answer(part_of("p2"), part_of("The Parser!", "p2"), part_of(3, "The Parser!"))]
        )
    )
    assert planned.value is not None
    assert [(part.id, part.depends_on) for part in planned.value.parts] == [
        ("p2", ()),
        ("p2x", ("p2",)),
        ("3", ("p2x",)),
    ]
    assert planned.notes == ("id 'The Parser!' became p2x",)


def test_a_faulty_plan_goes_back_once_with_its_faults() -> None:
    faulty = meta_answer(part_of("p1", "p9"), part_of("p2"))
    transport = ScriptedTransport([faulty, meta_answer(part_of("p1"))])
    planned = meta_plan(transport)
    assert planned.value is not None
    assert planned.call_ids == (1, 2)
    assert planned.notes == ("refused: part p1 needs p9, which is not in the plan",)
    again = transport.requests[1].prompt
    assert "- part p1 needs p9, which is not in the plan" in again
    assert faulty in again
    assert "refused" not in transport.requests[0].prompt


def test_what_stands_alone_needs_nothing() -> None:
    planned = meta_plan(ScriptedTransport([meta_answer(part_of("p1", "p9", "Zig"))]))
    assert planned.value is not None
    assert [part.depends_on for part in planned.value.parts] == [()]
    assert planned.notes[-1] == "p1 stands alone and needs nothing: p9, Zig"
    steps = part_plan(ScriptedTransport([steps_answer(step_of("s1", "s1"))]))
    assert steps.value is not None
    assert [step.depends_on for step in steps.value.steps] == [()]
    assert steps.notes == ("s1 stands alone and needs nothing: s1",)


def test_what_is_written_twice_is_meant_once() -> None:
    planned = part_plan(ScriptedTransport([steps_answer(*[step_of("s1", "s1")] * 3)]))
    assert planned.value is not None
    assert [(step.id, step.depends_on) for step in planned.value.steps] == [("s1", ())]
    assert planned.notes == ("written twice: s1", "s1 stands alone and needs nothing: s1")


def test_a_plan_that_stays_faulty_is_no_plan() -> None:
    circle = meta_answer(part_of("p1", "p2"), part_of("p2", "p1"))
    planned = meta_plan(ScriptedTransport([circle] * 2))
    assert planned.value is None
    assert planned.faults == ("these parts need one another: p1, p2",)


def test_what_cannot_be_read_after_its_repair_is_asked_for_once_more() -> None:
    transport = ScriptedTransport(["I cannot.", "Really not.", meta_answer(part_of("p1"))])
    planned = meta_plan(transport)
    assert planned.value is not None
    assert "the answer holds no JSON object" in transport.requests[-1].prompt


@pytest.mark.parametrize("finish", ["length", "repeated", "copied"])
def test_who_finds_no_end_twice_is_not_asked_again(finish: Finish) -> None:
    endless = RawAnswer(request_body="{}", text="{" * 9, finish=finish)
    transport = ScriptedTransport([endless] * 2)
    planned = part_plan(transport)
    assert planned.value is None
    assert len(transport.requests) == 2


def test_supporting_items_that_do_not_fit_are_noted() -> None:
    shown = package(
        shown_file("a.py", "x = 1\n"),
        shown_file("b.py", "y = 1 + 2\n" * 700, detail="supporting"),
        task="Make x two.",
    )
    planned = meta_plan(ScriptedTransport([meta_answer(part_of("p1"))]), shown=shown)
    assert planned.notes == ("did not fit the prompt: supporting b.py",)


def test_a_part_is_divided_into_steps() -> None:
    answer = steps_answer(step_of("s1"), step_of("s2", "s1", path="new.py", role="Add"))
    planned = part_plan(ScriptedTransport([answer]))
    assert planned.value is not None
    assert planned.value.part_id == "p1"
    assert [
        (step.id, step.target_files[0].path, step.target_files[0].role) for step in planned.value.steps
    ] == [
        ("s1", "a.py", "modify"),
        ("s2", "new.py", "create"),
    ]


def test_a_plan_beside_its_part_is_doubted_once_and_may_be_meant_so() -> None:
    beside, right = steps_answer(step_of("s1", path="b.py")), steps_answer(step_of("s1"))
    doubt = "no step changes a.py, which this part is about"
    transport = ScriptedTransport([beside, right])
    planned = part_plan(transport, PATHS | {"b.py"})
    assert planned.value is not None
    assert planned.value.steps[0].target_files == (TargetFile(path="a.py"),)
    assert planned.notes == (f"refused: {doubt}",)
    assert doubt in transport.requests[1].prompt
    planned = part_plan(ScriptedTransport([beside, beside]), PATHS | {"b.py"})
    assert planned.value is not None
    assert planned.value.steps[0].target_files == (TargetFile(path="b.py"),)
    unreadable = part_plan(ScriptedTransport([beside, "No.", "Never."]), PATHS | {"b.py"})
    assert unreadable.value is None


NONE_REMAINS = '{"analysis": "All done.", "changes": ["s3: done"], "steps": []}'


def adjusted(transport: ScriptedTransport, *remaining: PlanStep) -> PlanDraft[Any]:
    outcomes = (
        StepOutcome(step=step("s1"), succeeded=True),
        StepOutcome(step=step("s2"), succeeded=False, detail="test_x failed"),
    )
    left = AdjustmentAsked(
        part=PART,
        remaining=remaining,
        outcomes=outcomes,
        task="Make x two.",
        diff="",
        paths=PATHS,
        limits=LIMITS,
    )
    return adjust(model_client(transport, MemorySink()), None, left, pass_id="t:adjust:p1:after_s2")


def test_nothing_is_asked_where_nothing_remains() -> None:
    planned = adjusted(ScriptedTransport([]))
    assert planned.value is not None
    assert planned.value.revised_steps == ()
    assert planned.call_ids == ()


def test_remaining_steps_are_revised_and_done_ones_left_out() -> None:
    answer = json.dumps(
        {"analysis": "s3 stays.", "changes": [], "steps": [step_of("s1"), step_of("s3", "s1")]}
    )
    transport = ScriptedTransport([answer])
    planned = adjusted(transport, step("s3"))
    assert planned.value is not None
    assert [step.id for step in planned.value.revised_steps] == ["s3"]
    assert planned.notes == ("left out again: step s1, which is done",)
    assert "- s2, failed: Do s2. (test_x failed)" in transport.requests[0].prompt


def test_an_adjustment_may_be_empty() -> None:
    planned = adjusted(ScriptedTransport([NONE_REMAINS, "yes"]), step("s3"))
    assert planned.value is not None
    assert planned.value.revised_steps == ()
    assert planned.value.changes_made == ("s3: done",)
    (verdict,) = planned.verdicts
    assert (verdict.question, verdict.item, verdict.yes) == ("goal_check", "s3 to nothing", True)


def test_an_adjustment_that_drops_what_the_task_asks_for_goes_back_once() -> None:
    kept = json.dumps({"analysis": "", "changes": [], "steps": [step_of("s3")]})
    transport = ScriptedTransport([NONE_REMAINS, "no", kept])
    planned = adjusted(transport, step("s3"))
    assert planned.value is not None
    assert [one.id for one in planned.value.revised_steps] == ["s3"]
    assert (
        "not all that the task asks for is done; keep what these steps were for: s3"
        in transport.requests[2].prompt
    )
    assert "Make x two." in transport.requests[1].prompt
    again = adjusted(ScriptedTransport([NONE_REMAINS, "no", NONE_REMAINS]), step("s3"))
    assert again.value is None
    assert again.faults[0].startswith("with this plan, not all that the task asks for is done")


def test_a_part_planned_again_is_compared_with_the_goal() -> None:
    failed = (PartPlan(part_id="p1", task_summary="", steps=(step("s1"),)), ("step s1 failed: refused",))
    transport = ScriptedTransport([steps_answer(step_of("s1")), "no", steps_answer(step_of("s2")), "yes"])
    planned = make_part_plan(
        model_client(transport, MemorySink()),
        CONTEXT,
        asked(),
        pass_id="t:part_plan:p1:replan_1",
        failed=failed,
        done=(step("s0"),),
    )
    assert planned.value is not None
    assert [one.id for one in planned.value.steps] == ["s2"]
    assert "## Steps so far\n- s0, done: Do s0.\n- step s1 failed: refused\n" in transport.requests[1].prompt
    assert [verdict.yes for verdict in planned.verdicts] == [False, True]
    assert "step s1 failed: refused" in transport.requests[1].prompt


def test_a_path_that_can_only_be_one_file_is_put_right_and_noted() -> None:
    planned = part_plan(ScriptedTransport([steps_answer(step_of("s1", path="src/a.py"))]))
    assert planned.value is not None
    assert planned.value.steps[0].target_files == (TargetFile(path="a.py"),)
    assert (planned.faults, planned.notes) == ((), ("src/a.py does not exist and can only be a.py",))


TASK = "Make x two."
TREE_PATHS = frozenset({"a.py", "b.py", "till/money.py"})


def scope(shown: ContextPackage) -> tuple[str, ...]:
    return files_in_scope(shown, protected=("*.key",), scripts=("run.sh",))


def test_the_scope_is_what_was_shown_best_first_then_what_did_not_fit() -> None:
    shown = package(
        shown_file("outlined.py", "x\n", detail="supporting", tier=2),
        shown_file("found.py", "x\n", tier=4),
        shown_file("whole.py", "x\n", tier=2),
        shown_file("named.py", "x\n", detail="supporting", tier=1),
    )
    dropped = DroppedItem(path="large.py", detail="primary", tokens=9000, reason="does not fit")
    assert scope(replace(shown, dropped=(dropped,))) == (
        "named.py",
        "whole.py",
        "outlined.py",
        "found.py",
        "large.py",
    )


@pytest.mark.parametrize("path", ["tests/test_a.py", "conftest.py", "run.sh"])
def test_what_decides_whether_tests_pass_is_in_scope_only_where_the_task_names_it(path: str) -> None:
    assert scope(package(shown_file(path, "x\n"))) == ()
    assert scope(package(shown_file(path, "x\n"), task=f"Mend {path}.")) == (path,)


def test_what_no_edit_may_touch_is_never_in_scope() -> None:
    shown = package(
        shown_file("secret.key", "x\n"), shown_file(".git/config", "x\n"), task="secret.key .git/config"
    )
    assert scope(shown) == ()


def test_signatures_and_callers_are_not_what_is_to_be_changed() -> None:
    assert scope(package(replace(shown_file("a.py", "x\n"), section="callers"))) == ()


def test_the_whole_task_is_a_valid_plan_of_one_part() -> None:
    plan = whole_task("Make x two.\n", tuple(f"{name}.py" for name in "abcdef"), "no valid plan: no JSON")
    assert meta_plan_faults(plan, max_parts=1) == ()
    (part,) = plan.parts
    assert (part.description, len(part.affected_files)) == ("Make x two.", MAX_FILES)
    assert plan.rationale == "no valid plan: no JSON"


def test_a_long_task_stands_for_itself_by_its_beginning() -> None:
    plan = whole_task("word " * 500, ("a.py",), "")
    assert len(plan.task_summary) <= MAX_WORDS + 4
    assert plan.task_summary.endswith("word ...")


def test_a_part_is_one_step_over_the_files_that_it_names() -> None:
    part = Part(id="p1", description="Change x.", affected_files=("money.py", "a.py", "new.py"))
    plan = whole_part(part, TASK, ("b.py",), TREE_PATHS)
    assert plan is not None
    assert part_plan_faults(plan, paths=TREE_PATHS, max_steps=1) == ()
    (step,) = plan.steps
    assert step.target_files == (
        TargetFile(path="till/money.py"),
        TargetFile(path="a.py"),
        TargetFile(path="new.py", role="create"),
    )
    assert step.any_of_files


def test_a_part_that_names_no_file_takes_those_in_scope() -> None:
    plan = whole_part(Part(id="p1", description="Change x."), TASK, ("b.py",), TREE_PATHS)
    assert plan is not None
    (step,) = plan.steps
    assert (step.description, step.target_files) == ("Change x.", (TargetFile(path="b.py"),))


def test_names_that_no_file_of_the_tree_is_like_are_not_created() -> None:
    files = ("finester", "1.1.2.1.0", "b.rs")
    plan = whole_part(
        Part(id="p1", description="Change x.", affected_files=files), TASK, ("b.py",), TREE_PATHS
    )
    assert plan is not None
    assert plan.steps[0].target_files == (TargetFile(path="b.py"),)


@pytest.mark.parametrize(("task", "created"), [(TASK, False), ("Add tests/test_x.py.", True)])
def test_a_test_file_is_created_only_where_the_task_names_it(task: str, created: bool) -> None:
    part = Part(id="p1", description="Change x.", affected_files=("a.py", "tests/test_x.py"))
    plan = whole_part(part, task, ("b.py",), TREE_PATHS)
    assert plan is not None
    assert (TargetFile(path="tests/test_x.py", role="create") in plan.steps[0].target_files) is created


def test_where_there_is_no_file_there_is_no_step() -> None:
    assert whole_part(Part(id="p1", description="Change x."), TASK, (), TREE_PATHS) is None


def test_a_path_where_no_file_can_be_is_left_out() -> None:
    places = Places(TREE_PATHS, {"link.py": "a link"})
    part = Part(id="p1", description="Change x.", affected_files=("link.py", "a.py/b.py", "new.py"))
    plan = whole_part(part, TASK, ("b.py",), places)
    assert plan is not None
    assert plan.steps[0].target_files == (TargetFile(path="new.py", role="create"),)
