"""What a failing test gives in full: its statement, what was expected and got, and where, by runners that are run."""

import shutil
import sys

import pytest
from tests.orchestrator.test_runs.tiny_project import PYTEST, Runner, Write

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.orchestrator.test_runs.test_commands import Watched

UNITTEST = f"{sys.executable} -m unittest"
LONG = "'" + "http://site.example/?q=" * 40
TOOL = "def url(end): return 'http://site.example/?q=' * 40 + end\ndef check(n):\n    raise KeyError(n)\n"
CASES = """
import unittest
import pytest
from tool import check, url

def test_long():
    assert url("a") == url("b"), "words"
def test_reversed():
    assert [1, 2] == list((1, 3))
def same(left, right):
    assert left in right
def test_helper():
    same(
        3,
        [1, 2],
    )
def test_error():
    try:
        check(1)
    except KeyError as exc:
        raise ValueError("n") from exc
def test_caught():
    with pytest.raises(AssertionError):
        assert 1 == 2
    raise AssertionError("own")
class TestOld(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(url("a"), url("b"))
    def test_member(self):
        self.assertIn(1, {})
    def test_several(self):
        for number in (1, 2):
            with self.subTest(number=number):
                if number == 2: check(2)
                self.assertEqual(number, 0)
"""
COMMANDS = {
    "no traceback": f"{PYTEST} --tb=no",
    "verbose": f"{PYTEST} -vv",
    "xdist": f"{PYTEST} -p xdist -n 1",
}


def told(got: TestRun) -> dict[str, FailingTest]:
    """The failing tests by the last part of their names, the first of each."""
    found: dict[str, FailingTest] = {}
    for test in got.failing:
        found.setdefault(test.name.replace("::", ".").rpartition(".")[2], test)
    return found


PARAMETRIZED = """
import pytest

def emptied(values):
    values.clear()
    return values

class Loud:
    def __repr__(self):
        shown.append(self)
        return "Loud()"

shown = []

@pytest.mark.parametrize(("values", "wanted", "made"), [([3] * 300, [], None), ([2, 1], [1, 2], [Loud()])])
def test_emptied(values, wanted, made):
    assert not shown
    assert emptied(values) == wanted
"""


@pytest.mark.parametrize("options", sorted(COMMANDS))
def test_what_a_test_was_parametrized_with_is_told_as_it_was_before(
    options: str, write: Write, run: Runner
) -> None:
    write({"tests/test_a.py": PARAMETRIZED})
    (failing,) = run(COMMANDS[options]).failing
    assert failing.arguments == (("values", "[2, 1]"), ("wanted", "[1, 2]"))
    assert failing.statement == "assert emptied(values) == wanted"


@pytest.mark.parametrize("options", sorted(COMMANDS))
def test_pytest_gives_whole_values_whatever_it_prints(options: str, write: Write, run: Runner) -> None:
    write({"tests/test_a.py": CASES, "tool.py": TOOL})
    got = run(COMMANDS[options])
    assert got.watched == Watched(ended=True)
    found = told(got)
    long = found["test_long"]
    assert (long.expected, long.actual) == (f"{LONG}b'", f"{LONG}a'")
    assert long.statement == 'assert url("a") == url("b"), "words"'
    assert long.message.startswith("AssertionError: words")
    assert "..." not in long.message
    assert long.frames == (StackFrame(path="tests/test_a.py", line=7, function="test_long"),)
    turned = found["test_reversed"]
    assert (turned.expected, turned.actual) == ("[1, 2]", "[1, 3]")
    helper = found["test_helper"]
    assert (helper.expected, helper.actual) == ("to be in [1, 2]", "3")
    assert helper.statement == "same(\n    3,\n    [1, 2],\n)"
    assert [(frame.function, frame.line) for frame in helper.frames] == [("same", 11), ("test_helper", 13)]
    error = found["test_error"]
    assert (error.expected, error.actual, error.statement) == ("", "", 'raise ValueError("n") from exc')
    assert [(frame.path, frame.function) for frame in error.frames] == [
        ("tests/test_a.py", "test_error"),
        ("tool.py", "check"),
        ("tests/test_a.py", "test_error"),
    ]
    assert (found["test_caught"].expected, found["test_caught"].actual) == ("", "")
    assert (found["test_equal"].expected, found["test_equal"].actual) == (f"{LONG}b'", f"{LONG}a'")


