import ast

import pytest

from clean_room_agent.execute.goals.neighbours import MOST, neighbours


def test_each_literal_is_changed_once_before_any_is_twice() -> None:
    found = neighbours("f(10, 'ab', x=True)")
    assert found[:3] == ("f(11, 'ab', x=True)", "f(10, 'a', x=True)", "f(10, 'ab', x=False)")
    assert "f(9, 'ab', x=True)" in found
    assert "f(10, '', x=True)" in found
    assert len(set(found)) == len(found) <= MOST


@pytest.mark.parametrize(
    "call",
    [
        "f(0)",
        "f(-3, 1.5)",
        "f('it\\'s', r'a\\d')",
        'f(b"x", u"y", [1, {"a": 2}])',
        "C(2).m(a1, name2='')[0]",
        "f(True, x.True_)",
        "f('two\\nlines')",
    ],
)
def test_all_of_them_are_calls_that_differ(call: str) -> None:
    found = neighbours(call)
    assert found
    for one in found:
        assert ast.dump(ast.parse(one)) != ast.dump(ast.parse(call))


def test_names_with_digits_are_no_numbers() -> None:
    assert neighbours("f2(a1, b.c3)") == ()


def test_a_text_in_which_a_number_stands_is_changed_as_a_text() -> None:
    assert all(one.startswith("f('") for one in neighbours("f('7 of 9')"))
