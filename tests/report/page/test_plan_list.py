"""The plan of a run, with what became of each step."""

from msgspec.structs import replace
from tests.report.conftest import Solved

from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.artifacts.plans import PartPlan, PlanAdjustment, PlanStep
from clean_room_agent.db.raw.runs import EventRow
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.page.plan_list import planned_parts
from clean_room_agent.report.trace import RunTrace


def test_every_step_has_what_became_of_it(solved: Solved) -> None:
    (part,) = planned_parts(solved.trace)
    assert (part.id, part.description) == ("split", "Split without loss.")
    assert [(step.id, step.needs, step.state, step.places) for step in part.steps] == [
        ("s1", (), "done", ("split/s1/1", "split/s1/2")),
        ("s2", ("s1",), "done", ("split/s2/1",)),
    ]


def with_last_plan(trace: RunTrace, plan: str) -> RunTrace:
    """The run of which the last adjustment made this plan."""
    last = trace.passes[-1]
    return replace(trace, passes=(*trace.passes[:-1], replace(last, row=replace(last.row, final_plan=plan))))


def test_a_step_that_a_later_plan_lost_or_brought_is_told_so(solved: Solved) -> None:
    untried = replace(
        solved.trace, passes=tuple(entry for entry in solved.trace.passes if "s2" not in entry.place)
    )
    step = PlanStep(id="s7", description="One more.", target_files=())
    adjusted = with_last_plan(untried, PlanAdjustment(revised_steps=(step,)).model_dump_json())
    (part,) = planned_parts(adjusted)
    assert {step.id: step.state for step in part.steps} == {
        "s1": "done",
        "s2": "dropped from the plan",
        "s7": "not begun",
    }


def test_the_steps_of_a_plan_that_was_given_are_those_of_the_run(solved: Solved) -> None:
    step = PlanStep(id="s1", description="As reviewed.", target_files=())
    given = PlanGiven(single=PartPlan(part_id="task", task_summary="", steps=(step,)))
    rows = [EventRow(task_id="t", kind=kind, detail=told, timestamp="") for kind, told in given.events]
    (part,) = planned_parts(replace(solved.trace, passes=(), events=tuple(rows)))
    assert [(step.description, step.state) for step in part.steps] == [("As reviewed.", "not begun")]


def test_a_plan_that_cannot_be_read_is_none(solved: Solved) -> None:
    given = EventRow(task_id="t", kind=EventKind.META_PLAN_GIVEN, detail="[]", timestamp="")
    broken = replace(with_last_plan(solved.trace, '{"revised_steps": 7'), events=(given,))
    assert planned_parts(broken) == planned_parts(solved.trace)
