"""The trace of goal tests, of tiny projects whose tests are run for real."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from msgspec import Struct
from testing.patience import PATIENCE
from testing.runs.memory_commits import REPOSITORY
from tests.orchestrator.test_runs.conftest import write_files
from tests.orchestrator.test_runs.tiny_project import PYTEST
from tests.orchestrator.test_runs.traced_project import HARD, TESTS

from clean_room_agent.artifacts.goals import GoalTrace, TracedFunction
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree
from clean_room_agent.orchestrator.test_runs.goal_trace import (
    FunctionRecord,
    TraceRecord,
    read_trace_records,
    trace_goals,
)
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

UNITTEST = f"{sys.executable} -m unittest"


class Silence:
    def notice(self, event: Event) -> None:
        pass


def runner_in(
    tmp_path: Path, files: Mapping[str, str], command: str = PYTEST, **variables: str
) -> CommandRunner:
    root = tmp_path / "tree"
    write_files(root, files)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    return CommandRunner(
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


def run_of(command: str, red: Sequence[str], green: Sequence[str], which: str = "pytest") -> TestRun:
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


@pytest.mark.parametrize(
    "sets",
    ["PYTHONPATH=lib", "env PYTHONPATH=lib:.", "export PYTHONPATH='lib';", 'PYTHONPATH="$PWD/lib" env'],
)
def test_a_command_that_sets_the_path_of_imports_itself_is_traced(tmp_path: Path, sets: str) -> None:
    files = {"lib/chunks.py": CHUNKS, "test_chunks.py": CHUNK_TESTS}
    trace = traced(tmp_path, files, ["test_chunks.py::test_fill"], command=f"{sets} {PYTEST}")
    assert (trace.problem, [one.name for one in trace.functions]) == ("", ["chunked", "chunked_iter"])


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


def newest_python() -> list[str]:
    """unittest's command with the newest Python here, whose frames and instructions differ from ours; none if ours is."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {int(place.parts[-3].split(".")[1]): place for place in home.glob("versions/3.*/bin/python")}
    newest = max(found, default=0)
    return [f"{found[newest]} -m unittest"] if newest > sys.version_info.minor else []


COMMANDS = [PYTEST, UNITTEST, *newest_python()]
IDS = ["pytest", "unittest", "newest"][: len(COMMANDS)]


class Hard(Struct, kw_only=True):
    """The traces of all tests of the hard project, under one command."""

    command: str
    records: dict[str, TraceRecord]
    """By the last part of the test's name."""
    trace: GoalTrace
    took: float

    def ran(self, test: str) -> dict[str, FunctionRecord]:
        """By function: what ran under a test."""
        return {one.name: one for one in self.records[test].functions}

    def last(self, test: str, function: str) -> tuple[str, str, str]:
        """Arguments, result and values of the last call."""
        call = self.ran(test)[function].last[-1]
        pairs = (", ".join(f"{name}={value}" for name, value in one) for one in (call.arguments, call.values))
        arguments, values = pairs
        return arguments, call.result, values


@pytest.fixture(scope="module", params=COMMANDS, ids=IDS)
def hard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hard:
    is_pytest = request.param == PYTEST
    command = request.param if is_pytest else f"{request.param} test_hard"
    folder = tmp_path_factory.mktemp("hard")
    files = {"hard.py": HARD, "test_hard.py": TESTS}
    runner = runner_in(folder, files, command, SERVICE_API_KEY="plain-words-secret")
    titles = [line.split("def ")[1].split("(")[0] for line in TESTS.split("\n") if "def test_" in line]
    head = "test_hard.py::Hard::" if is_pytest else "test_hard.Hard."
    red, green = [f"{head}{title}" for title in titles if title != "test_green"], [f"{head}test_green"]
    began = time.monotonic()
    trace = trace_goals(
        runner, red, green, run_of(command, red, green, "pytest" if is_pytest else "unittest")
    )
    records, problem = read_trace_records(runner.report)
    assert not problem
    kept: dict[str, TraceRecord] = {}
    for record in records:
        test = record.test.removeprefix(head)
        if record.test != head + "test_child" or any(one.name == "loop" for one in record.functions):
            kept[test] = record
    return Hard(command=request.param, records=kept, trace=trace, took=time.monotonic() - began)


