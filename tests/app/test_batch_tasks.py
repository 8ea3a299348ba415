"""A file of tasks becomes jobs, or tells what is wrong with each line."""

from pathlib import Path

import pytest

from clean_room_agent.app.batch_tasks import read_jobs
from clean_room_agent.app.settings import Overrides
from clean_room_agent.errors import UsageError


def faults(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError) as caught:
        read_jobs(path, repo=tmp_path, batch="b", overrides=Overrides(), retry=False)
    return caught.value.message


def test_every_line_is_checked_before_anything_starts(tmp_path: Path) -> None:
    told = faults(tmp_path, "{", "[]", '{"task": "x", "issue": "y"}', '{"tsak": "x"}')
    assert "nothing was started" in told
    assert "line 1: not JSON" in told
    assert "line 2: not a JSON object" in told
    assert "line 3: give the task either" in told
    assert "line 4: unknown key 'tsak'" in told


def test_after_ten_faults_the_rest_is_counted(tmp_path: Path) -> None:
    assert "and 5 more lines" in faults(tmp_path, *["{"] * 15)


def test_a_file_without_tasks_is_refused(tmp_path: Path) -> None:
    assert "contains no task" in faults(tmp_path, "", "  ")
