"""Goal tests of the small project of `solving`, whose tests are run for real in this process."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing import repositories
from testing.runs.memory_commits import MemoryCommits, MemoryHistory
from testing.runs.memory_run import MemoryRun, memory_project
from testing.runs.memory_till import MemoryTill, memory_till
from testing.runs.solving import TILL

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.goals import GivenEvidence, Goals, NamedDefinition
from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.errors import UsageError
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goals import (
    as_told,
    collect_goals,
    related_red_tests,
    unmerged,
    without_goal_tests,
)

SPLIT_DOC = ">>> split(9, 3)\n[3, 3, 3]\n>>> split(10, 4)\n[3, 3, 2, 2]\n>>> split(1, 1)\n[...]\n"
RED = {path: str(text) for path, text in TILL.items()}
"""The project with its red test."""
GREEN = {
    **RED,
    "tests/test_money.py": "import unittest\n\nfrom till.money import split\n\n\nclass MoneyTest(unittest.TestCase):\n"
    "    def test_even_split(self):\n        self.assertEqual(split(9, 3), [3, 3, 3])\n",
}
"""The project without a test of what is wrong."""


def definition(name: str, path: str = "till/money.py", doc: str = "") -> NamedDefinition:
    return NamedDefinition(
        name=name,
        path=path,
        kind="function",
        first_line=1,
        last_line=9,
        signature=f"def {name}(…)",
        doc=doc,
        test_files=("tests/test_money.py",),
    )


DEFINITIONS = (
    definition("split"),
    definition("total"),
    definition("negate"),
    definition("receipt", "till/receipt.py"),
)
Collect = Callable[..., Goals]


def nobody(request: ChatRequest) -> str:
    raise AssertionError(f"asked {request.prompt}")


NOTHING = GivenEvidence()


class Project:
    """Collects the goals of one task after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0

    def __call__(
        self,
        words: str,
        script: Callable[[ChatRequest], str] = nobody,
        *,
        files: dict[str, str] | None = None,
        definitions: tuple[NamedDefinition, ...] = DEFINITIONS,
        given: GivenEvidence = NOTHING,
    ) -> Goals:
        self._number += 1
        with memory_till(self._folder / str(self._number), files or GREEN, task=words) as till:
            self.till = till
            self.memory = opened(till, script, definitions)
            goals = collect_goals(self.memory.run, run_baseline(self.memory.run), given)
            self.events = till.events()
            self.text = till.history.files[goals.commit]["tests/test_money.py"] if goals.commit else ""
            again = opened(till, nobody, definitions, resumed=True)
            assert collect_goals(again.run, run_baseline(again.run), given) == goals
            assert till.events() == self.events
        return goals


def opened(
    till: MemoryTill,
    script: Callable[[ChatRequest], str],
    definitions: tuple[NamedDefinition, ...],
    *,
    resumed: bool = False,
) -> MemoryRun:
    memory = till.open(script, resumed=resumed, solve={"route": "auto"})
    memory.index.named = definitions
    return memory


@pytest.fixture
def collect(tmp_path: Path) -> Project:
    return Project(tmp_path)


def described(goals: Goals) -> list[tuple[str, str, str, str]]:
    return [(test.source.value, test.call, test.wanted, test.got) for test in goals.tests]


def test_a_call_with_its_value_becomes_a_test_in_the_file_that_exercises_it(collect: Project) -> None:
    goals = collect("split(100, 3) returns [33, 33, 33], should be [34, 33, 33]")
    assert described(goals) == [("stated", "split(100, 3)", "[34, 33, 33]", "[33, 33, 33]")]
    (test,) = goals.tests
    assert (test.name, test.path) == ("tests.test_money.MoneyTest.test_split_100_3", "tests/test_money.py")
    added = "\n    def test_split_100_3(self):\n        self.assertEqual(split(100, 3), [34, 33, 33])\n"
    assert collect.text == GREEN["tests/test_money.py"] + added
    assert collect.till.history.refs["goals"] == goals.commit
    kinds = dict(collect.events)
    assert json.loads(kinds["goal_tests"])["considered"] == ["split(100, 3): [33, 33, 33]"]


DATED = {
    **GREEN,
    "till/dates.py": "from datetime import datetime\n\n\ndef when(year):\n    return datetime(year, 2, 1)\n",
    "tests/test_money.py": "from datetime import datetime\n"
    + GREEN["tests/test_money.py"]
    + "\n    def test_now(self):\n        self.assertTrue(datetime.now())\n",
}


