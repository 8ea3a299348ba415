from tests.report.conftest import Solved

from clean_room_agent.report.call_texts import attempt_diffs


def test_of_the_attempts_those_that_stand_can_be_asked_for_alone(solved: Solved) -> None:
    every = attempt_diffs(solved.trace, accepted_only=False)
    assert [diff.stands for diff in every] == [False, True, True]
    assert attempt_diffs(solved.trace, accepted_only=True) == every[1:]
