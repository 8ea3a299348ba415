from pathlib import Path

from msgspec.structs import replace
from testing.runs.memory_till import memory_till
from tests.orchestrator.test_goals import GREEN, SPLIT_DOC, definition, nobody
from tests.orchestrator.test_goals import opened as opened_till

from clean_room_agent.artifacts.goals import GoalSource, GoalTest, gives
from clean_room_agent.orchestrator.direct.seen_calls import (
    beside_goals,
    broken_example,
    held_examples,
    values_of,
)
from clean_room_agent.orchestrator.full_tests import run_baseline

PLACES = (("till/money.py", "split"),)
METHOD_DOC = ">>> Purse(3).share(3)\n[1, 1, 1]\n"
PURSE = "\n\nclass Purse:\n    def __init__(self, cents):\n        self.cents = cents\n\n    def share(self, people):\n        return split(self.cents, people)\n"


def test_a_candidate_that_breaks_an_example_which_held_is_told_apart(tmp_path: Path) -> None:
    documented = definition("split", doc=SPLIT_DOC)
    with memory_till(tmp_path, GREEN) as till:
        run = opened_till(till, nobody, (documented,)).run
        base = run_baseline(run)
        held = held_examples(run, base, PLACES, ())
        assert [
            (call.call, gave) for one in held for call, gave in zip(one.calls, one.gave, strict=True)
        ] == [("split(9, 3)", "[3, 3, 3]")]
        money = GREEN["till/money.py"]
        for text, said in (
            (
                money.replace("    return [", "    return [0] if cents == 9 else ["),
                "gives [0]",
            ),
            (money.replace("    return [", "    return 1 // 0, ["), "raises ZeroDivisionError"),
            (money + "\nMORE = 1\n", ""),
        ):
            files = run.commits.tree(run.commits.base).encode({"till/money.py": text})
            assert isinstance(files, dict)
            commit = run.commits.commit(files, "Try", parent=run.commits.base)
            broken = broken_example(run, base, held, commit)
            assert (broken is not None) == bool(said)
            if broken is not None:
                assert (broken.call, broken.wanted) == ("split(9, 3)", "[3, 3, 3]")
                assert said in gives(broken.got)


def test_an_example_that_a_goal_test_wants_changed_is_none(tmp_path: Path) -> None:
    goal = GoalTest(name="t", source=GoalSource.STATED, call="split(9, 3)", wanted="[3, 3, 4]")
    with memory_till(tmp_path, GREEN) as till:
        run = opened_till(till, nobody, (definition("split", doc=SPLIT_DOC),)).run
        assert held_examples(run, run_baseline(run), PLACES, (goal,)) == ()


def test_the_examples_of_a_method_are_run_by_its_class(tmp_path: Path) -> None:
    files = {**GREEN, "till/money.py": GREEN["till/money.py"] + PURSE}
    definitions = (definition("Purse"), definition("Purse.share", doc=METHOD_DOC))
    with memory_till(tmp_path, files) as till:
        run = opened_till(till, nobody, definitions).run
        (held,) = held_examples(run, run_baseline(run), (("till/money.py", "Purse.share"),), ())
        assert [call.call for call in held.calls] == ["Purse(3).share(3)"]


def test_calls_beside_a_goals_call_tell_two_changes_apart(tmp_path: Path) -> None:
    words = "`split(100, 3)` gives [33, 33, 33] but it should give [34, 33, 33]"
    goal = GoalTest(name="t", source=GoalSource.STATED, call="split(100, 3)", wanted="[34, 33, 33]")
    proof = replace(goal, source=GoalSource.REPOSITORY)
    with memory_till(tmp_path, GREEN, task=words) as till:
        run = opened_till(till, nobody, (definition("split"),)).run
        base = run_baseline(run)
        assert beside_goals(run, base, (proof,)) == ()
        (calls,) = beside_goals(run, base, (goal,))
        at_base = values_of(run, base, (calls,), run.commits.base)
        assert dict(zip([one.call for one in calls.calls], calls.gave, strict=True)) == at_base
        assert at_base["split(101, 3)"] == "[33, 33, 33]"
        money = GREEN["till/money.py"].replace(
            "    return [", "    return [34, 33, 33] if cents == 100 else ["
        )
        files = run.commits.tree(run.commits.base).encode({"till/money.py": money})
        assert isinstance(files, dict)
        special = run.commits.commit(files, "Only this amount", parent=run.commits.base)
        now = values_of(run, base, (calls,), special)
        differing = [call for call, value in now.items() if value != at_base[call]]
        assert differing
        assert all(call.startswith("split(100, ") for call in differing)
