"""The short form of `benchmarks.faults applies`: kills in `cra apply` and `--undo`."""

from pathlib import Path

import pytest
from testing.faults import applies

pytestmark = pytest.mark.timeout(900)


def test_a_kill_leaves_each_file_old_or_new_and_the_next_command_brings_all_of_them(tmp_path: Path) -> None:
    losses = applies.kill_all(tmp_path, 3, 1)
    assert losses.first == {}
    assert losses.tried >= 6