def test_recursion_and_long_loops_are_traced_up_to_a_bound(hard: Hard) -> None:
    """Fifty thousand calls, and a loop of two hundred thousand steps."""
    assert hard.last("test_fib", "fib") == ("n=22", "17711", "")
    assert hard.ran("test_fib")["fib"].calls > 500
    assert hard.last("test_deep", "deep") == ("n=900", "900", "")
    assert hard.last("test_loop", "loop") == ("n=200000", "19999900000", "total=19999900000, i=199999")
    assert len(hard.ran("test_loop")["loop"].lines) == 4
    assert hard.ran("test_endless")["endless"].last[-1].result.startswith("raises RecursionError(")
    assert hard.records["test_endless"].failure[0][2] == "endless"


def test_a_value_that_cannot_be_shown_does_no_harm(hard: Hard) -> None:
    """A `__repr__` that raises, hangs, or leaves; and a million items."""
    seen = [dict(call.arguments)["one"] for call in hard.ran("test_reprs")["take"].last]
    assert seen == ["Raises()", "Hangs()", "Leaves()"]
    rows, text = hard.ran("test_big")["big"].last[-1].values
    assert rows[1] == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... 1000000 in all]"
    assert len(text[1]) < 700
    assert hard.last("test_freed", "take") == ("one=Base()", "1", "kept=[Base()]")
    assert "freed" in (hard.records["test_freed"].problem or "freed")


def test_the_last_calls_are_kept_however_many_there_are(hard: Hard) -> None:
    assert hard.ran("test_many")["take"].calls == 2000
    assert hard.last("test_many", "take") == ("one=1999", "1", "kept=[1999]")


def test_a_trace_runs_no_code_of_values_and_is_hurt_by_none_of_the_tests(hard: Hard) -> None:
    """An attribute that computes the class, clocks that are replaced, and an alarm, whose error is the test's own."""
    errors = {
        test: hard.records[test].failed and [line for _, line in hard.records[test].lines]
        for test in ("test_lazy", "test_clock", "test_alarm")
    }
    lines = TESTS.split("\n")
    at = {test: lines.index(f"    def {test}(self):") + 1 for test in errors}
    assert errors["test_lazy"] == [at["test_lazy"] + 3]
    assert errors["test_clock"] == [at["test_clock"] + 3]
    assert errors["test_alarm"] == [at["test_alarm"] + 9]
    assert hard.last("test_clock", "loop")[1] == "3"


def test_secrets_are_left_out_of_values(hard: Hard) -> None:
    values = dict(named(hard.trace)["login"].observed[-1].values)
    assert values == {"token": "'[secret]'", "api_key": "'[secret]'"}


def test_generators_and_coroutines_are_one_call_each(hard: Hard) -> None:
    assert hard.last("test_generator", "numbers") == ("n=3", "yields 0, 1, 4", "i=2")
    assert hard.last("test_generator", "delegating")[:2] == ("n=3", "yields 0, 1, 4")
    assert hard.ran("test_generator")["numbers"].calls == 1
    assert hard.last("test_open_generator", "numbers") == ("n=5", "yields 0, 1, 4", "i=2")
    assert hard.last("test_async", "gather") == ("n=1", "5", "first=2, second=3")
    assert hard.ran("test_async")["fetch"].calls == 2
    assert hard.last("test_stream", "consume")[:2] == ("n=3", "[0, 1, 2]")
    assert hard.last("test_managed", "managed")[1].startswith("raises AssertionError(")


