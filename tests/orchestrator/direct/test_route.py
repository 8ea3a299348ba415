"""The direct route on a project in memory: which candidate is accepted, what is recorded, what a resumed run repeats."""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.runs.memory_run import TASK_ID, MemoryProject, MemoryRun, MemoryRunner, memory_project
from testing.runs.memory_till import memory_till
from tests.orchestrator.test_goals import GREEN, definition, nobody
from tests.orchestrator.test_goals import opened as opened_till

from clean_room_agent.artifacts.goals import NOTHING_GIVEN, Goals, GoalSource, GoalTest
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.db.raw.passes import list_attempts, list_validations
from clean_room_agent.errors import ServerFailed, WindowExceeded
from clean_room_agent.orchestrator.direct.candidates import (
    Answered,
    TriedAnswer,
    goals_at_base,
    run_goals,
    stand_on_goals,
)
from clean_room_agent.orchestrator.direct.questions import NoCandidate, PlaceQuestion
from clean_room_agent.orchestrator.direct.route import (
    Direct,
    may_change,
    passing_beside,
    try_direct,
)
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goals import collect_goals
from clean_room_agent.report.trace import read_trace

FILES = {"a.py": "a = 0\nb = 0\n", "t.py": "the tests\n"}
GOAL = GoalTest(name="t.py::a", source=GoalSource.REPOSITORY, path="t.py")
GOALS = Goals(tests=(GOAL,))


def judged(files: Mapping[str, str]) -> dict[str, Outcome]:
    """`t.py::a` wants an `a` above 0, `t.py::b` the `b` of the base."""
    lines = dict(line.split(" = ") for line in files["a.py"].splitlines())
    return {
        "t.py::a": "passed" if int(lines["a"]) > 0 else "failed",
        "t.py::b": "passed" if lines["b"] == "0" else "failed",
    }


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, FILES, judged) as made:
        yield made


def opened(project: MemoryProject, *, resumed: bool = False) -> MemoryRun:
    memory = project.open(lambda request: "", resumed=resumed)
    run_baseline(memory.run)
    return memory


def question(
    item: str, text: str, *, likelihood: float = -1.0, tokens: int = 5, asked: list[str]
) -> PlaceQuestion:
    """One that is answered by the whole file."""

    def send(pass_id: str) -> Answered:
        asked.append(item)
        if text == "too long":
            raise WindowExceeded("the prompt does not fit")
        return Answered(text=text, call_id=len(asked), completion_tokens=5)

    def write(answer: Answered) -> str | NoCandidate:
        return NoCandidate("it does not parse") if "(" in answer.text else answer.text

    return PlaceQuestion(item=item, path="a.py", symbol="a", send=send, write=write)


class Asking:
    """Rounds of answers, and what was asked."""

    def __init__(self, *rounds: Mapping[str, str]) -> None:
        self._rounds = rounds
        self.asked: list[str] = []
        self.seen: list[int] = []

    def __call__(self, candidates: Sequence[TriedAnswer]) -> Iterable[Sequence[PlaceQuestion]]:
        for answers in self._rounds:
            if any(one.holds for one in candidates):
                return
            self.seen.append(len(candidates))
            yield [question(item, answer, asked=self.asked) for item, answer in answers.items()]


def direct(memory: MemoryRun, *, limit: int = 1_000) -> Direct:
    base = memory.run.progress.accepted
    assert base is not None
    return Direct(
        goals=GOALS,
        base=base,
        places=("a",),
        limit=limit,
    )


def outcomes(project: MemoryProject) -> list[tuple[int, str, str]]:
    return [
        (row.attempt, row.outcome.value, row.error) for row in project.record.write(list_attempts, TASK_ID)
    ]


def test_a_smaller_change_that_holds_as_well_is_taken(project: MemoryProject) -> None:
    memory = opened(project)
    asked: list[str] = []
    whole = question("line", "a = 1\nb = 0\nc = 7\n", asked=asked)
    part = replace(question("part", "a = 1\nb = 0\n", asked=asked), is_smaller=True)
    assert try_direct(memory.run, direct(memory), lambda _: [[whole], [part]])
    assert asked == ["line", "part"]
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\nb = 0\n"


RELATED = {
    "t.py::a": {"1", "2", "3"},
    "t.py::c": {"2"},
}
"""The values of `a` with which these tests pass."""