@pytest.mark.parametrize(
    ("wanted", "module"),
    [("datetime.datetime(2011, 1, 1, 0, 0)", True), ("datetime(2011, 1, 1, 0, 0)", False)],
)
def test_a_value_has_its_own_imports_where_the_file_means_something_else(
    collect: Project, wanted: str, module: bool
) -> None:
    gives = wanted.replace(", 1, 1", ", 2, 1")
    goals = collect(
        f"when(2011) gives {gives}, but it should give {wanted}",
        files=DATED,
        definitions=(*DEFINITIONS, definition("when", "till/dates.py")),
    )
    assert [(test.call, test.wanted) for test in goals.tests] == [("when(2011)", wanted)]
    compared = f"        self.assertEqual(when(2011), {wanted})\n"
    assert compared in collect.text
    assert ("        import datetime\n" in collect.text) == module


SPAN = """\
class Span:
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __repr__(self):
        return f"Span({self.start}, {self.end})"
"""
EQUAL = """
    def __eq__(self, other):
        return (self.start, self.end) == (other.start, other.end)
"""
WIDEN = "\n\ndef widen(span):\n    return Span(span.start, span.end)\n"


@pytest.mark.parametrize(("equal", "found"), [(EQUAL, True), ("", False)])
def test_a_value_may_be_made_by_the_project_where_those_made_alike_are_equal(
    collect: Project, equal: str, found: bool
) -> None:
    goals = collect(
        "`widen(Span(1, 2))` gives `Span(1, 2)`, but it should give `Span(1, 3)`",
        lambda _: "I do not know",
        files={**GREEN, "till/spans.py": SPAN + equal + WIDEN},
        definitions=(*DEFINITIONS, definition("Span", "till/spans.py"), definition("widen", "till/spans.py")),
    )
    wanted = [("stated", "widen(Span(1, 2))", "Span(1, 3)", "Span(1, 2)")]
    assert described(goals) == (wanted if found else [])


HELPED = {
    **GREEN,
    "tests/test_money.py": GREEN["tests/test_money.py"].replace(
        "\n\n\nclass", "\n\nPEOPLE = 3\n\n\ndef shares(cents):\n    return split(cents, PEOPLE)\n\n\nclass", 1
    ),
}


@pytest.mark.parametrize("call", ["split(100, PEOPLE)", "shares(100)", "sorted(shares(100))[::-1]"])
def test_what_the_file_of_tests_has_may_stand_in_a_report(collect: Project, call: str) -> None:
    goals = collect(
        f"`{call}` gives `[33, 33, 33]`, but it should give `[34, 33, 33]`",
        files=HELPED,
    )
    assert described(goals) == [("stated", call, "[34, 33, 33]", "[33, 33, 33]")]
    assert collect.text.count("import") == HELPED["tests/test_money.py"].count("import")


def test_an_argument_that_is_missing_inside_is_what_a_report_may_be_about(collect: Project) -> None:
    words = "`split(*(100,))` fails with a TypeError, but it should give `[100]`"
    error = "raises TypeError: split() missing 1 required positional argument: 'people'"
    assert described(collect(words)) == [("stated", "split(*(100,))", "[100]", error)]


def test_what_does_not_happen_here_is_said_and_nothing_is_added(collect: Project) -> None:
    goals = collect("split(9, 3) returns [3, 3], should be [3, 3, 3]")
    assert (goals.tests, goals.commit) == ((), "")
    assert goals.notes[0] == "this does not happen here: split(9, 3) gives [3, 3, 3]"


def test_what_holds_already_is_no_remark_beside_what_does_not(collect: Project) -> None:
    goals = collect("split(9, 3) should be [3, 3, 3] and is; split(100, 3) should be [34, 33, 33]")
    assert [test.call for test in goals.tests] == ["split(100, 3)"]
    assert goals.notes == ()


def test_red_tests_of_what_the_words_call_otherwise_are_no_goal(collect: Project) -> None:
    wrong = (
        RED["tests/test_money.py"] + "\n    def test_other(self):\n        self.assertEqual(total([2]), 9)\n"
    )
    goals = collect("total([1]) gives 7, should be 8", files={**RED, "tests/test_money.py": wrong})
    assert goals.tests == ()
    assert any(
        "not counted as a goal, since the task names a call of its own" in note for note in goals.notes
    )