def test_threads_and_child_processes_belong_to_the_test_that_started_them(hard: Hard) -> None:
    assert hard.last("test_thread", "worker") == ("results=[], n=4", "None", "results=[8], doubled=8")
    assert hard.last("test_child", "loop") == ("n=4", "6", "total=6, i=3")


def test_functions_have_the_names_of_their_definitions(hard: Hard) -> None:
    names = set(named(hard.trace))
    wanted = {
        "Base.make",
        "Base.size",
        "Child.area",
        "Child.nested",
        "Child.nested.inner",
        "decorated.wrapper",
    }
    assert wanted <= names
    assert not {"<lambda>", "<genexpr>", "secret", "Child", "Base"} & names
    area = named(hard.trace)["Child.area"]
    assert (HARD.split("\n")[area.first_line - 1].strip(), area.calls) == ("@decorated", 1)
    assert [HARD.split("\n")[line - 1].split()[0] for line, _ in area.lines] == ["squares", "return"]
    assert {one.path for one in hard.trace.functions} == {"hard.py"}


def test_an_error_is_told_with_its_cause_and_one_that_is_caught_as_a_result(hard: Hard) -> None:
    assert [place[2] for place in hard.records["test_cause"].failure] == ["reraises", "fails", "reraises"]
    assert hard.last("test_cause", "fails") == ("n=3", "raises ValueError(2)", "bad=2")
    assert hard.last("test_swallows", "fails") == ("n=3", "raises ValueError(2)", "bad=2")
    assert hard.last("test_swallows", "swallows")[1] == "3"
    assert hard.records["test_swallows"].failure == []
    assert hard.ran("test_sub")["loop"].calls == 3


def test_a_test_that_traces_itself_keeps_its_tracer(hard: Hard) -> None:
    assert hard.records["test_tracer"].failed
    assert hard.records["test_green"].failed is False
    assert [one.last for one in hard.records["test_green"].functions] == [[]]


SHOP = "from shop import RATE\ndef test_rate():\n    assert RATE == 3\n"
BROKEN = "def rate(text):\n    return int(text)\n\nNAME = 'x1'\nRATE = rate(NAME)\n"


@pytest.mark.parametrize("command", [PYTEST, UNITTEST], ids=["pytest", "unittest"])
def test_a_module_that_cannot_be_imported_is_traced_to_its_fault(command: str, tmp_path: Path) -> None:
    case = "import unittest\nfrom shop import RATE\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
    is_pytest = command == PYTEST
    files = {"shop.py": BROKEN, "test_shop.py": SHOP if is_pytest else case}
    goal = "test_shop.py" if is_pytest else "test_shop"
    if not is_pytest:
        command += " test_shop"
    runner = runner_in(tmp_path, files, command)
    like = run_of(command, [goal], [], "pytest" if is_pytest else "unittest")
    trace = trace_goals(runner, [goal], [], like)
    assert [(one.name, one.failed_at, one.first_line) for one in trace.functions] == [
        ("rate", 2, 1),
        ("", 5, 1),
    ]
    assert said(trace.functions[0]) == (
        "text='x1'",
        """raises ValueError("invalid literal for int() with base 10: 'x1'")""",
        "",
    )
    assert said(trace.functions[1])[2] == "NAME='x1'"
    if is_pytest:  # a goal test of the file, which was added to a base that cannot be imported
        of_test = trace_goals(runner, ["test_shop.py::test_rate"], [], like)
        assert [one.name for one in of_test.functions] == ["rate", ""]


PARAMETRISED = """
import pytest, sys
from shop import area, hidden

@pytest.fixture
def side():
    return area(2, 3)

@pytest.mark.parametrize("n", [1, 2, 30])
def test_area(n, side):
    before = area(5, 5)
    assert before == 25
    assert (
        area(n, n)
        < 100
    )

def test_nothing():
    assert sys.missing_name
"""


