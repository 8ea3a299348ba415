"""Tests in Python: how calls are looked at, and where and how new tests are written."""

import json
import os
import signal
from pathlib import Path
from unittest.mock import patch

import pytest

from clean_room_agent.execute.goals import python_tests
from clean_room_agent.execute.goals.confirming import Looked, NewTest, WantedValue
from clean_room_agent.execute.goals.python_tests import (
    PROBE,
    SEEN_FILE,
    bound_elsewhere,
    is_unittest_style,
    place,
    read_seen,
    test_name,
    with_imports,
    with_probe,
)

test_name.__test__ = False  # type: ignore[attr-defined]
F = "from m import f"


def seen(tmp_path: Path, *calls: Looked) -> list[dict[str, object]]:
    """What the probe writes of the calls."""
    text, name = with_probe("", calls, unittest=False)
    assert name == PROBE
    space: dict[str, object] = {}
    exec(text, space)
    with patch.dict(os.environ, {"CRA_TEST_REPORTS": str(tmp_path)}):
        space[PROBE]()  # type: ignore[operator]
    return [dict(one) for one in read_seen((tmp_path / SEEN_FILE).read_bytes())]


@pytest.mark.parametrize(
    ("call", "stated", "matches"),
    [
        ("[1, 2, 3]", "[1, 2, 3]", ["equal"]),
        ("[[1], [2, 0]]", "[2, 0]", ["last"]),
        ("[1, 2, 0]", "[2, 0]", ["tail"]),
        ("'111st'", "'st'", ["suffix"]),
        ("[1]", "'[1]'", ["text"]),
        ("3.0", "3", []),
        ("True", "1", []),
        ("iter([1, 2])", "[1, 2]", ["equal"]),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", ["equal"]),
        ("float('nan')", "3", []),
        ("3", "float('nan')", ["incomparable"]),
        ("range(0, 4, 2)", "range(0, 3, 2)", ["equal"]),
        ("3", "undefined_name", []),
    ],
)
def test_a_stated_value_is_compared_with_what_the_call_gives(
    tmp_path: Path, call: str, stated: str, matches: list[str]
) -> None:
    (found,) = seen(tmp_path, Looked(call=call, stated=(("literal", stated),)))
    names = json.loads(json.dumps(found["matches"]))[0]
    assert [name for name in names if name in matches] == matches
    assert bool(names) == bool(matches)


def test_an_error_is_told_with_its_bases_and_one_call_does_not_spoil_the_others(tmp_path: Path) -> None:
    calls = (
        Looked(call="{}['a']", stated=(("error", "KeyError"), ("error", "ValueError"))),
        Looked(call="x.pop()", setup=("x = [1]",), stated=(("bare", "1"),)),
        Looked(call="f(1)", imports=("from no_such_module import f",)),
    )
    first, second, third = seen(tmp_path, *calls)
    assert (first["raised"], first["matches"]) == (["KeyError", "LookupError"], [["raises"], []])
    assert (second["shown"], second["matches"]) == ("1", [["equal"]])
    assert third["importing"] is True


def test_calls_that_do_not_end_are_told_apart_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_tests, "MOST_SECONDS", 0.2)
    spin = ("def spin():\n    while True:\n        pass",)
    endless = Looked(call="spin()", setup=spin)
    iterated = Looked(call="(spin() for _ in [1])", setup=spin)
    before = signal.getitimer(signal.ITIMER_REAL)
    first, second, third = seen(tmp_path, endless, Looked(call="1 + 1"), iterated)
    assert (first, second["shown"], third) == ({"late": True}, "2", {"late": True})
    assert signal.getitimer(signal.ITIMER_REAL) == pytest.approx(before, abs=10), (
        "the time limit of a test stays"
    )


def new(call: str = "f(10)", wanted: str = "4", relation: str = "equal", **others: object) -> NewTest:
    value = WantedValue(text=wanted, relation=relation)  # type: ignore[arg-type]
    return NewTest(name="test_f_10", call=call, wanted=value, imports=(F,), **others)  # type: ignore[arg-type]


PYTEST = '''\
"""Tests."""

from __future__ import annotations

import os

from m import (
    g,
)


def test_g():
    assert g(1) == 1


if __name__ == "__main__":
    test_g()
'''
PLACED = '''\
"""Tests."""

from __future__ import annotations

import os

from m import (
    g,
)
from m import f


def test_g():
    assert g(1) == 1


def test_f_10():
    assert f(10) == 4


if __name__ == "__main__":
    test_g()
'''


def test_a_function_is_added_at_the_end_with_the_import_that_the_file_lacks() -> None:
    placed = place(PYTEST, [new()], unittest=False)
    assert placed is not None
    assert placed.text == PLACED
    assert placed.names == ("test_f_10",)


UNITTEST = """\
import unittest
from m import f


class OtherTest(unittest.TestCase):
    def test_g(self):
        self.assertEqual(g(1), 1)


class FTest(unittest.TestCase):
    def test_f(self):
        self.assertEqual(f(1), 1)


if __name__ == "__main__":
    unittest.main()
"""


def test_a_method_is_added_to_the_test_case_that_names_the_call_most() -> None:
    placed = place(UNITTEST, [new()], unittest=True)
    assert placed is not None
    assert placed.names == ("FTest::test_f_10",)
    added = "    def test_f_10(self):\n        self.assertEqual(f(10), 4)\n"
    assert placed.text == UNITTEST.replace("f(1), 1)\n", f"f(1), 1)\n\n{added}")