def test_a_red_test_that_has_the_reports_own_names_makes_another_call(collect: Project) -> None:
    wrong = (
        RED["tests/test_money.py"]
        + "\n    def test_other(self):\n        p = []\n        self.assertEqual(sorted(p), 9)\n        split(1, 1)\n"
    )
    words = "after `p = split(100, 3); p.reverse()`, sorted(p) gives [33, 33, 33], should be [33, 33, 34]"
    goals = collect(words, files={**RED, "tests/test_money.py": wrong})
    assert [(test.source.value, test.whole_call) for test in goals.tests] == [
        ("stated", "p = split(100, 3); p.reverse(); sorted(p)")
    ]


def test_sides_that_are_exchanged_show_nothing(collect: Project) -> None:
    goals = collect("split(100, 3) returns [34, 33, 33], should be [33, 33, 33]")
    assert goals.tests == ()


def test_failing_examples_of_what_the_task_names_are_goal_tests(collect: Project) -> None:
    definitions = (definition("split", doc=SPLIT_DOC),)
    goals = collect("split() loses cents", definitions=definitions)
    assert described(goals) == [("documented", "split(10, 4)", "[3, 3, 2, 2]", "[2, 2, 2, 2]")]


def test_red_tests_that_the_task_is_about_come_first_and_others_are_left_out(collect: Project) -> None:
    wrong = (
        RED["tests/test_money.py"]
        + "\n    def test_other(self):\n        self.assertEqual(negate([1]), [1])\n"
    )
    goals = collect("split(100, 3) loses a cent", files={**RED, "tests/test_money.py": wrong})
    assert [(test.source.value, test.name) for test in goals.tests] == [
        ("repository", "tests.test_money.MoneyTest.test_split_keeps_every_cent")
    ]
    named = collect("make test_other pass", files={**RED, "tests/test_money.py": wrong})
    assert [(test.name, test.path) for test in named.tests] == [
        ("tests.test_money.MoneyTest.test_other", "tests/test_money.py")
    ]
    unnamed = collect("cents are lost", files={**RED, "tests/test_money.py": wrong})
    assert len(unnamed.tests) == 2


def test_a_call_in_the_words_that_is_wrong_is_the_goal_rather_than_a_red_test_they_do_not_name(
    collect: Project,
) -> None:
    wrong = (
        GREEN["tests/test_money.py"]
        + "\n    def test_always_red(self):\n        self.assertEqual(split(9, 3), [3, 3])\n"
    )
    files = {**RED, "tests/test_money.py": wrong}
    words = "split(100, 3) returns [33, 33, 33], should be [34, 33, 33]"
    goals = collect(words, files=files)
    assert [(test.source.value, test.call) for test in goals.tests] == [("stated", "split(100, 3)")]
    (note,) = goals.notes
    said = "1 red test is not counted as a goal, since the task names a call of its own: "
    assert note == f"{said}tests.test_money.MoneyTest.test_always_red"
    assert goals.related == ("tests.test_money.MoneyTest.test_always_red",)
    named = collect(f"{words}; see test_always_red", files=files)
    assert [test.source.value for test in named.tests] == ["repository"]
    same = collect(words, files=RED)
    assert {test.source.value for test in same.tests} == {"repository", "stated"}


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("Write what is missing in money.py.", "repository"),
        ("Write receipt() and what is missing in money.py.", "repository"),
        ("Write what is missing in receipt.py.", ""),
    ],
)
def test_red_tests_that_import_a_file_which_the_words_name_are_about_it(
    collect: Project, words: str, source: str
) -> None:
    files = {**RED, "till/receipt.py": "def receipt(lines):\n    return lines\n"}
    goals = collect(
        words, lambda _: "no", files=files, definitions=(definition("receipt", "till/receipt.py"),)
    )
    assert {test.source.value for test in goals.tests} == ({source} if source else set())


def test_a_call_that_a_red_test_makes_already_gets_no_second_test(collect: Project) -> None:
    text = GREEN["tests/test_money.py"]
    split = "\n    def test_cents(self):\n        self.assertEqual(split(100,3), [34, 33,33])\n"
    other = "\n    def test_other(self):\n        self.assertEqual(split(9, 3), [3])\n"
    words = "split(100, 3) returns [33, 33, 33], should be [34, 33, 33]"
    goals = collect(words, files={**RED, "tests/test_money.py": text + split + other})
    assert described(goals) == [("repository", "split(100, 3)", "[34, 33, 33]", "")]
    assert (goals.commit, len(goals.notes)) == ("", 1)
    assert "test_other" in goals.notes[0]
    wrong = split.replace("[34", "[35")
    both = collect(words, files={**RED, "tests/test_money.py": text + wrong})
    assert {test.source.value for test in both.tests} == {"repository", "stated"}