def test_one_case_of_a_parametrised_test_is_traced_and_a_tracer_gets_its_slot_back(tmp_path: Path) -> None:
    """As coverage does, the tracer is set before the tests, and looked at after them."""
    shop = "def area(w, h):\n    return scaled(w) * h\n\ndef scaled(w):\n    return w\n\ndef hidden():\n    pass\n"
    conftest = (
        "import sys\ndef tracer(*_): return None\nsys.settrace(tracer)\n"
        "def pytest_sessionfinish(session):\n    open('slot', 'w').write(str(sys.gettrace() is tracer))\n"
    )
    files = {"shop.py": shop, "test_shop.py": PARAMETRISED, "conftest.py": conftest}
    goal = "test_shop.py::test_area[30]"
    green = ["test_shop.py::test_area[1]", "test_shop.py::test_area[2]"]
    runner = runner_in(tmp_path, files)
    trace = trace_goals(runner, [goal], green, run_of(PYTEST, [goal], green))
    assert (trace.problem, list(named(trace))) == ("", ["area", "scaled"])
    area = named(trace)["area"]
    assert (area.calls, [said(area, at)[1] for at in (-3, -2, -1)]) == (3, ["6", "25", "900"])
    assert area.lines == ((2, 0.577),)
    assert (runner.root / "slot").read_text() == "True"
    nothing = trace_goals(runner, ["test_shop.py::test_nothing"], [], run_of(PYTEST, [goal], []))
    assert (nothing.functions, nothing.problem) == (
        (),
        "nothing of the repository's own ran outside of its tests",
    )


MANY = """
import unittest
from shop import half

class Many(unittest.TestCase):
    pass

for number in range(302):
    setattr(Many, f"test_{number:03}", lambda self: self.assertEqual(half(4), 3))
"""


@pytest.mark.parametrize(
    ("command", "head", "which"),
    [(PYTEST, "test_many.py::Many::", "pytest"), (f"{UNITTEST} test_many", "test_many.Many.", "unittest")],
)
def test_of_more_tests_than_are_traced_it_is_told_that_they_are_not(
    tmp_path: Path, command: str, head: str, which: str
) -> None:
    runner = runner_in(
        tmp_path, {"shop.py": "def half(n):\n    return n // 2\n", "test_many.py": MANY}, command
    )
    red = [f"{head}test_{number:03}" for number in range(302)]
    trace_goals(runner, red, (), run_of(command, red, (), which))
    told = [(len(one.functions), one.problem) for one in read_trace_records(runner.report)[0]]
    assert told == [(1, "")] * 300 + [(0, "too many tests")] * 2


def test_a_command_is_traced_in_all_its_python_processes(tmp_path: Path) -> None:
    files = {"shop.py": "def price(n):\n    cents = n * 100\n    return cents\n", "run.py": RUN}
    runner = runner_in(tmp_path, files)
    command = f"{sys.executable} run.py 7"
    trace = trace_goals(runner, command, [], run_of(PYTEST, [], []))
    assert trace.problem == ""
    assert [one.name for one in trace.functions] == ["main", "", "price"]
    assert said(trace.functions[0])[1] == "raises AssertionError(700)"
    assert said(named(trace)["price"]) == ("n=7", "700", "cents=700")
    assert trace_goals(runner, "exit 1", [], run_of(PYTEST, [], [])).problem


RUN = """
import sys
from shop import price

def main(text):
    found = price(int(text))
    assert found == 7, found

main(sys.argv[1])
"""


