import contextlib
import json
import shutil
from pathlib import Path

import pytest
from testing.repositories import make_repository
from tests.db.raw.samples import NOW, TASK, run, task_run

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli.main import run as cra
from clean_room_agent.db.connection import connect_file, get_connection
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrations, version_of
from clean_room_agent.db.raw.passes import ValidationRow, append_task_run, append_validation
from clean_room_agent.db.raw.runs import (
    EventRow,
    RunOutcome,
    append_event,
    append_orchestrator_run,
    set_outcome,
)
from clean_room_agent.report.run_list import age
from clean_room_agent.workspace import Workspace

OTHER = "9e9e9e9e-7c7e-4a5c-9a53-0f2f0a6f0d11"
ALONE = "77777777-7c7e-4a5c-9a53-0f2f0a6f0d11"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with a failed run, a complete one that is newer, and a context package between them."""
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        failed = append_orchestrator_run(conn, run(timestamp="2026-01-02T03:04:05.000Z"))
        set_outcome(
            conn,
            failed,
            RunOutcome(status=RunStatus.FAILED, completed_at=NOW, reason="no plan: \x1b[2Jno answer"),
        )
        append_task_run(conn, task_run(ALONE, timestamp="2026-01-03T00:00:00.000Z"))
        done = append_orchestrator_run(conn, run(OTHER, timestamp="2026-01-04T03:04:05.000Z"))
        outcome = RunOutcome(
            status=RunStatus.COMPLETE, completed_at=NOW, branch="cra/9e9e9e9e", result_commit="c" * 40
        )
        set_outcome(conn, done, outcome)
        append_validation(
            conn,
            ValidationRow(
                attempt_id=None,
                success=True,
                test_output="",
                task_id=OTHER,
                kind="final",
                tests_run=8,
                tests_passed=8,
                timestamp=NOW,
            ),
        )
    return top


def test_runs_are_listed_newest_first_within_80_columns(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cra(("runs", "--repo", str(top))) == 0
    lines = capsys.readouterr().out.splitlines()
    ids = [line[:8] for line in lines if line[:8] in {OTHER[:8], ALONE[:8], TASK[:8]}]
    assert ids == [OTHER[:8], ALONE[:8], TASK[:8]]
    assert max(map(len, lines)) <= 80
    assert any("cra/9e9e9e9e, 8 passed, 0 failed" in line for line in lines)
    assert any("mend it" in line for line in lines)


def test_escapes_in_recorded_words_do_not_reach_the_terminal(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cra(("runs", "--repo", str(top))) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "no plan: \\x1b[2Jno answer" in out


def test_a_record_of_an_older_schema_is_brought_up_and_a_newer_one_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    workspace = Workspace(repo=top)
    workspace.create()
    first = Path(shutil.copytree(SCHEMA_FOLDER, tmp_path / "schema"))
    for later in (first / "raw").glob("*.sql"):
        if not later.name.startswith("0001"):
            later.unlink()
    with contextlib.closing(connect_file("raw", workspace.raw, schema=first)) as conn:
        append_orchestrator_run(conn, run())
    for command in (("runs",), ("show", TASK[:8])):
        assert cra((*command, "--repo", str(top))) == 0
        assert TASK[:8] in capsys.readouterr().out
    with contextlib.closing(connect_file("raw", workspace.raw)) as conn:
        assert version_of(conn) == len(migrations(SCHEMA_FOLDER / "raw"))
        conn.execute("PRAGMA user_version = 99")
    assert cra(("runs", "--repo", str(top))) == 2
    assert "has schema 99" in capsys.readouterr().err


def test_a_repository_without_runs_says_what_to_do_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    assert cra(("runs", "--repo", str(top))) == 0
    assert capsys.readouterr().out == "no runs here yet; begin with: cra init\n"
    assert not (top / ".clean_room").exists()
    assert cra(("runs", "--repo", str(top), "--json")) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("2026-01-02T03:04:05.900Z", "0 s"),
        ("2026-01-02T03:03:00.000Z", "1 min"),
        ("2026-01-01T03:04:05.000Z", "1 d"),
        ("2024-01-01T03:04:05.000Z", "2 y"),
    ],
)
def test_age_is_said_in_its_largest_whole_unit(then: str, words: str) -> None:
    assert age(then, "2026-01-02T03:04:05.000Z") == words


def test_a_discarded_run_does_not_name_its_branch(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        append_event(conn, EventRow(task_id=OTHER, kind="discarded", timestamp=NOW))
    assert cra(["runs", "--repo", str(top)]) == 0
    shown = capsys.readouterr().out
    assert "branch deleted" in shown
    assert "cra/9e9e9e9e" not in shown