def test_examples_are_not_looked_at_beside_red_tests(collect: Project) -> None:
    goals = collect("split() loses cents", files=RED, definitions=(definition("split", doc=SPLIT_DOC),))
    assert [test.source.value for test in goals.tests] == ["repository"]


def test_a_red_test_says_the_call_that_it_makes_and_what_that_should_give(collect: Project) -> None:
    wrong = (
        RED["tests/test_money.py"]
        + "\n    def test_other(self):\n        given = [1]\n        self.assertEqual(total(given), [1])\n"
    )
    (goal,) = collect("make test_other pass", files={**RED, "tests/test_money.py": wrong}).tests
    assert (goal.call, goal.wanted, goal.got) == ("total([1])", "[1]", "")


def test_a_red_test_says_the_call_of_its_helper_with_what_it_was_given(tmp_path: Path) -> None:
    text = "from a import f\n\n\ndef check(g):\n    assert g([2, 1]) == [1, 2]\n\n\ndef test_f():\n    check(f)\n"
    failing = FailingTest(
        name="t.py::test_f",
        statement="check(f)",
        expected="[1, 2]",
        actual="[2, 1]",
        frames=(
            StackFrame(path="t.py", line=5, function="check"),
            StackFrame(path="t.py", line=9, function="test_f"),
        ),
    )
    with memory_project(tmp_path, {"t.py": text}, lambda _: {failing.name: "failed"}) as project:
        run = project.open(nobody).run
        (red,), _ = related_red_tests(run, replace(run_baseline(run), failing=(failing,)), ())
    assert (red.call, red.wanted, red.got) == ("f([2, 1])", "[1, 2]", "[2, 1]")


def test_a_red_test_says_in_words_what_is_not_compared_for_equality(tmp_path: Path) -> None:
    text = (
        "from a import f\n\n\ndef test_has():\n    assert 4 in f(9)\n\n\ndef test_true():\n    assert f(9)\n"
    )
    failing = (
        FailingTest(name="t.py::test_has", message="assert 4 in [3]", expected="to contain 4", actual="[3]"),
        FailingTest(name="t.py::test_true", message="no\nassert []", statement="assert f(9)"),
        FailingTest(name="t.py::test_two", message="assert 0 == 1", statement="assert f(9) == 1"),
    )
    outcomes: dict[str, Outcome] = {one.name: "failed" for one in failing}
    with memory_project(tmp_path, {"t.py": text}, lambda _: outcomes) as project:
        run = project.open(nobody).run
        red, _ = related_red_tests(run, replace(run_baseline(run), failing=failing), ())
    assert [(one.call, one.wanted, one.got) for one in red] == [
        ("", "", "[3], wanted to contain 4"),
        ("f(9)", "True", "[]"),
        ("f(9)", "1", "0"),
    ]


def test_a_short_red_test_that_makes_no_single_call_is_told_with_its_text(tmp_path: Path) -> None:
    body = "    def test_other(self):\n        self.assertIn(0, [total(given) for given in ([1], [2])])\n"
    long = body.replace("other", "long") + "        pass\n" * 30
    text = f"{RED['tests/test_money.py']}\n{body}\n{long}"
    words = "make test_other and test_long pass"
    with memory_till(tmp_path, {**RED, "tests/test_money.py": text}, task=words) as till:
        run = opened(till, nobody, DEFINITIONS).run
        goals = collect_goals(run, run_baseline(run), NOTHING)
        shown = {test.name.rpartition(".")[2]: test.code for test in as_told(run, goals.tests)}
    assert shown == {"test_long": "", "test_other": textwrap.dedent(body).rstrip()}
    assert {test.code for test in goals.tests} == {""}


def test_what_fails_for_want_of_something_in_the_environment_is_no_goal(collect: Project) -> None:
    lacking = "import unittest\nimport no_such_package\n"
    goals = collect("cents are lost", files={**GREEN, "tests/test_split.py": lacking})
    assert goals.tests == ()


def test_a_function_to_be_added_is_imported_within_its_test(collect: Project) -> None:
    goals = collect("Add refund to till/money.py: refund([1, 2]) should return [-1, -2]")
    (test,) = goals.tests
    assert "from till.money import refund" in test.code
    assert test.got.startswith("raises ImportError: cannot import name 'refund' from 'till.money'")


