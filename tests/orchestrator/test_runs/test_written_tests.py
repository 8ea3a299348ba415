import pytest

from clean_room_agent.orchestrator.test_runs.written_tests import declares_tests, written_tests

SOURCE = b'''\
"""def test_in_a_text(): ..."""
import unittest

import pytest


def test_plain():
    assert True


async def test_later(): ...


@pytest.mark.parametrize("case", [1, 2])
def test_cases(case): ...


@pytest.mark.skipif(True, reason="not here")
def test_somewhere_else(): ...


@pytest.fixture
def test_client(): ...


def helper(): ...


class TestPlain:
    def test_a(self): ...
    def other(self): ...


class TestHeld:
    def __init__(self): ...
    def test_b(self): ...


class Mixin:
    def test_c(self): ...


class MoneyCase(unittest.TestCase):
    def test_d(self): ...

    @unittest.expectedFailure
    def test_e(self): ...


@unittest.skip("later")
class LaterCase(unittest.TestCase):
    def test_f(self): ...


class BoundTest(unittest.TestCase):
    def setUp(self):
        self.skipTest("not here")

    def test_g(self): ...
'''


def test_tests_are_found_in_the_text_and_those_that_may_skip_are_told_apart() -> None:
    assert written_tests("t.py", SOURCE, unittest=False) == {
        "t.py::test_plain": True,
        "t.py::test_later": True,
        "t.py::test_cases": True,
        "t.py::test_somewhere_else": False,
        "t.py::TestPlain::test_a": True,
        "t.py::MoneyCase::test_d": True,
        "t.py::MoneyCase::test_e": False,
        "t.py::LaterCase::test_f": False,
        "t.py::BoundTest::test_g": False,
    }


def test_unittest_collects_cases_alone() -> None:
    found = written_tests("t.py", SOURCE, unittest=True)
    assert sorted(found) == [
        "t.py::BoundTest::test_g",
        "t.py::LaterCase::test_f",
        "t.py::MoneyCase::test_d",
        "t.py::MoneyCase::test_e",
    ]


@pytest.mark.parametrize(
    "head", ["pytestmark = pytest.mark.skip", 'pytest.importorskip("numpy")', "raise unittest.SkipTest"]
)
def test_a_module_that_skips_itself_may_skip_each_of_its_tests(head: str) -> None:
    found = written_tests("t.py", f"{head}\ndef test_a(): ...\n".encode(), unittest=False)
    assert found == {"t.py::test_a": False}


@pytest.mark.parametrize(
    ("path", "source", "declares"),
    [
        ("checks/money.py", b"def test_a(): ...\n", True),
        ("till/money.py", b"def split(): ...\n", False),
        ("checks/money.js", b"describe('money', () => {\n  it.each([1])('adds', () => {});\n});\n", True),
        ("src/money.ts", b"export const it = 1;\n", False),
        ("README.md", b"test(1)\n", False),
    ],
)
def test_a_text_declares_tests_whatever_its_file_is_called(path: str, source: bytes, declares: bool) -> None:
    assert declares_tests(path, source) is declares


def test_a_syntax_error_hides_no_test_around_it() -> None:
    source = b"def test_a():\n    return (\n\ndef test_b():\n    assert True\n"
    assert "t.py::test_a" in written_tests("t.py", b"import = 1\n\ndef test_a(): ...\n", unittest=False)
    assert written_tests("t.py", source, unittest=False)
    assert written_tests("t.js", b"test('a', () => {});", unittest=False) == {}
