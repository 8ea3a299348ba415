"""Short forms of `benchmarks.faults applies`: kills and power cuts in `cra apply` and `--undo`."""

from pathlib import Path

import pytest
from testing.faults import applies
from testing.faults.cuts import has_strace

pytestmark = pytest.mark.timeout(900)


def test_a_kill_leaves_each_file_old_or_new_and_the_next_command_all_of_them(tmp_path: Path) -> None:
    losses = applies.kill_all(tmp_path, 3, 1)
    assert losses.first == {}
    assert losses.tried >= 6


@pytest.mark.skipif(not has_strace(), reason="strace is not installed")
def test_a_power_cut_leaves_all_files_old_or_all_new(tmp_path: Path) -> None:
    losses = applies.cut_all(tmp_path / "cuts", 12)
    assert losses.first == {}
    assert losses.tried == 12
