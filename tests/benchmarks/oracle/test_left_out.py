"""The recovery table with each row left out: what is run, and what the table makes of it."""

from pathlib import Path

import pytest
from benchmarks.commits.commit_list import CommitEntry
from benchmarks.commits.solve_commit import Setting
from benchmarks.oracle.left_out import left_out_table, runs_without
from benchmarks.oracle.page import Row, keep_row

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import RecoveryRow, append_recovery_decision

SETTING = Setting(name="32k-noise", window=32768)


def entry(name: str) -> CommitEntry:
    return CommitEntry(
        id=name, repository="o/a", commit="c", base="b", environment="e", sources=("a.py",), changed_lines=2,
        test_files=(), command=(),
    )  # fmt: skip


def row(name: str, setting: str, *, solved: bool, calls: int) -> Row:
    return Row(
        id=name, setting=setting, window=32768, solved=solved, untouched=True, single_step=True, calls=calls,
        prompt_tokens=1, completion_tokens=1, fullest=1, over=0, judged_tokens=0, shared_tokens=0, seconds=1.0,
        own_seconds=1.0,
    )  # fmt: skip


def recorded(work: Path, name: str, *actions: str) -> None:
    folder = work / "solve" / name
    folder.mkdir(parents=True)
    conn = connect_file("raw", folder / f"{SETTING.name}.sqlite")
    for number, action in enumerate(actions):
        append_recovery_decision(
            conn, RecoveryRow(task_id=f"t:{number}", state="{}", rule="r", action=action, timestamp="now")
        )
    conn.commit()
    conn.close()


def test_a_row_is_left_out_only_where_it_decided(tmp_path: Path) -> None:
    recorded(tmp_path, "quiet")
    recorded(tmp_path, "busy", "retry", "replan", "retry")
    runs = list(
        runs_without(
            tmp_path, [entry("quiet"), entry("busy")], SETTING, ("refine", "retry", "replan", "replan_last")
        )
    )
    assert [(one.id, setting.name) for one, setting in runs] == [
        ("busy", "32k-noise-without_retry"),
        ("busy", "32k-noise-without_replan"),
        ("busy", "32k-noise-without_replan_last"),
    ]
    assert "retry" not in runs[0][1].rules
    assert "refine" in runs[0][1].rules


def test_a_commit_that_was_not_run_with_all_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="busy has no run with 32k-noise"):
        list(runs_without(tmp_path, [entry("busy")], SETTING, ("retry",)))


def test_what_was_not_run_again_counts_as_it_was(tmp_path: Path) -> None:
    keep_row(tmp_path, row("quiet", "32k-noise", solved=True, calls=10))
    keep_row(tmp_path, row("busy", "32k-noise", solved=True, calls=20))
    keep_row(tmp_path, row("busy", "32k-noise-without_retry", solved=False, calls=12))
    text = left_out_table(tmp_path, [entry("quiet"), entry("busy")], ["32k-noise"])
    assert "| 32k-noise | (all rows) |  | 2 of 2 | 30 |  |" in text
    assert "| 32k-noise | retry | 1 | 1 of 2 | 22 | busy |" in text
    assert "| 32k-noise | refine | 0 | 2 of 2 | 30 | nothing |" in text