@pytest.mark.parametrize(
    ("answers", "limit", "asked", "taken"),
    [
        (["1", "0", "2", "3"], 1_000, 3, "2"),
        (["1", "0", "0", "2"], 30, 3, "1"),
    ],
)
def test_what_leaves_a_test_of_the_named_red_is_kept_while_others_are_looked_for(
    tmp_path: Path, answers: Sequence[str], limit: int, asked: int, taken: str
) -> None:
    def judge(files: Mapping[str, str]) -> dict[str, Outcome]:
        value = files["a.py"].split()[2]
        return {name: "passed" if value in right else "failed" for name, right in RELATED.items()}

    with memory_project(tmp_path, FILES, judge) as made:
        memory = opened(made)
        seen: list[str] = []

        def rounds(candidates: Sequence[TriedAnswer]) -> Iterator[list[PlaceQuestion]]:
            for number, answer in enumerate(answers):
                if any(one.settles for one in candidates):
                    return
                yield [question(f"{number}", f"a = {answer}\nb = {number}\n", asked=seen)]

        related = replace(direct(memory, limit=limit), goals=replace(GOALS, related=("t.py::c",)))
        assert try_direct(memory.run, related, rounds)
        assert len(seen) == asked
        text = made.history.files[memory.run.commits.head]["a.py"]
        assert text.startswith(f"a = {taken}\n")


def failing(item: str) -> PlaceQuestion:
    """One that the server does not answer."""

    def fail(pass_id: str) -> Answered:
        raise ServerFailed(f"no answer for {pass_id}")

    return replace(question(item, "", asked=[]), send=fail)


def test_a_server_that_fails_ends_the_route(project: MemoryProject) -> None:
    memory = opened(project)
    with pytest.raises(ServerFailed):
        try_direct(memory.run, direct(memory), lambda _: [[failing("later")]])


def test_what_holds_is_not_lost_where_the_server_fails_later(project: MemoryProject) -> None:
    memory = opened(project)
    right, later = question("right", "a = 1\nb = 0\n", asked=[]), failing("later")
    assert try_direct(memory.run, direct(memory), lambda _: [[right], [later]])
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\nb = 0\n"


@pytest.mark.parametrize("in_turn", [True, False])
def test_what_is_asked_in_turn_is_asked_one_after_the_other(project: MemoryProject, in_turn: bool) -> None:
    memory = project.open(lambda request: "", models={"parallel": 2})
    run_baseline(memory.run)
    both = threading.Barrier(2)
    met: list[bool] = []

    def meet(pass_id: str) -> Answered:
        del pass_id
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.2 if in_turn else 10)
        met.append(not both.broken)
        return Answered(text="(", call_id=1)

    questions = [
        replace(question(item, "(", asked=[]), send=meet, in_turn=in_turn) for item in ("one", "two")
    ]
    assert not try_direct(memory.run, direct(memory), lambda _: [questions])
    assert met == [not in_turn] * 2


def test_a_candidate_may_take_several_times_as_long_as_the_tests_took_and_not_as_configured(
    project: MemoryProject,
) -> None:
    memory = opened(project)
    slow = replace(direct(memory), took_ms=3_000)
    runner = memory.run.tests
    assert isinstance(runner, MemoryRunner)
    runner.seconds.clear()
    try_direct(memory.run, slow, Asking({"still red": "a = -1\nb = 0\n"}))
    assert runner.seconds == [60.0]


def test_the_first_candidate_that_holds_ends_it_and_is_the_runs_head(project: MemoryProject) -> None:
    memory = opened(project)
    asking = Asking(
        {"still red": "a = -1\nb = 0\n", "broken": "a = (\n", "breaks b": "a = 1\nb = 1\n"},
        {"right": "a = 1\nb = 0\n", "also": "a = -2\nb = 0\n"},
        {"never": "a = 9\nb = 0\n"},
    )
    assert try_direct(memory.run, direct(memory), asking)
    assert asking.asked == ["still red", "broken", "breaks b", "right", "also"]
    assert asking.seen == [0, 3]
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\nb = 0\n"
    accepted = memory.run.progress.accepted
    assert accepted is not None
    assert accepted.red() == set()
    (done,) = memory.run.progress.plan.done
    assert (done.part_id, done.step.id, done.commit) == ("direct", "change", memory.run.commits.head)
    assert outcomes(project) == [
        (1, "tests_failed", "t.py::a: it did not run"),
        (2, "refused", "it does not parse"),
        (3, "tests_failed", "newly failing: t.py::b"),
        (4, "applied_and_passed", ""),
        (5, "tests_failed", "t.py::a: it did not run"),
    ]
    good = [
        row
        for row in project.record.write(list_validations, TASK_ID)
        if row.kind == "attempt" and row.success
    ]
    assert [row.tests_passed for row in good] == [2]