def test_of_a_run_that_dies_what_was_traced_before_is_kept(tmp_path: Path) -> None:
    shop = "import os\ndef leave():\n    os._exit(3)\n\ndef first():\n    return 1\n"
    forged = '{"test": "test_shop.py::test_a", "failed": true, "functions": [["../x.py", 1, "f", 1, [1], 1, 1, 1, []]]}\n[[\n'
    shop += f"open(os.environ['CRA_TEST_REPORTS'] + '/python-0.observed', 'w').write({forged!r})\n"
    tests = (
        "from shop import first, leave\ndef test_a():\n    assert first() == 2\ndef test_b():\n    leave()\n"
    )
    goals = ["test_shop.py::test_a", "test_shop.py::test_b"]
    trace = traced(tmp_path, {"shop.py": shop, "test_shop.py": tests}, goals)
    assert trace.problem == "a part of the trace cannot be read"
    assert [one.name for one in trace.functions] == ["first"]


def test_a_secret_that_was_cut_off_is_not_shown_in_part(tmp_path: Path) -> None:
    shop = (
        "def token(n):\n    return 'ghp_' + 'x7Rq2LmZ9aTb4KcV8nWd1Ys6HgUe3PfJ5oQi'\n\n"
        "def tokens(n):\n    return [token(n)] * n\n"
    )
    tests = "from shop import tokens\ndef test_a():\n    assert len(tokens(30)) == 2\n"
    trace = traced(tmp_path, {"shop.py": shop, "test_shop.py": tests}, ["test_shop.py::test_a"])
    assert "x7R" not in repr(trace)
    assert said(named(trace)["tokens"])[1].startswith("['[secret]', '[secret]', ")


def test_an_example_in_a_docstring_is_traced_into_the_file_that_it_stands_in(tmp_path: Path) -> None:
    shop = 'def split(n):\n    """Half.\n\n    >>> split(5)\n    2\n    """\n    return half(n)\n\n\ndef half(n):\n    return n / 2\n'
    command = f"{PYTEST} --doctest-modules"
    goal = "shop/money.py::shop.money.split"
    trace = traced(tmp_path, {"shop/__init__.py": "", "shop/money.py": shop}, [goal], command=command)
    assert (trace.problem, list(named(trace))) == ("", ["split", "half"])
    assert said(named(trace)["half"])[:2] == ("n=5", "2.5")


def test_files_that_are_tests_by_their_goal_tests_alone_and_odd_names_are_no_places(tmp_path: Path) -> None:
    files = {
        "checks/money.py": "from shöp import split\n\ndef helper():\n    return split(5)\n\ndef test_split():\n    assert helper() == 2\n"
    }
    files["shöp.py"] = (
        "class A:\n    def __init__(self):\n        super().__init__()\n        self.ä = '\\udc80'\n\ndef split(n):\n    A()\n    return n / 2\n"
    )
    command = f"{PYTEST} -o python_files=*.py -o pythonpath=."
    trace = traced(tmp_path, files, ["checks/money.py::test_split"], command=command)
    assert (trace.problem, list(named(trace))) == ("", ["split", "A.__init__"])
    assert {one.path for one in trace.functions} == {"shöp.py"}
    assert said(named(trace)["A.__init__"]) == ("self=A()", "None", "self=A(ä='\\udc80')")


SHOWN = """
class Token:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"<{self._name()}>"

    def _name(self):
        return self.text.upper()

def tokens(text):
    return [Token(part) for part in text.split()]
"""


@pytest.mark.parametrize("command", [PYTEST, UNITTEST])
def test_that_what_only_a_failures_report_calls_has_not_run(tmp_path: Path, command: str) -> None:
    compared = "import unittest\nfrom shown import tokens\n\nclass TokensTest(unittest.TestCase):\n    def test_it(self):\n        "
    check = "assert len(tokens('a b')) == 3" if command == PYTEST else "self.assertEqual(tokens('a b'), [3])"
    files = {"shown.py": SHOWN, "test_shown.py": compared + check + "\n"}
    red = "test_shown.py::TokensTest::test_it" if command == PYTEST else "test_shown.TokensTest.test_it"

    trace = traced(tmp_path, files, [red], command=command)

    assert {one.name for one in trace.functions} == {"tokens", "Token.__init__"}
