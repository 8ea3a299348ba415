"""Which definitions a report's calls mean, and how they are imported."""

import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.execute.goals.expressions import PythonExpressions
from clean_room_agent.execute.goals.report import passed_in
from clean_room_agent.execute.goals.resolving import (
    Known,
    lookups,
    module_of,
    python_imports,
    resolve,
    without_imports,
)

PYTHON = PythonExpressions()


def definition(name: str, path: str, *tests: str) -> NamedDefinition:
    return NamedDefinition(name=name, path=path, kind="function", first_line=1, last_line=2, test_files=tests)


ORDINAL = definition("ordinal", "src/humanize/number.py")
PARSE, OTHER = definition("parse", "lib/one.py", "tests/test_one.py"), definition("parse", "lib/two.py")


def test_a_module_before_a_call_is_taken_off_and_tells_which_definition_is_meant() -> None:
    known = resolve("humanize.ordinal(3) is wrong", ("humanize.ordinal",), (ORDINAL,), PYTHON)
    assert known.text == "ordinal(3) is wrong"
    assert known.names == {"ordinal": ORDINAL}
    two = resolve("two.parse(1)", ("two.parse",), (PARSE, OTHER), PYTHON)
    assert two.names == {"parse": OTHER}


@pytest.mark.parametrize(
    ("text", "meant"),
    [("parse(1) in lib/two.py", OTHER), ("parse(1)", PARSE), ("parse(1) of lib.two", OTHER)],
)
def test_of_several_definitions_the_one_is_meant_that_the_words_name_or_that_alone_is_tested(
    text: str, meant: NamedDefinition
) -> None:
    assert resolve(text, ("parse",), (PARSE, OTHER), PYTHON).names == {"parse": meant}


def test_what_may_be_either_is_neither() -> None:
    both = (definition("parse", "lib/one.py"), definition("parse", "lib/two.py"))
    assert resolve("parse(1)", ("parse",), both, PYTHON).names == {}


def test_a_method_is_known_by_its_class_alone() -> None:
    stack = definition("Stack", "stack.py")
    method = definition("Stack.pop", "stack.py")
    assert resolve("Stack(3).pop()", ("Stack.pop", "Stack"), (stack, method), PYTHON).names == {
        "Stack": stack
    }


def test_a_function_is_meant_rather_than_a_variable_or_what_tests_define() -> None:
    known = definition("join", "toolbox/items.py", "tests/test_items.py")
    curried = replace(known, path="toolbox/curried.py", kind="variable")
    own = replace(known, path="tests/test_items.py")
    assert resolve("join(1)", ("join",), (curried, own, known), PYTHON).names == {"join": known}


def test_a_function_that_is_passed_on_is_known_and_a_variable_is_not() -> None:
    call, box = "apply(ordinal, box)", replace(OTHER, name="box", kind="variable")
    definitions = (replace(OTHER, name="apply"), ORDINAL, box)
    known = resolve(call, ("apply",), definitions, PYTHON, passed_in(call, PYTHON))
    assert set(known.names) == {"apply", "ordinal"}
    assert known.usable("apply(ordinal, 1)", ())
    assert not known.usable(call, ())


def test_an_expression_is_usable_where_all_that_it_needs_is_known() -> None:
    known = Known(text="", names={"ordinal": ORDINAL}, language=PYTHON)
    assert known.usable("ordinal(3)", ())
    assert known.usable("list(map(ordinal, x))", ("x = [1]",))
    assert not known.usable("ordinal(x)", ())
    assert not known.usable("len([1])", ())
    assert not known.usable("ordinal(open('x'))", ())
    assert not known.usable("ordinal(", ())


def test_names_are_looked_up_by_each_of_their_parts() -> None:
    assert lookups(("humanize.ordinal", "len", "Stack.pop")) == ("humanize", "ordinal", "Stack", "pop")


def test_a_module_is_named_as_the_tests_name_it_or_by_its_path() -> None:
    assert module_of("src/humanize/number.py", ()) == "humanize.number"
    assert module_of("python/pkg/a.py", ("from python.pkg.a import x\n",)) == "python.pkg.a"
    assert module_of("pkg/__init__.py", ()) == "pkg"


def test_imports_are_those_of_the_names_that_the_code_uses() -> None:
    code = ("ordinal(Decimal('1'))", "x = 1")
    assert python_imports(code, {"ordinal": ORDINAL}, ()) == (
        "from decimal import Decimal",
        "from humanize.number import ordinal",
    )
    assert python_imports(("datetime.date(1, 2, 3)", "datetime(1, 2, 3)"), {}, ()) == ("import datetime",)
    assert python_imports(("datetime(1, 2, 3)",), {}, ()) == ("from datetime import datetime",)
    assert python_imports(("namedtuple('A', 'b')(1)",), {}, ()) == ("from collections import namedtuple",)
    setup = ("from elsewhere import ordinal", "import json", "x = 1")
    assert without_imports(setup, {"ordinal"}, PYTHON) == ("import json", "x = 1")
