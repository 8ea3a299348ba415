import sqlite3

from testing.runs.decision_rows import decision_row
from tests.db.raw.samples import NOW, PASS, TASK

from clean_room_agent.db.raw import decisions

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def decision(task_id: str, path: str) -> decisions.DecisionRow:
    return decision_row(
        task_id=task_id,
        stage="scope",
        file_id=1,
        tier=1,
        included=True,
        reason="named",
        timestamp=NOW,
        path=path,
    )


def test_decisions_can_be_asked_for_by_file(conn: sqlite3.Connection) -> None:
    rows = (decision(PASS, "a.py"), decision(PASS, "b.py"), decision(OTHER, "a.py"))
    assert decisions.append_decisions(conn, rows) == (1, 2, 3)
    assert [row.subject.path for row in decisions.list_decisions(conn, TASK)] == ["a.py", "b.py"]
