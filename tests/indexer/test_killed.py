"""A killed `cra index` leaves the old state or the new one, and the next run finishes; two hundred of them: `benchmarks`."""

import sys
from pathlib import Path

import pytest
from benchmarks.index_killing import Bench, kill_some, make_cases
from tests.fakes.repositories import commit, make_repository

from clean_room_agent import proc

MODULE = '''\
"""Part {number}."""

from m{before} import part_{before}


def part_{number}(value):
    """What part {before} makes of it."""
    # the order matters, because the other is older
    return part_{before}(value) + {number}
'''


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a run are found in /proc")
def test_a_killed_run_leaves_the_old_state_or_the_new_one_and_the_next_finishes(tmp_path: Path) -> None:
    files = {
        f"m{number}.py": MODULE.format(number=number, before=max(number - 1, 0)) * 8 for number in range(40)
    }
    top = make_repository(tmp_path / "repo", files)
    for number in range(3):
        commit(top, {f"m{number}.py": MODULE.format(number=number, before=39)}, f"Change {number}")
    bench = Bench(top=top, work=tmp_path, env=proc.inherited_environment(without="GIT_"))
    tallies = kill_some(bench, make_cases(bench, commits=2, timed=False), kills=5, seed=3)
    assert [fault for tally in tallies.values() for fault in tally.faults] == []
    assert sum(tally.seen["killed"] for tally in tallies.values()) > 0
