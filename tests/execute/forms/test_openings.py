import pytest
from msgspec.structs import replace
from tests.execute.forms.test_masked import (
    ASSIGNMENT,
    GOAL,
    PLACE,
    SCRIPT,
    SCRIPT_PLACE,
    TEXT,
    line_mask,
)

from clean_room_agent.execute.forms import masked
from clean_room_agent.execute.forms.masked import MaskedRequest
from clean_room_agent.execute.forms.openings import Opening
from clean_room_agent.execute.forms.place import Place, Refused

LAST = "        return total / (len(values) + 1)"


def first_of(kind: str, line: int, *, place: Place = PLACE, text: str = TEXT) -> MaskedRequest:
    return next(
        request
        for request in masked.requests(place, text, ASSIGNMENT)
        if (request.mask.kind, request.mask.first_line) == (kind, line)
    )


def inside(opening: Opening, *, place: Place = PLACE, text: str = TEXT) -> MaskedRequest:
    return next(masked.requests(place, text, ASSIGNMENT, opened=[opening]))


@pytest.mark.parametrize("kind", ["line", "gap"])
def test_what_is_inside_a_block_that_an_answer_opens_is_asked_next(kind: str) -> None:
    opening = masked.opened_by(PLACE, TEXT, first_of(kind, 17), " if scale is None:")
    assert opening is not None
    request = inside(opening)
    assert str(request.fill.before).endswith("            return 0\n        if scale is None:\n           ")
    assert str(request.fill.after) == f"\n{LAST}\n"
    assert request.item == "block 17 if scale is None: comment 0"
    done = masked.apply(PLACE, TEXT, request.mask, " return total / len(values)", request.opening)
    assert done == TEXT.replace(
        LAST, f"        if scale is None:\n            return total / len(values)\n{LAST}"
    )
    assert masked.apply(PLACE, TEXT, request.mask, " ", request.opening) == Refused(
        reason="the answer adds nothing"
    )


@pytest.mark.parametrize("kind", ["line", "gap"])
def test_the_line_itself_may_be_what_is_inside(kind: str) -> None:
    done = masked.apply(PLACE, TEXT, first_of(kind, 17).mask, "if scale:")
    assert done == TEXT.replace(LAST, f"        if scale:\n    {LAST}")


def test_a_block_of_ecmascript_is_closed() -> None:
    request = first_of("gap", 7, place=SCRIPT_PLACE, text=SCRIPT)
    opening = masked.opened_by(SCRIPT_PLACE, SCRIPT, request, "if (!values) {")
    assert opening is not None
    asked = inside(opening, place=SCRIPT_PLACE, text=SCRIPT)
    assert str(asked.fill.before).endswith("    if (!values) {\n     ")
    line = "    return total / values.length;"
    assert masked.apply(SCRIPT_PLACE, SCRIPT, asked.mask, " return 0;", opening) == SCRIPT.replace(
        line, f"    if (!values) {{\n      return 0;\n    }}\n{line}"
    )


@pytest.mark.parametrize("answer", ["return total", "def mean():", "else:", "if scale:\n    return 0", ":"])
def test_other_answers_open_no_block(answer: str) -> None:
    assert masked.opened_by(PLACE, TEXT, first_of("line", 17), answer) is None


def test_a_line_that_opens_a_block_itself_is_replaced_by_one() -> None:
    request = first_of("line", 15)
    assert masked.opened_by(PLACE, TEXT, request, "        if values:") is None
    assert masked.apply(PLACE, TEXT, request.mask, "        if values:") == TEXT.replace(
        "not values", "values"
    )


def test_a_part_of_a_line_and_a_line_in_an_opened_block_open_none() -> None:
    part = next(one for one in masked.requests(PLACE, TEXT, ASSIGNMENT) if one.mask.kind == "part")
    assert masked.opened_by(PLACE, TEXT, part, "if scale:") is None
    opening = masked.opened_by(PLACE, TEXT, first_of("line", 17), "if scale:")
    assert opening is not None
    assert masked.opened_by(PLACE, TEXT, inside(opening), "if values:") is None


def test_each_opening_is_asked_about_once() -> None:
    opening = masked.opened_by(PLACE, TEXT, first_of("line", 17), "if scale:")
    assert opening is not None
    asked = [one.item for one in masked.requests(PLACE, TEXT, ASSIGNMENT, opened=[opening, opening])]
    assert asked.count("block 17 if scale: comment 0") == 1


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("if values == 'ab':", False),
        ("if 25 == values:", False),
        ("if scale is 25:", False),
        ("if values in ('ab', 'b'):", True),
        ("if values == '':", True),
        ("if values == 250:", True),
        ("if scale == 1:", True),
    ],
)
def test_what_is_inside_a_block_for_the_one_value_that_is_asked_for_is_not_asked(
    header: str, asked: bool
) -> None:
    goal = replace(GOAL, call="Stats.mean('ab', 25, 1, '')")
    opening = masked.opened_by(PLACE, TEXT, first_of("line", 17), header)
    assert opening is not None
    first = next(masked.requests(PLACE, TEXT, replace(ASSIGNMENT, goals=(goal,)), opened=[opening]))
    assert (first.opening is not None) is asked


def test_a_statement_of_several_lines_is_not_taken_apart() -> None:
    text = TEXT.replace("sum(values)\n", "sum(\n            values\n        )\n")
    place = replace(PLACE, last_line=19, lines=(14,))
    mask = line_mask(14, place=place, text=text)
    assert isinstance(masked.apply(place, text, mask, "if scale:"), Refused)


def test_tabs_stay_tabs() -> None:
    text = TEXT.replace("    ", "\t")
    opening = masked.opened_by(PLACE, text, first_of("line", 17, text=text), "if scale:")
    assert opening is not None
    assert (opening.header, opening.inner) == ("\t\tif scale:", "\t\t\t")
