"""A whole run by the decomposed route, as a command; that it goes on and replays is said in test_decomposed_runs.py."""

from pathlib import Path

from testing.runs.solving import MENDED_MONEY, make_project

DECOMPOSED = {"planning": "decomposed", "adjusting": "decomposed"}


def test_a_task_is_solved_by_small_questions(tmp_path: Path) -> None:
    till = make_project(tmp_path)
    told = till.solve_scripted(orchestrator=DECOMPOSED)
    assert told.code == 0, told.err
    kinds = {call.site.call_type for call in told.recorded.calls}
    assert "change_points" in kinds
    assert not {"meta_plan", "part_plan", "adjustment"} & kinds
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    assert "1 part: p1 (decomposed: 0 decisions, 0 by the model)" in till.run_here("show", "@")[1]
