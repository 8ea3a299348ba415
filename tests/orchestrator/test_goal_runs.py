"""Where new tests go, and which failures of theirs count."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testing.runs.memory_run import memory_project

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.execute.goals.confirming import Looked, Observation
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goal_runs import GoalRuns, _is_right

FILES = {
    "src/pkg/text.py": "def slugify(text):\n    return text\n",
    "src/pkg/other.py": "def f():\n    pass\n",
    "tests/unit/test_text.py": "def test_a():\n    pass\n",
    "tests/unit/test_all.py": "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n",
    "tests/unit/test_be.py": 'def test_b():\n    assert f(2, lang="be") == "два"\n',
    "tests/test_left_out.py": "def test_b():\n    pass\n",
    "src/pkg/empty.py": "def g():\n    pass\n",
    "tests/unit/test_empty.py": "from elsewhere import helper\n",
}
OUTCOMES: dict[str, Outcome] = {
    "tests/unit/test_text.py::test_a": "passed",
    "tests/unit/test_all.py::A::test_a": "passed",
}
Runs = Callable[[dict[str, Outcome]], GoalRuns]


def nobody(request: ChatRequest) -> str:
    raise AssertionError(request.prompt)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with memory_project(tmp_path, FILES, lambda _: outcomes) as project:
        outcomes: dict[str, Outcome] = {}

        def made(found: dict[str, Outcome]) -> GoalRuns:
            outcomes.update(found)
            memory = project.open(nobody)
            return GoalRuns(memory.run, run_baseline(memory.run))

        yield made


def definition(path: str, *tests: str) -> NamedDefinition:
    return NamedDefinition(name="x", path=path, kind="function", first_line=1, last_line=2, test_files=tests)


def test_tests_go_into_the_file_that_is_named_for_the_code(runs: Runs) -> None:
    home = runs(OUTCOMES).home(definition("src/pkg/text.py", "tests/unit/test_all.py"))
    assert (home.path, home.unittest) == ("tests/unit/test_text.py", False)


def test_else_into_one_that_uses_the_code_and_that_the_command_runs(runs: Runs) -> None:
    made = runs(OUTCOMES)
    home = made.home(definition("src/pkg/other.py", "tests/test_left_out.py", "tests/unit/test_all.py"))
    assert (home.path, home.unittest) == ("tests/unit/test_all.py", True)


def test_of_several_that_use_the_code_the_one_that_calls_it_alike(runs: Runs) -> None:
    made = runs({**OUTCOMES, "tests/unit/test_be.py::test_b": "passed"})
    used = definition("src/pkg/other.py", "tests/unit/test_all.py", "tests/unit/test_be.py")
    assert made.home(used, "f(1, lang='be', to='year')").path == "tests/unit/test_be.py"
    assert made.home(used, "f(1, lang='uk')").path == "tests/unit/test_all.py"


def test_one_that_has_no_test_yet_stands_beside_those_that_ran(runs: Runs) -> None:
    home = runs(OUTCOMES).home(definition("src/pkg/empty.py"))
    assert (home.path, home.text) == ("tests/unit/test_empty.py", FILES["tests/unit/test_empty.py"])


def test_none_into_code_whose_documentation_is_run(runs: Runs) -> None:
    outcomes: dict[str, Outcome] = {"src/pkg/text.py::src.pkg.text.slugify": "failed", **OUTCOMES}
    home = runs(outcomes).home(definition("src/pkg/text.py"))
    assert home.path == "tests/unit/test_text.py"


def test_else_into_a_new_one_where_most_tests_are(runs: Runs) -> None:
    home = runs(OUTCOMES).home(definition("src/pkg/other.py", "tests/test_left_out.py"))
    assert (home.path, home.text) == ("tests/unit/test_other.py", "")


def test_what_a_look_gave_is_taken_by_the_run_that_goes_on(tmp_path: Path) -> None:
    tested = []

    def outcomes(tree: object) -> dict[str, Outcome]:
        tested.append(tree)
        return OUTCOMES

    with memory_project(tmp_path, FILES, outcomes) as project:
        memory = project.open(nobody)
        baseline = run_baseline(memory.run)
        before = len(tested)
        for _ in range(2):  # a killed run, and the one that goes on
            made = GoalRuns(memory.run, baseline)
            made.look(made.home(definition("src/pkg/text.py")), (Looked(call="slugify('a')"),))
        assert len(tested) == before + 1


@pytest.mark.parametrize(
    ("message", "raised", "counts"),
    [
        ("AssertionError: assert 3 == 4", (), True),
        ("AssertionError: 3 != 4", (), True),
        ("Failed: DID NOT RAISE <class 'ValueError'>", (), True),
        ("KeyError: 'a'", ("KeyError", "LookupError"), True),
        ("ImportError: cannot import name 'g' from 'm'", ("ImportError",), True),
        ("NameError: name 'x' is not defined", (), False),
        ("SyntaxError: invalid syntax", (), False),
        ("fixture 'db' not found", (), False),
        ("ImportError: cannot import name 'g' from 'm'", (), False),
        ("KeyError: 'a'", ("ValueError",), False),
    ],
)
def test_a_test_counts_that_fails_by_its_assertion_or_by_the_error_that_was_seen(
    message: str, raised: tuple[str, ...], counts: bool
) -> None:
    failure = FailingTest(name="t", message=message)
    assert _is_right([failure, failure], Observation(shown="3", raised=raised)) is counts


def test_a_test_that_fails_otherwise_the_second_time_does_not_count() -> None:
    messages = ("assert 3 == 4", "assert 5 == 4")
    assert not _is_right([FailingTest(name="t", message=one) for one in messages], Observation(shown="3"))
