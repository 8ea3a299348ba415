"""A whole run's change, shown to a program, is a patch."""

import pytest

from clean_room_agent.cli.views.show import is_patch
from clean_room_agent.report.call_texts import AttemptDiff


def diff(place: str) -> AttemptDiff:
    return AttemptDiff(place=place, attempt=1, outcome="accepted", stands=True, diff="--- a\n")


@pytest.mark.parametrize(
    ("places", "patch"), [(("",), True), (("part/step/1",), False), (("", ""), False), ((), False)]
)
def test_only_one_diff_of_a_whole_run_can_be_applied(places: tuple[str, ...], patch: bool) -> None:
    assert is_patch(tuple(diff(place) for place in places)) is patch
