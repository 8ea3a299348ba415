"""Units that are still to be made."""

import json

import pytest

from clean_room_agent.app.bootstrap import Unfinished
from clean_room_agent.cli.views.bootstrap import tell_waiting


def test_the_last_unit_brings_the_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    tell_waiting(Unfinished(units=5, left=2), as_json=False)
    assert capsys.readouterr().out.startswith("3 of 5 units are made")
    tell_waiting(Unfinished(units=5, left=2), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"dataset": None, "units": 5, "units_left": 2}