def test_of_several_that_hold_one_is_accepted(project: MemoryProject) -> None:
    memory = opened(project)
    assert try_direct(memory.run, direct(memory), Asking({"one": "a = 1\nb = 0\n", "two": "a = 2\nb = 0\n"}))
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\nb = 0\n"
    trace = project.record.write(read_trace, TASK_ID)
    assert [attempt.attempt for _, attempt in trace.accepted()] == [1]
    assert "candidate 1 is likelier" in outcomes(project)[1][2]


def test_one_more_green_goal_test_does_not_count_where_another_test_breaks(tmp_path: Path) -> None:
    def two_goals(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {**judged(files), "t.py::c": "passed" if "a = 2" in files["a.py"] else "failed"}

    made: list[TriedAnswer] = []

    def rounds(candidates: Sequence[TriedAnswer]) -> Iterable[Sequence[PlaceQuestion]]:
        yield [question(text, text, asked=[]) for text in ("a = 1\nb = 1\n", "a = 1\nb = 0\n")]
        made.extend(candidates)

    with memory_project(tmp_path, FILES, two_goals) as project:
        memory = opened(project)
        goals = Goals(tests=(GOAL, replace(GOAL, name="t.py::c")))
        assert not try_direct(memory.run, replace(direct(memory), goals=goals), rounds)
    assert [one.goals.green if one.goals else () for one in made] == [("t.py::a",), ("t.py::a",)]
    assert "t.py::b" in made[0].broken
    assert not made[1].broken


def test_equal_trees_are_tested_once(project: MemoryProject) -> None:
    memory = opened(project)
    asking = Asking({"one": "a = -1\nb = 0\n", "other": "a = -1\nb = 0\n"}, {"third": "a = -1\nb = 0\n"})
    before = len(memory.runner.commands_run)
    assert not try_direct(memory.run, direct(memory), asking)
    assert len(memory.runner.commands_run) - before == 1
    same = "the same change as candidate 1"
    assert [error for _, _, error in outcomes(project)][1:] == [same, same]


def test_nothing_changes_where_no_candidate_holds(project: MemoryProject) -> None:
    memory = opened(project)
    head, accepted = memory.run.commits.head, memory.run.progress.accepted
    assert not try_direct(memory.run, direct(memory), Asking({"one": "a = 1\nb = 1\n"}, {"long": "too long"}))
    assert (memory.run.commits.head, memory.run.progress.accepted) == (head, accepted)
    assert memory.run.progress.plan.done == []
    assert (EventKind.DROPPED_FROM_PROMPT, "long") in project.events()


def test_it_ends_where_its_answer_tokens_are_spent(project: MemoryProject) -> None:
    memory = opened(project)
    asking = Asking(*({str(number): f"a = -{number}\nb = 0\n"} for number in range(1, 9)))
    assert not try_direct(memory.run, direct(memory, limit=12), asking)
    assert asking.asked == ["1", "2", "3"]


def test_a_resumed_run_asks_and_records_nothing_twice(project: MemoryProject) -> None:
    rounds = ({"red": "a = -1\nb = 0\n"}, {"right": "a = 1\nb = 0\n"})
    first = opened(project)

    class Cut(Exception):
        """The process ends."""

    def cut(candidates: Sequence[TriedAnswer]) -> Iterable[Sequence[PlaceQuestion]]:
        yield next(iter(Asking(rounds[0])(candidates)))
        raise Cut

    with pytest.raises(Cut):
        try_direct(first.run, direct(first), cut)
    memory = opened(project, resumed=True)
    asking = Asking(*rounds)
    assert try_direct(memory.run, direct(memory), asking)
    assert asking.asked == ["right"]
    again = opened(project, resumed=True)
    asking = Asking(*rounds)
    assert try_direct(again.run, direct(again), asking)
    assert asking.asked == []
    assert again.run.commits.head == memory.run.commits.head
    assert [number for number, _, _ in outcomes(project)] == [1, 2]


def test_a_command_is_a_goal_test_as_well(project: MemoryProject) -> None:
    memory = opened(project)
    base = memory.run.progress.accepted
    assert base is not None
    goals = (GOAL, GoalTest(name="sh: true", source=GoalSource.GIVEN, command="true"))
    ran = run_goals(memory.runner, goals, base, took_ms=0)
    assert (ran.green, ran.whole) == (("sh: true",), True)
    assert [name for name, _ in ran.said] == ["t.py::a"]


def test_the_standard_at_the_base_knows_the_goal_tests_that_were_added(project: MemoryProject) -> None:
    memory = opened(project)
    base = memory.run.progress.accepted
    assert base is not None
    without = replace(base, report=replace(base.report, outcomes={"t.py::b": "passed"}, collected=1))
    memory.runner.tests = lambda files: {"t.py::a": "failed"}
    memory.runner.duration_ms = 7_000
    at_base = goals_at_base(memory.runner, GOALS.tests, replace(without, command="pytest -q"))
    assert at_base.standard.report.outcomes == {"t.py::a": "failed", "t.py::b": "passed"}
    assert at_base.standard.report.collected == 2
    assert at_base.ran.green == ()
    assert at_base.took_ms == 7_000


def test_only_product_code_that_the_user_left_in_is_changed(project: MemoryProject) -> None:
    run = opened(project).run
    tree = run.commits.tree()
    assert may_change(run, tree, "a.py", ())
    assert may_change(run, tree, "a.py", ("a.py",))
    assert not may_change(run, tree, "a.py", ("b.py",))
    assert not may_change(run, tree, "tests/test_a.py", ())
    assert not may_change(run, tree, "gone.py", ())


def test_a_hint_is_no_goal_test_at_the_base(project: MemoryProject) -> None:
    memory = opened(project)
    hint = GoalTest(name="t.py::made_up", source=GoalSource.WRITTEN, path="t.py", code="def made_up(): ...")
    at_base = stand_on_goals(memory.run, Goals(tests=(GOAL, hint)))
    assert [name for name, _ in at_base.ran.said] == ["t.py::a"]
    assert at_base.ran.whole


RIGHT = "    return [cents // people + (i < cents % people) for i in range(people)]\n"
SPECIAL = "    return [cents // people + (i < cents % people and cents == 100) for i in range(people)]\n"


@pytest.mark.parametrize("texts", [(RIGHT, SPECIAL), (RIGHT, RIGHT.replace("(i <", "int(i <"))])
def test_two_changes_that_hold_and_differ_beside_the_goals_call_are_a_doubt(
    tmp_path: Path, texts: tuple[str, str]
) -> None:
    words = "`split(100, 3)` gives [33, 33, 33] but it should give [34, 33, 33]"
    with memory_till(tmp_path, GREEN, task=words) as till:
        run = opened_till(till, nobody, (definition("split"),)).run
        goals = collect_goals(run, run_baseline(run), NOTHING_GIVEN)
        at_base = stand_on_goals(run, goals)
        money = GREEN["till/money.py"]
        old = next(line for line in money.splitlines(keepends=True) if "return [" in line)
        questions = [
            replace(
                question(text, money.replace(old, text), asked=[]),
                path="till/money.py",
                symbol="split",
                write=lambda answer: answer.text,
            )
            for text in texts
        ]
        direct = Direct(goals=goals, base=at_base.standard, places=("split",), limit=1_000)
        assert try_direct(run, direct, lambda _: [questions])
        if texts[1] == SPECIAL:
            assert "gives [34, 34, 33] with this change, [33, 33, 33] with another" in run.progress.doubt
        else:
            assert run.progress.doubt == ""


@pytest.mark.parametrize(
    ("goal", "path", "beside", "elsewhere"),
    [
        (
            "tests/test_a.py::T::test_x",
            "tests/test_a.py",
            "tests/test_a.py::test_y",
            "tests/test_b.py::test_y",
        ),
        ("tests.test_a.T.test_x", "tests/test_a.py", "tests.test_a.U.test_y", "tests.test_ab.T.test_y"),
        ("a.test.js > sums > x", "a.test.js", "a.test.js > sums > y", "b.test.js > sums > y"),
        ("sums > x", "", "sums > y", "texts > y"),
    ],
)
def test_goals_are_compared_with_passing_tests_of_their_files(
    goal: str, path: str, beside: str, elsewhere: str
) -> None:
    goals = [GoalTest(name=goal, source=GoalSource.REPOSITORY, path=path)]
    assert passing_beside(goals, {elsewhere, beside}) == [beside]
