"""The parts of a run's time are those of its record."""

from datetime import timedelta
from pathlib import Path

import pytest
from benchmarks.overhead.__main__ import recorded_parts
from testing.repositories import make_repository

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import TimeSpanRow, append_time_span
from clean_room_agent.db.rows import moment

BEGAN = moment("2026-03-04T05:06:07Z")


def test_pieces_of_one_kind_are_summed_and_those_of_git_told_apart(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "x = 1\n"})
    spans = (
        (TimeKind.GIT, "checkout", 0, 1),
        (TimeKind.RETRIEVAL, "meta_plan", 1, 3),
        (TimeKind.GIT, "worktree", 3, 4),
        (TimeKind.GIT, "checkout", 5, 7),
        (TimeKind.RETRIEVAL, "impl:p1:s1", 7, 8),
    )
    with Record.open(top, clock=utc_now) as record:
        for kind, detail, start, end in spans:
            row = TimeSpanRow(
                task_id="t",
                kind=kind,
                detail=detail,
                began_at=(BEGAN + timedelta(seconds=start)).isoformat(),
                ended_at=(BEGAN + timedelta(seconds=end)).isoformat(),
            )
            record.write(append_time_span, row)
    assert recorded_parts(top, "t") == pytest.approx({"git: checkout": 3, "retrieval": 3, "git: worktree": 1})
    assert list(recorded_parts(top, "t")) == ["git: checkout", "retrieval", "git: worktree"]
