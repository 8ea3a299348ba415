"""What tests do to the folder in which they run reaches neither a prompt nor the result."""

import json
from pathlib import Path

from testing.runs.solving import MONEY_TESTS, TILL, make_project

SCRIBBLE = "scribbled by a test"
SCRIBBLING = f"""\
import pathlib


def tearDownModule():
    path = pathlib.Path(__file__).parent.parent / "till" / "money.py"
    path.write_text(path.read_text() + "\\n# {SCRIBBLE}\\n")
"""
PLAN = {
    "analysis": "",
    "parts": [
        {"description": "Mend the split", "files": ["till/money.py"], "id": "early", "needs": []},
        {"description": "Then look again", "files": ["till/money.py"], "id": "late", "needs": ["early"]},
    ],
    "summary": "two parts",
}


def test_what_a_test_writes_into_a_source_file_is_never_shown_nor_kept(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**TILL, "tests/test_money.py": f"{MONEY_TESTS}\n\n{SCRIBBLING}"})
    told = project.solve_scripted({"Divide a task into parts": [json.dumps(PLAN)]})
    shown = [
        row.site.call_type
        for row in told.recorded.calls
        if f"\n# {SCRIBBLE}" in row.request.prompt or f"\n# {SCRIBBLE}" in row.answer.response
    ]
    assert told.recorded.outcomes[0] == "applied_and_passed"
    assert any(row.task_id.endswith("part_plan:late") for row in told.recorded.passes)
    assert shown == []
    assert SCRIBBLE not in project.branch_file("till/money.py").decode()
