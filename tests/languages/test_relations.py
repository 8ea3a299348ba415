import pytest

from clean_room_agent.languages.relations import is_relation, of_matcher, of_operator, of_script


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("strictEqual", "1"),
        ("notDeepStrictEqual", "not to be 1"),
        ("!=", "not to be 1"),
        ("match", "to match 1"),
        ("doesNotMatch", "not to match 1"),
        ("not contain", "not to contain 1"),
        ("", "1"),
    ],
)
def test_an_operator_of_a_script_that_is_not_of_equality_is_said(operator: str, said: str) -> None:
    assert of_script(operator, "1") == said
    assert is_relation(said) == (said != "1")


def test_of_the_right_side_the_mirrored_relation_is_expected() -> None:
    assert (of_operator("<", "3"), of_operator("<", "3", is_right=True)) == (
        "to be less than 3",
        "to be more than 3",
    )
    assert (of_operator("in", "x"), of_operator("in", "x", is_right=True)) == ("to be in x", "to contain x")
    assert of_operator("is None", "") == "None"
    assert not is_relation("None")


def test_a_matcher_is_said_also_where_it_is_negated() -> None:
    assert of_matcher("toBeInstanceOf", "Date", is_negated=False) == "to be an instance of Date"
    assert of_matcher("toContain", "3", is_negated=True) == "not to contain 3"
    assert of_matcher("toBe", "3", is_negated=True) == "not to be 3"
    assert of_matcher("toBe", "3", is_negated=False) == "3"
    assert of_matcher("toBeTruthy", "", is_negated=True) == "not to be a true value"
    assert of_matcher("toRenderNicely", "3", is_negated=False) is None
