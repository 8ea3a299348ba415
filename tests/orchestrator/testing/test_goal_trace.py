"""The trace of goal tests, of tiny projects whose tests are run for real."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from testing.patience import PATIENCE
from testing.runs.memory_commits import REPOSITORY
from tests.orchestrator.testing.conftest import write_files
from tests.orchestrator.testing.tiny_project import PYTEST

from clean_room_agent.artifacts.goals import GoalTrace, TracedFunction
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.orchestrator.config import TestingConfig
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.testing.goal_trace import trace_goals
from clean_room_agent.orchestrator.testing.results import CommandEnd, Outcome, Runner, TestReport, TestRun
from clean_room_agent.orchestrator.testing.test_runner import TestRunner, TestWorktree

UNITTEST = f"{sys.executable} -m unittest"


class Silence:
    def notice(self, event: Event) -> None:
        pass


def runner_in(
    tmp_path: Path, files: Mapping[str, str], command: str = PYTEST, **variables: str
) -> TestRunner:
    root = tmp_path / "tree"
    write_files(root, files)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    return TestRunner(
        config=TestingConfig(test_command=command, timeout=PATIENCE),
        tree=TestWorktree(
            worktree=Worktree(path=root, git_dir=root / ".git", repo=REPOSITORY, submodules=())
        ),
        inherited=inherited
        | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_DEBUG_TEMPROOT": str(temporary)}
        | variables,
        report=tmp_path / "reports" / "results.xml",
        observer=Silence(),
    )


def traced(
    tmp_path: Path,
    files: Mapping[str, str],
    red: Sequence[str],
    green: Sequence[str] = (),
    command: str = PYTEST,
    **variables: str,
) -> GoalTrace:
    """The trace of the red tests of a project, compared with the green ones."""
    runner = runner_in(tmp_path, files, command, **variables)
    return trace_goals(runner, red, green, run_of(command, red, green))


def run_of(command: str, red: Sequence[str], green: Sequence[str], which: Runner = "pytest") -> TestRun:
    """A run of a second in which these tests failed and passed."""
    outcomes: dict[str, Outcome] = {}
    for names, outcome in ((red, "failed"), (green, "passed")):
        outcomes.update((name, cast("Outcome", outcome)) for name in names)
    report = TestReport(runner=which, outcomes=outcomes, named=True)
    return TestRun(command=command, end=CommandEnd(returncode=1, duration_ms=1000), report=report)


def named(trace: GoalTrace) -> dict[str, TracedFunction]:
    return {one.name: one for one in trace.functions}


def said(function: TracedFunction, at: int = -1) -> tuple[str, str, str]:
    """Arguments, result and values of one of its observed calls."""
    call = function.observed[at]
    pairs = (", ".join(f"{name}={value}" for name, value in one) for one in (call.arguments, call.values))
    arguments, values = pairs
    return arguments, call.result, values


CHUNKS = '''
"""Chunks."""


def chunked(src, size, fill=None):
    return list(chunked_iter(src, size, fill=fill))


def chunked_iter(src, size, fill=None):
    if size < 1:
        raise ValueError("size")
    cur_chunk = []
    for item in src:
        cur_chunk.append(item)
        if len(cur_chunk) == size:
            yield cur_chunk
            cur_chunk = []
    if cur_chunk:
        lc = len(cur_chunk)
        if fill is not None:
            cur_chunk[lc:] = [fill] * lc
        yield cur_chunk
'''
CHUNK_TESTS = """
import pytest
from chunks import chunked, chunked_iter

def test_plain():
    assert chunked(range(4), 2) == [[0, 1], [2, 3]]

def test_size():
    with pytest.raises(ValueError):
        list(chunked_iter([], 0))

def test_fill():
    assert chunked(range(4), 3, fill=0) == [[0, 1, 2], [3, 0, 0]]
"""


def test_a_failed_assertion_leads_to_the_function_that_the_passing_tests_do_not_suspect(
    tmp_path: Path,
) -> None:
    files = {"chunks.py": CHUNKS, "test_chunks.py": CHUNK_TESTS}
    green = ["test_chunks.py::test_plain", "test_chunks.py::test_size"]
    trace = traced(tmp_path, files, ["test_chunks.py::test_fill"], green)
    assert (trace.problem, [one.name for one in trace.functions]) == ("", ["chunked", "chunked_iter"])
    function = named(trace)["chunked_iter"]
    assert (function.path, function.first_line, function.last_line, function.calls) == (
        "chunks.py",
        9,
        22,
        1,
    )
    suspicion = dict(function.lines)
    assert (suspicion[21], suspicion[14], suspicion.get(11)) == (1.0, 0.707, None)
    assert said(function) == (
        "src=range(0, 4), size=3, fill=0",
        "yields [0, 1, 2], [3, 0]",
        "cur_chunk=[3, 0], item=3, lc=1",
    )
    assert said(named(trace)["chunked"]) == ("src=range(0, 4), size=3, fill=0", "[[0, 1, 2], [3, 0]]", "")


DEEP = """
class Base:
    def total(self, rows):
        return sum(self.price(row) for row in rows)

class Shop(Base):
    def __init__(self, rate):
        self.rate = rate

    def price(self, row):
        name, amount = row.split(":")
        scaled = int(amount) * self.rate
        return scaled / self.count(name)

    @staticmethod
    def count(name):
        return len(name) - 3
"""


def test_an_error_deep_inside_puts_the_frames_that_it_came_through_first(tmp_path: Path) -> None:
    tests = "from shop import Shop\ndef test_total():\n    assert Shop(2).total(['a:1', 'abc:4']) == 1\n"
    trace = traced(tmp_path, {"shop.py": DEEP, "test_shop.py": tests}, ["test_shop.py::test_total"])
    assert [one.name for one in trace.functions] == [
        "Shop.price",
        "Base.total",
        "Shop.__init__",
        "Shop.count",
    ]
    price = trace.functions[0]
    assert (price.failed_at, price.calls, price.first_line, price.suspicion) == (13, 2, 10, 1.0)
    assert said(price) == (
        "self=Shop(rate=2), row='abc:4'",
        "raises ZeroDivisionError('division by zero')",
        "name='abc', amount='4', scaled=8",
    )
    assert said(price, -2)[1] == "-1.0"
    assert said(trace.functions[1])[0] == "self=Shop(rate=2), rows=['a:1', 'abc:4']"
