import pytest

from clean_room_agent.execute.edits.definition_answers import (
    NoDefinition,
    WholeDefinition,
    import_place,
    whole_definition,
)
from clean_room_agent.execute.edits.definitions import definitions

PYTHON = '''\
"""Bills."""
import os


class Bill:
    """A bill."""

    rate = 2

    @property
    def total(self):
        """All of it."""
        return self.rate

    def split(self, count):
        shares = []
        for _ in range(count):
            shares.append(self.total)
        return shares


@cached
def one(x):
    return x


def two(x):
    y = x
    return y
'''
SCRIPT = """\
import { a } from "./a";

export function one(x) {
  return x;
}

export const two = (x) => {
  const y = x;
  return y;
};

class Bill {
  @Bound()
  total() {
    return this.rate;
  }

  split(count) {
    return [count];
  }
}
"""


def answered(symbol: str, answer: str, path: str = "a.py") -> WholeDefinition | NoDefinition:
    text = PYTHON if path.endswith(".py") else SCRIPT
    (place,) = [one for one in definitions(path, text) if one.symbol == symbol]
    return whole_definition(path, text, (place.start, place.end), symbol, answer)


def repaired(symbol: str, answer: str, path: str = "a.py") -> str:
    found = answered(symbol, answer, path)
    assert isinstance(found, WholeDefinition), found
    return found.text


@pytest.mark.parametrize(
    ("symbol", "answer", "expected"),
    [
        ("one", "return x + 1", "@cached\ndef one(x):\n    return x + 1"),
        ("one", "    return x + 1\n", "@cached\ndef one(x):\n    return x + 1"),
        ("two", "y = x\ny += 1\nreturn y", "def two(x):\n    y = x\n    y += 1\n    return y"),
        (
            "Bill.total",
            "return self.rate + 1",
            '    @property\n    def total(self):\n        """All of it."""\n        return self.rate + 1',
        ),
        (
            "Bill.total",
            '"""Everything."""\nreturn self.rate + 1',
            '    @property\n    def total(self):\n        """Everything."""\n        return self.rate + 1',
        ),
    ],
)
def test_a_body_that_can_only_be_the_whole_one_gets_its_head_back(
    symbol: str, answer: str, expected: str
) -> None:
    assert repaired(symbol, answer) == expected


@pytest.mark.parametrize(
    ("symbol", "answer"),
    [
        ("two", "y = x + 1"),
        ("Bill.split", "shares.append(self.total + 1)"),
        ("Bill.split", "for _ in range(count + 1):\n    shares.append(self.total)"),
        ("Bill", "rate = 3"),
        ("one", "def another(x):\n    return x + 1"),
        ("one", "Here is the function."),
        ("one", "# nothing"),
    ],
)
def test_an_answer_that_may_be_a_part_or_is_something_else_is_refused_with_how_to_begin(
    symbol: str, answer: str
) -> None:
    found = answered(symbol, answer)
    assert isinstance(found, NoDefinition)
    head = "class Bill:" if symbol == "Bill" else f"def {symbol.rpartition('.')[2]}("
    assert f"does not define {symbol}: begin with its first line, like `{head}" in found.reason


@pytest.mark.parametrize(
    ("symbol", "answer", "expected"),
    [
        ("one", "def one(x):\n    return x + 1", "@cached\ndef one(x):\n    return x + 1"),
        (
            "Bill.total",
            "@property\ndef total(self):\n    return 3",
            '    @property\n    def total(self):\n        """All of it."""\n        return 3',
        ),
        (
            "Bill.total",
            "def total(self):\n    return 3",
            '    @property\n    def total(self):\n        """All of it."""\n        return 3',
        ),
        (
            "Bill",
            "class Bill:\n    rate = 3",
            'class Bill:\n    """A bill."""\n    rate = 3',
        ),
    ],
)
def test_decorators_and_docstring_that_were_left_out_are_put_back(
    symbol: str, answer: str, expected: str
) -> None:
    assert repaired(symbol, answer) == expected


def test_leaving_something_out_is_meant_where_it_is_all_that_changes() -> None:
    assert repaired("one", "def one(x):\n    return x") == "def one(x):\n    return x"
    bare = "    @property\n    def total(self):\n        return self.rate"
    assert repaired("Bill.total", bare) == bare
    assert repaired("one", "def one(x, y):\n    return x + y") == "def one(x, y):\n    return x + y"
    private = "function one(x) {\n  return x;\n}"
    assert repaired("one", private, "a.js") == private


