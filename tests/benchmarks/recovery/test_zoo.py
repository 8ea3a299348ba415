"""Every pathology ends as it should, soon, and says so in a line."""

import re
from pathlib import Path

import pytest
from benchmarks.recovery.zoo import ZOO, Pathology, live_through

LAST = {
    "complete": "complete: the tests pass",
    "partial": "partial",
    "failed": "failed",
    "needs_human": "waits",
}


@pytest.mark.parametrize("sick", ZOO, ids=lambda sick: sick.name)
def test_a_pathology_ends_as_is_due(sick: Pathology, tmp_path: Path) -> None:
    lived = live_through(sick, tmp_path)
    told = lived.told
    status, reason = told.recorded.ending
    assert (status, told.traces) == (sick.ends, {}), (reason, told.err)
    assert re.search(sick.reason, reason), reason
    assert len(told.recorded.calls) <= sick.most_calls
    said = told.out or told.err
    assert LAST[status] in said or reason in said
    assert reason in told.out + told.err