def test_a_new_file_has_what_its_tests_need() -> None:
    placed = place("", [new()], unittest=False)
    assert placed is not None
    assert placed.text == "from m import f\n\n\ndef test_f_10():\n    assert f(10) == 4\n"
    as_case = place("", [new()], unittest=True)
    assert as_case is not None
    assert as_case.text == (
        "from m import f\nimport unittest\n\n\nclass F10Test(unittest.TestCase):\n"
        "    def test_f_10(self):\n        self.assertEqual(f(10), 4)\n"
    )


@pytest.mark.parametrize(
    ("test", "line", "method"),
    [
        (new(wanted="None"), "assert f(10) is None", "self.assertIs(f(10), None)"),
        (new(wanted="0.3"), "assert f(10) == pytest.approx(0.3)", "self.assertAlmostEqual(f(10), 0.3)"),
        (
            new(wanted="[9, 0]", relation="last"),
            "assert f(10)[-1] == [9, 0]",
            "self.assertEqual(f(10)[-1], [9, 0])",
        ),
        (
            new(wanted="[9, 0]", relation="tail"),
            "assert f(10)[-2:] == [9, 0]",
            "self.assertEqual(f(10)[-2:], [9, 0])",
        ),
        (
            new(wanted="'th'", relation="suffix"),
            "assert f(10).endswith('th')",
            "self.assertTrue(f(10).endswith('th'))",
        ),
        (new(iterated=True), "assert list(f(10)) == 4", "self.assertEqual(list(f(10)), 4)"),
        (new(wanted="", relation="no_error"), "f(10)", "f(10)"),
        (new("f(1) == f(2)", "True"), "assert (f(1) == f(2)) is True", "self.assertIs(f(1) == f(2), True)"),
        (
            new("f(1) + f(2)", "[9]", relation="last"),
            "assert (f(1) + f(2))[-1] == [9]",
            "self.assertEqual((f(1) + f(2))[-1], [9])",
        ),
    ],
)
def test_each_kind_of_wanted_value_has_its_assertion(test: NewTest, line: str, method: str) -> None:
    as_function, as_method = place("", [test], unittest=False), place("", [test], unittest=True)
    assert as_function is not None
    assert as_method is not None
    assert f"():\n    {line}\n" in as_function.text
    assert f"(self):\n        {method}\n" in as_method.text
    assert ("import pytest" in as_function.text) == ("pytest." in line)


def test_an_error_is_awaited_as_the_framework_does() -> None:
    test = new(wanted="ValueError", relation="raises")
    as_function, as_method = place("", [test], unittest=False), place("", [test], unittest=True)
    assert as_function is not None
    assert as_method is not None
    assert "    with pytest.raises(ValueError):\n        f(10)\n" in as_function.text
    assert "        with self.assertRaises(ValueError):\n            f(10)\n" in as_method.text


def test_what_is_still_to_be_added_is_imported_within_the_test() -> None:
    placed = place(PYTEST, [new(inside=True)], unittest=False)
    assert placed is not None
    assert "def test_f_10():\n    from m import f\n    assert f(10) == 4\n" in placed.text
    assert placed.text.count("from m import f") == 1


def test_a_file_that_cannot_be_parsed_gets_no_test() -> None:
    assert place("def test(:\n", [new()], unittest=False) is None


def test_names_say_which_call_is_made_and_are_taken_once() -> None:
    wanted = WantedValue(text="4")
    assert test_name("chunked(range(10), 3, fill=0)", wanted, ()) == "test_chunked_range_10_3_fill_0"
    assert test_name("list(chunked([1]))", wanted, ()) == "test_chunked_1"
    assert test_name("f(10)", wanted, ("test_f_10", "test_f_10_2")) == "test_f_10_3"
    assert (
        test_name("f(1)", WantedValue(text="KeyError", relation="raises"), ()) == "test_f_1_raises_keyerror"
    )
    assert test_name("f('ä ß')", wanted, ()) == "test_f"


@pytest.mark.parametrize("source", ["m", ".m"])
def test_a_name_that_a_file_uses_and_has_with_all_of_a_module_is_not_imported_again(source: str) -> None:
    text = f"from {source} import *\n\n\ndef test_f():\n    assert f(1) == 1\n"
    statement = f"from {source} import f"
    assert with_imports(text, [statement]) == text
    for other in (f"from {source} import g", "from n import f"):
        assert other in with_imports(text, [other])


def test_an_import_goes_behind_those_that_are_there() -> None:
    assert with_imports("", [F]) == "from m import f\n"
    assert with_imports('"""Doc."""\n\nx = 1\n', [F]) == '"""Doc."""\n\nfrom m import f\n\nx = 1\n'
    assert with_imports("import m\n\nx = 1\n", ["import m"]) == "import m\n\nx = 1\n"


def test_a_name_that_the_file_binds_to_something_else_is_told() -> None:
    assert bound_elsewhere("def f():\n    pass\n", F)
    assert not bound_elsewhere("from .m import f\n", F)
    assert not bound_elsewhere("x = 1\n", F)


def test_a_file_is_in_the_style_of_unittest_where_all_its_tests_are_methods() -> None:
    assert is_unittest_style(UNITTEST)
    assert not is_unittest_style(PYTEST)
    assert not is_unittest_style(UNITTEST + "\ndef test_x():\n    pass\n")
