"""Every pathology ends as it should, soon, and says so in a line."""

import re
from pathlib import Path

import pytest
from testing.runs.memory_till import memory_till
from testing.servers.ollama_script import Answer, ChatCall
from tests.orchestrator.pathologies import ZOO, Pathology, SickModel


@pytest.mark.parametrize("sick", ZOO, ids=lambda sick: sick.name)
def test_a_pathology_ends_as_is_due(sick: Pathology, tmp_path: Path) -> None:
    with memory_till(tmp_path / "till", sick.project, dict(sick.changed), task=sick.task) as till:
        model = SickModel(till.oracle, sick, tmp_path)

        def answer(call: ChatCall) -> Answer | str:
            said = model(call)
            # What the test command of such a project looks for.
            till.tests_are_broken = (tmp_path / "gone").exists()
            return said

        told = till.solve(answer, **sick.tables)
    status, reason = told.ending
    assert status == sick.ends, reason
    assert re.search(sick.reason, reason), reason
    assert len(told.recorded.calls) <= sick.most_calls
