"""The plan of a run and where its boxes stand."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.repositories import copy_repository
from testing.runs.large_run import PARTS, STEPS
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.artifacts.plans import PlanAdjustment, PlanStep
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw import passes, runs
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.page.plan_graph import PartNode, PlanGraph, StepNode, plan_graph
from clean_room_agent.report.page.plan_layout import plan_picture, rows_of
from clean_room_agent.report.trace import RunTrace, read_trace

NOW = "2026-03-04T12:00:00Z"


@pytest.fixture
def copied(tmp_path: Path, large: LargeRun) -> Path:
    """The run's repository, whose record the test may change."""
    return copy_repository(large.top, tmp_path / "shop")


def trace_of(top: Path) -> RunTrace:
    with contextlib.closing(get_connection("raw", repo_path=top, read_only=True)) as conn:
        row = conn.execute("SELECT task_id FROM orchestrator_runs").fetchone()
        return read_trace(conn, row[0])


def adjust(conn: Connection, plan: str, step: str = "s5") -> None:
    """After a step of the last part: what remains is this."""
    task_id = str(conn.execute("SELECT task_id FROM orchestrator_runs").fetchone()[0])
    row = passes.TaskRunRow(
        task_id=f"{task_id}:adjust:p5:after_{step}",
        repo_path="/r",
        mode="plan",
        execute_model="x",
        context_window=1,
        reserved_tokens=0,
        stages="",
        timestamp=NOW,
    )
    row_id = passes.append_task_run(conn, row)
    outcome = passes.TaskRunOutcome(
        success=True, total_tokens=0, total_latency_ms=0, completed_at=NOW, final_plan=plan
    )
    passes.finish_task_run(conn, row_id, outcome)
    placed = passes.PassRow(
        orchestrator_run_id=1,
        task_run_id=row_id,
        pass_type=PassType.ADJUST,
        part_id="p5",
        step_id=step,
        sequence_order=999,
        timestamp=NOW,
    )
    passes.append_pass(conn, placed)


def test_every_step_has_what_became_of_it(large: LargeRun) -> None:
    graph = plan_graph(large.trace)
    assert graph is not None
    assert [part.id for part in graph.parts] == [f"p{number}" for number in range(1, PARTS + 1)]
    assert [part.state for part in graph.parts] == ["done"] * (PARTS - 1) + ["failed"]
    last = graph.parts[-1].steps[-1]
    assert (last.id, last.state, last.attempts) == (f"s{STEPS}", "failed", ("p5/s5/1", "p5/s5/2"))
    assert graph.parts[1].needs == ("p1",)


def test_a_step_that_a_later_plan_lost_or_brought_is_told_so(copied: Path) -> None:
    with contextlib.closing(get_connection("raw", repo_path=copied)) as conn:
        lost, new = (PlanStep(id=name, description="One more.", target_files=()) for name in ("s6", "s7"))
        adjust(conn, PlanAdjustment(revised_steps=(lost,)).model_dump_json(), "s4")
        adjust(conn, PlanAdjustment(revised_steps=(new,)).model_dump_json(), "s5")
    graph = plan_graph(trace_of(copied))
    assert graph is not None
    states = {step.id: step.state for step in graph.parts[-1].steps}
    assert states == {
        **dict.fromkeys(("s1", "s2", "s3", "s4"), "done"),
        "s5": "failed",
        "s6": "dropped",
        "s7": "open",
    }


def test_a_plan_that_cannot_be_read_is_none(copied: Path) -> None:
    with contextlib.closing(get_connection("raw", repo_path=copied)) as conn:
        adjust(conn, '{"revised_steps": 7')
        row = runs.EventRow(task_id="6a0f31c2", kind=EventKind.META_PLAN_GIVEN, detail="[]", timestamp=NOW)
        runs.append_event(conn, row)
    graph = plan_graph(trace_of(copied))
    assert graph is not None
    assert len(graph.parts) == PARTS


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=4), min_size=1, max_size=6
    )
)
def test_every_box_stands_once_below_what_it_needs_if_that_can_be(needs: dict[str, list[str]]) -> None:
    rows = rows_of(needs)
    assert sorted(name for row in rows for name in row) == sorted(needs)
    place = {name: number for number, row in enumerate(rows) for name in row}
    earlier = {name: [each for each in wanted if each < name] for name, wanted in needs.items()}
    place = {name: number for number, row in enumerate(rows_of(earlier)) for name in row}
    assert all(place[each] < place[name] for name in earlier for each in earlier[name] if each in place)


def test_boxes_of_a_plan_do_not_overlap_and_lie_within_the_picture() -> None:
    def step(name: str, *needs: str) -> StepNode:
        return StepNode(
            id=name, description="word " * 40, files=(), symbols=(), needs=needs, state="open", attempts=()
        )

    def part(name: str, *needs: str) -> PartNode:
        steps = (step("s1"), step("s2"), step("s3", "s1", "s2"))
        return PartNode(id=name, description="x" * 300, files=(), needs=needs, state="open", steps=steps)

    graph = PlanGraph(summary="", parts=(part("a"), part("b"), part("c", "a", "b"), part("d", "nobody")))
    picture = plan_picture(graph)
    for boxes in (picture.parts, picture.steps):
        for at, one in enumerate(boxes):
            assert 0 <= one.x < one.x + one.width <= picture.width
            assert 0 <= one.y < one.y + one.height <= picture.height
            for other in boxes[at + 1 :]:
                beside = one.x + one.width <= other.x or other.x + other.width <= one.x
                assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
    assert len(picture.arrows) == 4 * 2 + 2
