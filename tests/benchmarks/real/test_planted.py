import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from benchmarks.real.planted import MOST_BROKEN, NoTask, admitted, sentence, take_out, true_one
from benchmarks.real.tasks import PLUGIN, Bench, Comparison, Report, parses

SUITE = """
import pytest, shout

def assert_equal(expected, result):
    assert result == expected

def test_it_shouts():
    words = ["a", "b"]
    arguments = [words, "!"]
    result = shout.loud(*arguments)
    assert_equal("A B!", result)

class TestMore:
    @pytest.mark.parametrize("n", [1, 2])
    def test_it_fails(self, n):
        assert shout.loud(n) == "1"

    def test_nothing_is_said_about_objects(self):
        assert shout.loud([object()]) == [object()]

def test_passes():
    assert shout.loud([]) == "."
"""
COMPARISON = Comparison(test="t", call="f(1)", got="2", expected="3", raised="")


def test_the_plugin_tells_what_a_call_on_literal_values_got(tmp_path: Path) -> None:
    (tmp_path / "shout.py").write_text(
        "def loud(words, end='.'):\n    return ' '.join(w.upper() for w in words)\n", encoding="utf-8"
    )
    (tmp_path / "test_shout.py").write_text(SUITE, encoding="utf-8")
    environment = os.environ | {
        "REAL_REPORT": str(tmp_path / "report.json"),
        "PYTHONPATH": str(PLUGIN.parent),
    }
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "report_plugin",
        "-p",
        "no:randomly",
        "test_shout.py",
    )
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    report = msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report)
    assert set(report.outcomes.values()) == {"failed"}
    assert [sentence(comparison) for comparison in report.comparisons] == [
        "`loud(['a', 'b'], '!')` gives `'A B'`, but it should give `'A B!'`.",
        "`loud(1)` fails with `TypeError: 'int' object is not iterable`, but it should give `'1'`.",
        "`loud(2)` fails with `TypeError: 'int' object is not iterable`, but it should give `'1'`.",
        "`loud([])` gives `''`, but it should give `'.'`.",
    ]


def test_the_tests_that_a_fault_breaks_are_taken_out_with_their_decorators(tmp_path: Path) -> None:
    (tmp_path / "test_shout.py").write_text(SUITE, encoding="utf-8")
    take_out(tmp_path, ["test_shout.py::TestMore::test_it_fails[1]", "test_shout.py::test_passes"])
    text = (tmp_path / "test_shout.py").read_text(encoding="utf-8")
    assert "test_it_fails" not in text
    assert "parametrize" not in text
    assert "test_passes" not in text
    assert "class TestMore:\n\n    def test_nothing" in text
    take_out(tmp_path, ["test_shout.py::TestMore::test_nothing_is_said_about_objects"])
    assert parses((tmp_path / "test_shout.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ({}, "does not end"),
        ({"t": "passed", "u": "passed"}, "0 tests break"),
        ({"t": "passed", "u": "failed"}, "literal values"),
    ],
)
def test_a_fault_that_makes_no_task_is_refused(after: dict[str, str], why: str) -> None:
    before = Report(outcomes={"t": "passed", "u": "passed"})
    with pytest.raises(NoTask, match=why):
        admitted(before, Report(outcomes=after, comparisons=(COMPARISON,)))


def test_a_fault_may_break_few_functions_with_many_parameters() -> None:
    before = Report(outcomes={f"t[{number}]": "passed" for number in range(MOST_BROKEN + 1)})
    told = msgspec.structs.replace(COMPARISON, test="t[1]")
    after = Report(outcomes=dict.fromkeys(before.outcomes, "failed"), comparisons=(told,))
    assert admitted(before, after) == (sorted(before.outcomes), [told])


class HereBench(Bench, frozen=True, kw_only=True):
    """Runs tests with this interpreter."""

    def run_suite(
        self,
        tree: Path,
        command: Sequence[str],
        environment: str = "",
        *,
        timeout: float = 60.0,
        lines: bool = False,
    ) -> Report:
        told = tree.with_name("told.json")
        variables = {**os.environ, "PYTHONPATH": str(PLUGIN.parent), "REAL_REPORT": str(told)}
        plain = (sys.executable, *command[1:], "-p", "report_plugin", "-p", "no:cacheprovider")
        subprocess.run(plain, cwd=tree, env=variables, capture_output=True, check=False, timeout=timeout)
        return msgspec.convert(json.loads(told.read_bytes()), Report)


def test_a_sentence_is_one_that_holds_by_itself(tmp_path: Path) -> None:
    """What `more` gives depends on what was put in before; and the last cannot be read."""
    faulty = "class Box:\n    def __init__(self):\n        self.held = []\n\n    def size(self):\n        return len(self.held) + 1\n"
    for name, text in (("sound", faulty.replace(" + 1", "")), ("start", faulty)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "box.py").write_text(text, encoding="utf-8")
        (tmp_path / name / "test_box.py").write_text("from box import Box\n", encoding="utf-8")

    def compared(call: str, expected: str) -> Comparison:
        return Comparison(test="test_box.py::test_it", call=call, got="?", expected=expected, raised="")

    told = [compared("Box().size(", "0"), compared("Box().size()", "2"), compared("Box().size() + 0", "0")]
    bench = HereBench(work=tmp_path, mirrors="")
    assert true_one(bench, tmp_path / "sound", tmp_path / "start", told) == told[2]
    with pytest.raises(NoTask, match="by itself"):
        true_one(bench, tmp_path / "sound", tmp_path / "start", told[:2])
    assert sorted(path.name for path in (tmp_path / "start").glob("*.py")) == ["box.py", "test_box.py"]