@pytest.mark.parametrize(
    "answer",
    [
        "class Bill:\n    def split(self, count):\n        return [count]",
        '    class Bill:\n        """A bill."""\n\n        rate = 2\n\n        def split(self, count):\n            return [count]\n',
        'class Bill:\n    @property\n    def total(self):\n        """All of it."""\n        return self.rate\n\n    def split(self, count):\n        return [count]',
    ],
)  # fmt: skip
def test_a_class_repeated_around_its_method_is_taken_off(answer: str) -> None:
    assert repaired("Bill.split", answer) == "    def split(self, count):\n        return [count]"


def test_an_answer_that_changes_more_than_its_definition_is_refused_with_what() -> None:
    other = answered(
        "Bill.split", "class Bill:\n    def split(self, count):\n        return 1\n\n    def more(self): pass"
    )
    assert isinstance(other, NoDefinition)
    assert "also writes Bill.more" in other.reason
    derived = repaired("Bill.split", "class Bill(Base):\n    def split(self, count):\n        return 1")
    assert derived == "    def split(self, count):\n        return 1", "the class keeps its own bases"
    around = answered(
        "Bill.split", "class Bill:\n    rate = 3\n    def split(self, count):\n        return 1"
    )
    assert isinstance(around, NoDefinition)
    assert "changes the class around Bill.split: rate = 3" in around.reason
    beside = answered("two", "def one(x):\n    return 2\n\n\ndef two(x):\n    return 1")
    assert isinstance(beside, NoDefinition)
    assert "also changes one" in beside.reason


def test_other_definitions_are_left_out_where_they_are_only_repeated_and_kept_where_they_are_new() -> None:
    repeated = "@cached\ndef one(x):\n    return x\n\n\ndef two(x):\n    return 1"
    assert repaired("two", repeated) == "def two(x):\n    return 1"
    helped = "def _help(x):\n    return x\n\n\ndef two(x):\n    return _help(x)"
    assert repaired("two", helped) == helped


def test_imports_above_a_definition_go_to_the_top_or_are_there_already() -> None:
    found = answered("Bill.split", "import os\nimport math\n\ndef split(self, count):\n    return math.pi")
    assert isinstance(found, WholeDefinition)
    assert found.imports == ("import math",)
    assert found.text == "    def split(self, count):\n        return math.pi"
    place = import_place("a.py", PYTHON, PYTHON.index("def split"))
    assert PYTHON[:place].endswith("import os\n")
    assert import_place("a.py", '"""A."""\nx = 1\n', 12) == len('"""A."""\n')
    assert import_place("a.py", "x = 1\n", 0) == 0


@pytest.mark.parametrize(
    ("symbol", "answer", "expected"),
    [
        ("one", "function one(x) {\n  return 2;\n}", "export function one(x) {\n  return 2;\n}"),
        ("one", "return 2;", "export function one(x) {\n  return 2;\n}"),
        ("two", "const two = (x) => {\n  return 2;\n};", "export const two = (x) => {\n  return 2;\n};"),
        ("Bill.total", "total() {\n  return 2;\n}", "  @Bound()\n  total() {\n    return 2;\n  }"),
        (
            "Bill.split",
            "class Bill {\n  split(count) {\n    return 2;\n  }\n}",
            "  split(count) {\n    return 2;\n  }",
        ),
        ("Bill.split", "return [2];", "  split(count) {\n    return [2];\n  }"),
    ],
)
def test_the_same_holds_for_scripts(symbol: str, answer: str, expected: str) -> None:
    assert repaired(symbol, answer, "a.ts") == expected


@pytest.mark.parametrize("answer", ["const y = 2;", "export function other(x) {\n  return 2;\n}"])
def test_a_script_answer_that_defines_something_else_is_refused(answer: str) -> None:
    assert isinstance(answered("two", answer, "a.ts"), NoDefinition)


def test_a_function_inside_a_value_is_not_what_the_value_defines() -> None:
    text = "const rows = load(() => {\n  return 1;\n});\n"
    found = whole_definition("a.js", text, (0, len(text) - 1), "rows", "return 2;")
    assert isinstance(found, NoDefinition)
    assert "begin with its first line, like `const rows = load(() => {`" in found.reason


def test_what_no_syntax_knows_has_to_be_named() -> None:
    text = "LIMIT = 3\nother = 1\n"
    assert whole_definition("a.py", text, (0, 9), "LIMIT", "LIMIT = 4") == WholeDefinition(text="LIMIT = 4")
    assert isinstance(whole_definition("a.py", text, (0, 9), "LIMIT", "4"), NoDefinition)
