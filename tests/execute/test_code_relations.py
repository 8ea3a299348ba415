import pytest
from msgspec.structs import replace
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.execute.code_relations import CodePlace, ShownCode

MONEY = "def split(cents, people):\n    return [cents // people] * people\n\n\ndef total(shares):\n    return sum(shares)\n"
RECEIPT = "from till.money import total\n\n\ndef receipt(shares):\n    return total(shares)\n\n\ndef words(text):\n    return text.split()\n"
VIEW = "import { total } from './money'\n\nexport function view(shares) {\n  return total(shares)\n}\n"
TEST = "def test_receipt():\n    assert receipt(split(9, 3)) == 9\n"

SPLIT, TOTAL = (
    CodePlace(path="till/money.py", symbol="split"),
    CodePlace(path="till/money.py", symbol="total"),
)
WRITE, WORDS = (
    CodePlace(path="till/receipt.py", symbol="receipt"),
    CodePlace(path="till/receipt.py", symbol="words"),
)
SHOWN = ShownCode(package(shown_file("till/money.py", MONEY), shown_file("till/receipt.py", RECEIPT)))


@pytest.mark.parametrize(
    ("user", "used", "uses"),
    [
        (WRITE, TOTAL, True),
        (TOTAL, WRITE, False),
        (SPLIT, TOTAL, False),
        (WORDS, SPLIT, True),  # the file imports money, so that a method of the same name looks like it
        (WORDS, TOTAL, False),
        (WRITE, CodePlace(path="till/money.py"), True),
        (CodePlace(path="till/money.py"), WRITE, False),
    ],
)
def test_a_place_uses_what_its_code_names_and_its_file_imports(
    user: CodePlace, used: CodePlace, uses: bool
) -> None:
    assert SHOWN.uses(user, used) is uses


def test_what_is_not_shown_or_new_cannot_be_told() -> None:
    new = CodePlace(path="till/tax.py", symbol="tax")
    assert SHOWN.uses(new, TOTAL) is None
    assert SHOWN.uses(WRITE, new) is False
    part = shown_symbol("till/receipt.py", RECEIPT, "receipt", 4, 5)  # without the file's imports
    alone = ShownCode(package(part, shown_file("till/money.py", MONEY)))
    assert alone.uses(WRITE, TOTAL) is None
    assert alone.uses(WRITE, SPLIT) is False
    assert alone.uses(WRITE, CodePlace(path="till/money.py", symbol="Sum.total")) is None
    assert alone.uses(WRITE, CodePlace(path="till/money.py", symbol="go")) is None


def test_it_holds_for_other_languages() -> None:
    shown = ShownCode(package(shown_file("web/view.js", VIEW)))
    assert (
        shown.uses(
            CodePlace(path="web/view.js", symbol="view"), CodePlace(path="web/money.js", symbol="total")
        )
        is True
    )
    index = CodePlace(path="web/index.ts")
    assert index.name == "web"


def test_a_failing_test_that_names_both_speaks_for_both() -> None:
    test = replace(shown_symbol("tests/test_till.py", TEST, "test_receipt", 1, 2), section="tests")
    shown = ShownCode(package(test))
    assert shown.tested_together(SPLIT, WRITE) == "test_receipt"
    assert shown.tested_together(SPLIT, TOTAL) == ""


def test_definitions_of_files_and_pieces_are_listed_once() -> None:
    shown = ShownCode(
        package(shown_symbol("till/receipt.py", RECEIPT, "receipt", 4, 5), shown_file("till/money.py", MONEY))
    )
    assert tuple(shown.definitions) == (WRITE, SPLIT, TOTAL)
    assert str(WRITE) == "receipt in till/receipt.py"
    assert shown.excerpt(SPLIT, ()) == "def split(cents, people):\n    return [cents // people] * people"


def test_of_a_long_definition_its_head_and_the_lines_that_name_the_other_are_shown() -> None:
    lines = [f"    line{number} = {number}" for number in range(40)]
    text = "\n".join(["def long():", *lines[:30], "    return split(9, 3)", *lines[30:]]) + "\n"
    shown = ShownCode(package(shown_file("till/long.py", text)))
    excerpt = shown.excerpt(CodePlace(path="till/long.py", symbol="long"), (SPLIT,)).split("\n")
    assert excerpt[:2] == ["def long():", "    line0 = 0"]
    assert excerpt[-3:] == ["[...]", "    return split(9, 3)", "[...]"]
    assert len(excerpt) == 21
