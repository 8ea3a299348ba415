"""Edits and candidates in Go files."""

from clean_room_agent.execute.edits.definition_answers import (
    NoDefinition,
    WholeDefinition,
    import_place,
    whole_definition,
)
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.static_checks import fault_of
from clean_room_agent.execute.forms.masks import masks_by_line
from clean_room_agent.execute.forms.place import Parsed, Place
from clean_room_agent.execute.forms.worded import apply
from clean_room_agent.syntax import import_lines, outline_of, sequence_starts

TEXT = """package shop

import "fmt"

// Cart holds.
type Cart struct {
	sum int
}

type (
	ID    int
	Other struct{}
)

// Add adds.
func (c *Cart) Add(price int) error {
	if price < 0 {
		return fmt.Errorf("negative")
	}
	c.sum += price
	return nil
}

func TestTotal(t *testing.T) { total(1) }

func total(prices ...int) int {
	return len(prices)
}
"""


def test_a_method_belongs_to_the_type_of_its_receiver() -> None:
    found = {one.symbol: TEXT[one.start : one.end] for one in definitions("a.go", TEXT)}
    assert list(found) == ["Cart", "ID", "Other", "Cart.Add", "TestTotal", "total"]
    assert found["Cart"].startswith("type Cart struct {")
    assert found["Other"] == "\tOther struct{}"
    assert TEXT[next(one.top for one in definitions("a.go", TEXT) if one.symbol == "Cart.Add") :].startswith(
        "// Add"
    )


def answered(symbol: str, answer: str) -> WholeDefinition | NoDefinition:
    span = next((one.start, one.end) for one in definitions("a.go", TEXT) if one.symbol == symbol)
    return whole_definition("a.go", TEXT, span, symbol, answer)


def test_an_answer_for_a_function_is_taken_whole_or_as_its_only_statement() -> None:
    whole = "func (c *Cart) Add(price int) error {\n\tc.sum += price\n\treturn nil\n}"
    assert answered("Cart.Add", whole) == WholeDefinition(text=whole)
    assert answered("total", "return len(prices) + 1") == WholeDefinition(
        text="func total(prices ...int) int {\n\treturn len(prices) + 1\n}",
        is_body=True,
    )


def test_imports_and_members_are_known_by_their_lines() -> None:
    source = TEXT.encode()
    assert import_lines(source, "a.go") == ((3, 3),)
    assert import_place("a.go", TEXT, len(TEXT)) == TEXT.index("\n// Cart")
    assert dict(sequence_starts(source, "a.go") or ())[17] > 0


def test_what_does_not_pair_off_is_a_fault() -> None:
    assert "never closed" in fault_of("a.go", TEXT, TEXT.replace("return nil\n}", "return nil\n"))
    assert fault_of("a.go", TEXT, TEXT.replace("sum", "gone")) == ""


def test_a_definition_is_asked_for_whole_or_by_its_parts() -> None:
    place = Place(path="a.go", name="Cart.Add", first_line=16, last_line=22, lines=(20, 17))
    new = "```go\nfunc (c *Cart) Add(price int) error {\n    c.sum += price\n    return nil\n}\n```"
    applied = apply(place, TEXT, new)
    assert isinstance(applied, str)
    assert "\tc.sum += price\n\treturn nil" in applied
    parsed = Parsed("a.go", TEXT)
    parts = {parsed.piece(mask.start, mask.end) for masks in masks_by_line(parsed, place) for mask in masks}
    assert {"price", "price < 0", "\tc.sum += price"} <= parts


def test_tests_are_functions() -> None:
    outline = outline_of(TEXT.encode(), "a.go")
    assert outline is not None
    assert [one.name for one in outline.declared] == ["Cart", "ID", "Other", "TestTotal", "total"]
    test = next(one.span for one in outline.declared if one.name == "TestTotal")
    assert "total" in outline.names_in(test)
