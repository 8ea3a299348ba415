"""Expressions in prose."""

import pytest

from clean_room_agent.execute.goals.expressions import (
    PythonExpressions,
    ScriptExpressions,
    balanced_end,
    call_spans,
    string_end,
)

PYTHON, SCRIPT = PythonExpressions(), ScriptExpressions()


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("see f(1) and g(h(2), ')')[0].x().", ["f(1)", "g(h(2), ')')[0].x()"]),
        ("f(1", []),
        ("function(s) of new Foo(1).bar", ["function(s)", "new Foo(1).bar"]),
        ("a.f(1) /b(2) foo(1).py", ["a.f(1)", "foo(1).py"]),
        ("f(\n1,\n2)", ["f(\n1,\n2)"]),
        ("f('it''s (')", ["f('it''s (')"]),
    ],
)
def test_calls_end_where_their_brackets_do(text: str, calls: list[str]) -> None:
    assert [text[start:end] for start, end in call_spans(text)] == calls


def test_brackets_that_do_not_match_have_no_end() -> None:
    assert [balanced_end(text, 0) for text in ("(a]", "([)]", "(" * 9, "('a)")] == [-1] * 4
    assert string_end("'a\nb'", 0) == -1
    assert string_end('"""a\n"""b', 0) == 8


@pytest.mark.parametrize(
    "text",
    ["3", "-1.5", "[1, 'a']", "{'a': (1, None)}", "Decimal('1.5')", "set()", "timedelta(days=1)", "range(3)"],
)
def test_values_of_python_depend_on_nothing(text: str) -> None:
    assert PYTHON.is_value(text)


@pytest.mark.parametrize(
    "text", ["f(1)", "x", "[x]", "1 + 2 + x", "lambda: 1", "open('x')", "a b", "exec('1')", "1 if x else 2"]
)
def test_other_expressions_of_python_are_no_values(text: str) -> None:
    assert not PYTHON.is_value(text)


@pytest.mark.parametrize("text", ["3", "'a'", "[1, { a: null }]", "undefined", "new Date(0)", "-1"])
def test_values_of_javascript_depend_on_nothing(text: str) -> None:
    assert SCRIPT.is_value(text)


@pytest.mark.parametrize("text", ["f(1)", "x", "[x]", "() => 1", "a b", "process.exit()", "[...x]"])
def test_other_expressions_of_javascript_are_no_values(text: str) -> None:
    assert not SCRIPT.is_value(text)


def test_names_from_outside_are_those_that_nothing_binds() -> None:
    assert PYTHON.free_names("f([x for x in y], key=lambda z: z, n=len(y))") == frozenset({"f", "y"})
    assert SCRIPT.free_names("f([1].map(x => x * y), Math.PI)") == frozenset({"f", "y"})
    assert PYTHON.free_names("f(") is SCRIPT.free_names("f(") is None


def test_a_statement_binds_uses_and_changes_names() -> None:
    assert PYTHON.effects("x = f(y)") == ({"x"}, {"x", "f", "y"}, {"x"})
    assert PYTHON.effects("s.push(1)")[2] == {"s"}
    assert PYTHON.effects("f(1)")[2] == set()
    assert PYTHON.effects("from m import a as b")[0] == {"b"}
    assert SCRIPT.effects("const x = f(y)") == ({"x"}, {"f", "y"}, set())
    assert SCRIPT.effects("s.push(1)")[2] == {"s"}


def test_names_that_are_called_have_their_modules_and_classes() -> None:
    assert set(PYTHON.called("a.b.f(Stack(1).pop())")) == {"a.b.f", "Stack.pop", "Stack"}
    assert set(SCRIPT.called("new Stack(1).pop()")) == {"Stack.pop", "Stack"}