@pytest.mark.parametrize(
    ("check", "got"),
    [
        ("assert sum(split(100, 3)) == 100", "raises AssertionError"),
        ("sum(split(100, 3)) == 100", "raises AssertionError"),
        ("split('a', 1)", "raises TypeError"),
        ("shares = split(100, 3)\nassert sum(shares) == 100", "raises AssertionError"),
    ],
)
def test_a_statement_of_the_user_becomes_a_test(collect: Project, check: str, got: str) -> None:
    goals = collect("cents are lost", given=GivenEvidence(checks=(check,)))
    (test,) = goals.tests
    assert test.source.value == "given"
    assert test.got.startswith(got)
    assert test.code in collect.text.replace("\n    ", "\n") or test.code.strip()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (GivenEvidence(checks=("assert split(9, 3) == [3, 3, 3]",)), "it does not fail now"),
        (
            GivenEvidence(checks=("assert nothing(9) == 3",)),
            "it names nothing that the repository defines once",
        ),
        (GivenEvidence(checks=("assert split(9",)), "it is no statement of Python"),
        (GivenEvidence(tests=("test_even_split",)), "it does not fail now (passed)"),
        (GivenEvidence(tests=("test_nowhere",)), "no test has that name"),
    ],
)
def test_evidence_that_cannot_be_used_is_refused_with_the_reason(
    collect: Project, given: GivenEvidence, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        collect("cents are lost", given=given)
    assert message in raised.value.message
    assert raised.value.exit_code == 2


def test_a_test_of_the_user_is_found_by_the_end_of_its_name(collect: Project) -> None:
    goals = collect("cents are lost", files=RED, given=GivenEvidence(tests=("test_split_keeps_every_cent",)))
    assert [(test.source.value, test.trust) for test in goals.tests] == [("given", "proof")]


def test_a_call_without_its_arguments_only_names_the_function(collect: Project) -> None:
    goals = collect("split() returns 3 instead of 4 and split() must raise ValueError", lambda _: "nothing")
    assert goals.tests == ()
    assert not [note for note in goals.notes if "split" in note]


ANSWER = "split(100, 3) == [34, 33, 33]"


def test_a_model_says_the_value_where_the_words_have_none_and_three_answers_agree(collect: Project) -> None:
    goals = collect(
        "split(100, 3) returns [33, 33, 33] and loses a cent, it has to go to the first", lambda _: ANSWER
    )
    assert described(goals) == [("stated", "split(100, 3)", "[34, 33, 33]", "[33, 33, 33]")]
    asked = collect.memory.transport.requests
    assert len(asked) == 3
    assert "split(100, 3) == [33, 33, 33]" in asked[0].prompt


def test_answers_that_differ_show_nothing(collect: Project) -> None:
    answers = iter(["split(100, 3) == [34, 33, 33]", "split(100, 3) == [35, 33, 32]", "nothing"])
    goals = collect("split(100, 3) returns [33, 33, 33] and loses a cent", lambda _: next(answers))
    assert goals.tests == ()


def test_what_a_model_makes_up_is_a_hint_that_guides_but_does_not_decide(collect: Project) -> None:
    goals = collect("split() loses cents", lambda _: "split(7, 2) == [4, 3]")
    assert [(test.source.value, test.trust, test.call) for test in goals.tests] == [
        ("written", "hint", "split(7, 2)")
    ]
    assert goals.deciding == ()
    assert goals.guiding == goals.tests


def test_a_call_of_the_models_counts_where_all_its_values_stand_in_the_words(collect: Project) -> None:
    words = "split() loses cents: 100 for 3 gives 34, 33, 33"
    goals = collect(words, lambda _: ANSWER)
    assert [(test.source.value, test.call) for test in goals.tests] == [("stated", "split(100, 3)")]


def test_a_project_whose_runner_is_unknown_has_only_what_needs_no_new_test(tmp_path: Path) -> None:
    outcomes: dict[str, Outcome] = {"t.py::a": "failed"}
    with memory_project(tmp_path, {"a.py": ""}, lambda _: outcomes) as project:
        memory = project.open(nobody)
        goals = collect_goals(memory.run, run_baseline(memory.run), GivenEvidence())
    assert [test.name for test in goals.tests] == ["t.py::a"]


OLD = "import a\n\n\ndef test_one():\n    assert a.one == 1\n"
GOAL = "\n\ndef test_goal():\n    assert a.two == 2\n"
OWN = "\n\ndef test_own():\n    assert a.three == 3\n"


@pytest.mark.parametrize(
    ("base", "added", "now", "left"),
    [
        (OLD, OLD + GOAL, OLD + GOAL, OLD),
        (OLD, OLD + GOAL, OLD + GOAL + OWN, OLD + OWN),
        (OLD, GOAL + OLD, OWN + GOAL + OLD, OWN + OLD),
        (OLD, OLD + GOAL, OLD.replace("== 1", "== 7") + GOAL, OLD.replace("== 1", "== 7")),
        (OLD, OLD + GOAL, OLD, OLD),
        (OLD, OLD + GOAL, OLD + GOAL.replace("== 2", "== 9"), OLD),
        ("", "import b\n" + GOAL, "import b\n" + GOAL + OWN, "import b\n" + OWN),
        (OLD, "import b\n" + OLD + GOAL, "import b\n" + OLD + GOAL + OWN, "import b\n" + OLD + OWN),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n"),
        ("a\nc\n", "a\nb\nc\n", "c\n", "c\n"),
        ("import b\na\n", "import b, c\na\nx\n", "import b, c\na\nx\ny\n", "import b, c\na\ny\n"),
        (OLD, OLD + GOAL, OLD + GOAL.replace("== 2", "== 9") + OWN, OLD + OWN),
        ("a", "a\nb", "a\nb", "a"),
    ],
    ids=repr,
)
def test_what_was_added_is_taken_out_of_what_was_made_of_it(
    base: str, added: str, now: str, left: str
) -> None:
    found = unmerged(base.encode(), added.encode(), now.encode())
    assert found.split() == left.encode().split()


def test_the_steps_are_made_anew_without_the_goal_tests() -> None:
    history = MemoryHistory()
    base = history.add({"a.py": "0\n", "tests/test_a.py": OLD})
    goals = history.add({"a.py": "0\n", "tests/test_a.py": OLD + GOAL, "tests/test_g.py": GOAL})
    first = history.add({"a.py": "1\n", "tests/test_a.py": OLD + GOAL, "tests/test_g.py": GOAL})
    second = history.add(
        {"a.py": "1\n", "b.py": "", "tests/test_a.py": OLD + GOAL + OWN, "tests/test_g.py": GOAL}
    )
    commits = MemoryCommits(history, base)
    tip = without_goal_tests(commits, goals, (first, second))
    assert history.files[tip] == {"a.py": "1\n", "b.py": "", "tests/test_a.py": OLD + OWN}
    assert history.refs == {"without-goals": tip}


def test_a_file_of_goal_tests_alone_does_not_exist_without_them() -> None:
    history = MemoryHistory()
    base = history.add({"a.py": "0\n"})
    goals = history.add({"a.py": "0\n", "tests/test_g.py": GOAL})
    last = history.add({"a.py": "1\n", "tests/test_g.py": GOAL.replace("== 2", "== 9")})
    tip = without_goal_tests(MemoryCommits(history, base), goals, (last,))
    assert history.files[tip] == {"a.py": "1\n"}


def test_made_twice_the_commits_are_the_same(tmp_path: Path) -> None:
    repositories.make_repository(tmp_path / "r", {"a.py": "0\n", "tests/test_a.py": OLD})
    repo = open_repository(tmp_path / "r")
    commits = RunCommits(repo, "0b0c0d0e-0000-4000-8000-000000000000", repo.head, Interrupts())

    def change(text: str) -> FileChange:
        return FileChange(data=text.encode(), mode="100644")

    goals = commits.commit({"tests/test_a.py": change(OLD + GOAL)}, "Goals\n")
    commits.head = goals
    first = commits.commit({"a.py": change("1\n")}, "First\n\nwhy\n")
    commits.head = first
    second = commits.commit({"a.py": change("2\n")}, "Second\n")
    tips = {without_goal_tests(commits, goals, (first, second)) for _ in range(2)}
    assert len(tips) == 1
    (tip,) = tips
    log = repo.git("log", "--format=%s|%b", tip).decode()
    assert log.startswith("Second|\nFirst|why\n")
    assert "Goals" not in log
    assert commits.tree(tip).data("tests/test_a.py") == OLD.encode()
    assert commits.tree(tip).data("a.py") == b"2\n"
