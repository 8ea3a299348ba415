from inline_snapshot import snapshot

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.execute.attempt_result import Goal, TestedAttempt, describe_result


def test_a_result_tells_the_state_of_the_goal_and_the_words_of_what_fails_newly() -> None:
    tested = TestedAttempt(
        reason="newly failing: tests/t.py::test_sub",
        goals=(
            Goal(name="tests/t.py::test_add", state="passes now"),
            Goal(name="tests/t.py::test_mul", state="fails as before"),
            Goal(
                name="tests/t.py::test_neg",
                state="fails in another way",
                failing=FailingTest(name="tests/t.py::test_neg", expected="-1", actual="1"),
            ),
            Goal(name="tests/t.py::test_sum", state="passes now"),
        ),
        newly_failing=(
            FailingTest(
                name="tests/t.py::test_sub", statement="assert sub(3, 1) == 2", expected="2", actual="4"
            ),
        ),
        missing=("tests/u.py::test_u",),
        after=Evidence(),
    )
    assert describe_result(tested) == snapshot("""\
The edits were applied and tested: newly failing: tests/t.py::test_sub.
Goal tests (they failed before this step): 2 of 4 pass now.
- passes now: tests/t.py::test_add, tests/t.py::test_sum
- fails as before: tests/t.py::test_mul
- fails in another way: tests/t.py::test_neg
Did not run, and passed before: tests/u.py::test_u
Newly failing test: tests/t.py::test_sub
  failing line: assert sub(3, 1) == 2
  expected: 2
  actual: 4
Goal test, which fails in another way now: tests/t.py::test_neg
  expected: -1
  actual: 1\
""")


def test_a_run_whose_tests_have_no_names_tells_its_messages() -> None:
    tested = TestedAttempt(
        reason="exit 2, 0 before", goals=(), after=Evidence(messages=("error: expected `;`",))
    )
    assert describe_result(tested) == (
        "The edits were applied and tested: exit 2, 0 before.\nMessages:\n- error: expected `;`"
    )


def test_many_tests_stay_within_the_bound() -> None:
    names = [f"tests/test_{number}.py::test_{'x' * 150}" for number in range(60)]
    tested = TestedAttempt(
        reason="newly failing: many",
        goals=tuple(Goal(name=name, state="fails as before") for name in names),
        newly_failing=tuple(FailingTest(name=name, message="m" * 3_000 + name) for name in names),
        missing=tuple(names),
        after=Evidence(),
    )
    assert len(describe_result(tested, bound=4_096)) <= 4_096
