import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.db.raw.samples import sample
from tests.report.conftest import LargeRun

from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.report.trace import choose
from clean_room_agent.report.validation import counts, render_validations, validation_lines


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timed_out": True}, "timed out"),
        ({"tests_passed": None}, "exit 1"),
        ({"tests_passed": 4}, "4 passed, 1 failed"),
    ],
)
def test_a_test_run_is_counted_in_a_few_words(changes: dict[str, object], said: str) -> None:
    assert counts(sample(ValidationRow, **changes)) == said


def test_the_runs_own_test_runs_stand_where_all_of_it_is_chosen(large: LargeRun) -> None:
    every = validation_lines(large.trace, large.all)
    assert every[0].kind == "baseline"
    step = validation_lines(large.trace, choose(large.trace, "p1/s1"))
    assert step
    assert all(line.place.startswith("p1/s1") for line in step)


def test_what_newly_fails_is_marked_and_the_output_shown_where_it_is_wanted(large: LargeRun) -> None:
    line = validation_lines(large.trace, large.all)[0]
    failing = sample(ValidationRow).failing_tests
    line = replace(
        line, failing=failing, newly_failing=("t::a",), output="all that it said", lint_output=None
    )
    console = Console(width=100)
    with console.capture() as told:
        console.print(render_validations((line,), whole=False))
        console.print(render_validations((line,), whole=True))
    brief, whole = told.get().split("assert 1 == 2", maxsplit=1)
    assert "t::a  newly failing" in brief
    assert "all that it said" in whole
