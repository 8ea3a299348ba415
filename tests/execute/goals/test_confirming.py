"""What follows from what a report says and from what its call gave."""

import pytest

from clean_room_agent.execute.goals.confirming import Conclusion, Observation, WantedValue, conclude
from clean_room_agent.execute.goals.report import Claim, StatedValue

VALUE = Observation(shown="3")


def value(text: str, role: str = "", *, kind: str = "literal", part: str = "") -> StatedValue:
    return StatedValue(text=text, kind=kind, role=role, part=part)  # type: ignore[arg-type]


def concluded(
    seen: Observation, *pairs: tuple[StatedValue, tuple[str, ...]], must_not_fail: bool = False
) -> Conclusion:
    """What follows where each value stands so to what the call gave."""
    claim = Claim(call="f(10)", values=tuple(one for one, _ in pairs), must_not_fail=must_not_fail)
    matches = tuple(matched for _, matched in pairs)
    return conclude(
        claim,
        Observation(
            shown=seen.shown, text=seen.text, raised=seen.raised, problem=seen.problem, matches=matches
        ),
    )


GOT, OTHER = (value("3", "got"), ("equal",)), (value("5", "got"), ())
WANTED = (value("4", "wanted"), ())


def test_a_confirmed_report_gives_the_wanted_value() -> None:
    assert concluded(VALUE, GOT, WANTED) == Conclusion(wanted=WantedValue(text="4"), confirmed=True)


def test_a_report_that_says_only_what_is_wanted_needs_no_more() -> None:
    assert concluded(VALUE, WANTED) == Conclusion(wanted=WantedValue(text="4"))


def test_a_value_without_a_role_that_the_call_gives_confirms_the_report() -> None:
    assert concluded(VALUE, (value("3"), ("equal",)), WANTED).confirmed


@pytest.mark.parametrize(
    "pairs",
    [
        (OTHER, WANTED),
        ((value("4", "got"), ()), (value("3", "wanted"), ("equal",))),
        ((value("3", "wanted"), ("equal",)),),
        ((value("5", "asserted"), ("equal",)), OTHER, (value("3", "wanted"), ("equal",))),
    ],
    ids=["gives something else", "exchanged", "is done", "asserted"],
)
def test_nothing_is_concluded_where_the_call_does_not_do_what_the_report_says(
    pairs: tuple[tuple[StatedValue, tuple[str, ...]], ...],
) -> None:
    assert concluded(VALUE, *pairs) == Conclusion(denied=True)


def test_of_several_wanted_values_none_is_chosen() -> None:
    found = concluded(VALUE, GOT, WANTED, (value("6", "wanted"), ()))
    assert found == Conclusion(confirmed=True, choices=("4", "6"))


def test_what_could_not_be_run_shows_nothing() -> None:
    assert concluded(Observation(problem="no module"), GOT, WANTED) == Conclusion()


def test_an_object_without_a_repr_of_its_own_shows_nothing() -> None:
    assert concluded(Observation(shown="<f.X object at 0x7f001234abcd>"), WANTED) == Conclusion()


def test_parts_are_compared_as_the_confirmed_value_is() -> None:
    seen = Observation(shown="[[1], [9, 0]]")
    got = (value("[9, 0]", "got", part="end"), ("last",))
    assert concluded(seen, got, (value("[9, 0, 0]", "wanted", part="end"), ())).wanted == WantedValue(
        text="[9, 0, 0]", relation="last"
    )
    alone = concluded(seen, (value("[9, 0, 0]", "wanted", part="end"), ()))
    assert alone.wanted is None


def test_text_without_quotes_is_a_string_where_the_call_gives_one_alike() -> None:
    seen = Observation(shown="'111st'", text="111st")
    got = (value("111st", "got", kind="bare"), ("equal",))
    assert concluded(seen, got, (value("111th", "wanted", kind="bare"), ())).wanted == WantedValue(
        text="'111th'"
    )
    for prose in ("the right suffix", "raising", "something else"):
        assert concluded(seen, got, (value(prose, "wanted", kind="bare"), ())).wanted is None
    unconfirmed = concluded(seen, (value("111th", "wanted", kind="bare"), ()))
    assert unconfirmed.wanted is None


def test_values_that_are_quoted_as_text_are_read_alike() -> None:
    got = (value('"[1]"', "got"), ("text",))
    wanted = concluded(Observation(shown="[1]"), got, (value('"[2]"', "wanted"), ())).wanted
    assert wanted == WantedValue(text="[2]")


def test_an_exception_that_is_wanted_is_told_by_its_name() -> None:
    seen = Observation(raised=("KeyError", "LookupError"))
    got = (value("KeyError", "got", kind="error"), ("raises",))
    wanted = (value("ValueError", "wanted", kind="error"), ())
    assert concluded(seen, got, wanted).wanted == WantedValue(text="ValueError", relation="raises")


def test_a_call_that_must_not_fail_has_to_fail_now() -> None:
    assert concluded(Observation(raised=("KeyError",)), must_not_fail=True).wanted == WantedValue(
        text="", relation="no_error"
    )
    assert concluded(VALUE, must_not_fail=True) == Conclusion(denied=True)


def test_what_is_said_of_a_comparison_is_no_value_of_its_call() -> None:
    said = ((value("4", "asserted"), ()), (value("True", "wanted"), ()), (value("False", "got"), ()))
    assert concluded(VALUE, *said).wanted == WantedValue(text="4")
    refused = ((value("3", "asserted"), ("equal",)), (value("False", "wanted"), ()))
    assert concluded(VALUE, *refused).wanted is None


def test_of_what_a_statement_raises_the_first_line_is_told() -> None:
    seen = Observation(
        raised=("AssertionError",), message="assert 'ab' == 'abc'\n  \n  - abc\n  ?   -\n  + ab"
    )
    assert seen.described() == "raises AssertionError: assert 'ab' == 'abc'"
    assert Observation(raised=("KeyError",)).described() == "raises KeyError"