def test_unittest_gives_whole_values(write: Write, run: Runner) -> None:
    write({"test_a.py": CASES, "tool.py": TOOL})
    got = run(f"{UNITTEST} test_a")
    assert got.watched == Watched(ended=True)
    found = told(got)
    equal = found["test_equal"]
    assert (equal.expected, equal.actual) == (f"{LONG}b'", f"{LONG}a'")
    assert equal.statement == 'self.assertEqual(url("a"), url("b"))'
    assert equal.message == "AssertionError"
    assert equal.frames == (StackFrame(path="test_a.py", line=28, function="test_equal"),)
    assert (found["test_member"].expected, found["test_member"].actual) == ("to be in {}", "1")
    several = [test for test in got.failing if test.name.endswith("test_several")]
    assert [(test.message, test.expected, test.actual) for test in several] == [
        ("KeyError: 2", "", ""),
        ("AssertionError: 1 != 0", "0", "1"),
    ]
    assert several[0].frames[0] == StackFrame(path="tool.py", line=3, function="check")


def test_the_plugin_is_not_handed_on_to_what_tests_start(write: Write, run: Runner) -> None:
    inner = f"import os, subprocess\ndef test_a():\n    assert 'cra_failures' not in os.environ.get('PYTEST_PLUGINS', '')\n    env = dict(os.environ, PYTHONPATH='')\n    subprocess.run([{sys.executable!r}, '-m', 'pytest', '--version'], env=env, check=True)\n"
    write({"test_a.py": inner})
    assert run().report.passed == 1


def test_values_that_cannot_be_shown_or_are_huge_disturb_nothing(write: Write, run: Runner) -> None:
    cases = (
        "class Odd:\n    def __repr__(self): raise SystemError('no')\n    def __eq__(self, other): return False\n    __hash__ = None\n"
        "def test_odd(): assert Odd() == 1\n"
        "def test_huge(): assert list(range(2_000_000)) == [1]\n"
        "def test_text(): assert 'x' * 50_000_000 == ['y']\n"
        "def deep(n): return deep(n - 1) if n else 1 / 0\n"
        "def test_deep(): deep(500)\n"
    )
    write({"test_a.py": cases})
    found = told(run(PYTEST + " --tb=short"))
    assert found["test_odd"].actual == "<Odd instance whose repr raises SystemError>"
    assert found["test_huge"].expected == "[1]"
    assert found["test_huge"].actual.startswith("[0, 1, 2, ")
    assert "characters left out" in found["test_text"].actual
    assert found["test_text"].expected == "['y']"
    assert 0 < len(found["test_deep"].frames) <= 20
    assert max(len(test.expected + test.actual) for test in found.values()) < 10_000


def test_of_many_failures_the_first_are_given_in_full(write: Write, run: Runner) -> None:
    write(
        {
            "test_a.py": "import pytest\n@pytest.mark.parametrize('n', range(220))\ndef test_n(n): assert n == -1\n"
        }
    )
    got = run(PYTEST + " --tb=short")
    assert len(got.failing) == 220
    assert sum(bool(test.expected) for test in got.failing) == 200


NODE_CASES = """
const {describe, it} = require('node:test'); const assert = require('assert');
const long = 'http://site.example/?q='.repeat(40);
describe('outer', () => {
  it('fails', () => {
    assert.deepStrictEqual({url: long + 'a', more: new Map([[1, 2]])}, {url: long + 'b', more: new Map([[1, 3]])});
  });
  it('throws', () => { undefined.x(); });
  it('loops', () => {
    [1, 2].forEach((n) => {
      assert.ok(n < 2);
    });
  });
  it('differs', () => { assert.notStrictEqual(1, 1); });
  const asked = (message, expected) => { throw Object.assign(new Error(message), {expected, actual: {}}); };
  it('asks', () => { asked("expected '<p>a</p>' response body, got '<p>b</p>'", '<p>a</p>'); });
  it('asks for like', () => { asked("expected body '<p>b</p>' to match /a/", /a/); });
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_nodes_own_runner_gives_whole_values(write: Write, run: Runner) -> None:
    write({"a.test.js": NODE_CASES})
    found = {test.name.rpartition(" > ")[2]: test for test in run("node --test").failing}
    fails = found["fails"]
    assert LONG + "b'" in fails.expected
    assert LONG + "a'" in fails.actual
    assert "1 => 3" in fails.expected
    assert fails.statement.startswith("assert.deepStrictEqual({url")
    assert (fails.frames[0].path, fails.frames[0].line) == ("a.test.js", 6)
    assert found["loops"].statement == "assert.ok(n < 2);"
    assert found["throws"].message.startswith("TypeError: Cannot read properties of undefined")
    assert (found["throws"].expected, found["differs"].expected) == ("", "not to be 1")
    # supertest leaves what it parsed on the error, {} for HTML; the text that came stands in its message.
    assert (found["asks"].expected, found["asks"].actual) == ("'<p>a</p>'", "'<p>b</p>'")
    assert (found["asks for like"].expected, found["asks for like"].actual) == ("/a/", "'<p>b</p>'")
