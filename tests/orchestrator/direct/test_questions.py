"""What the direct route asks, in which order, and what it goes on from."""

from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport
from testing.runs.memory_run import pytest_run

from clean_room_agent.artifacts.goals import GoalSource, GoalTest
from clean_room_agent.execute.forms.place import SAME, Assignment, Place
from clean_room_agent.orchestrator.direct.candidates import Answered, GoalRun, TriedAnswer
from clean_room_agent.orchestrator.direct.questions import (
    MASKED_AT_A_TIME,
    MASKED_ROUNDS,
    PlaceQuestion,
    Questions,
    Target,
    left_to_do,
)
from clean_room_agent.orchestrator.run_config import Form, SolveConfig
from clean_room_agent.orchestrator.steps.attempt import ChangeJudgment
from clean_room_agent.orchestrator.test_runs.gate import StepVerdict

TEXT = """\
def total(values):
    result = 1
    for value in values:
        result += value
    return result


def later(values):
    raise NotImplementedError
"""
GOAL = GoalTest(name="t", source=GoalSource.STATED, call="total([1])", wanted="1", got="2")
ASSIGNMENT = Assignment(task="total([1]) gives 2, should be 1", goals=(GOAL,))
TOTAL = Target(
    place=Place(path="a.py", name="total", first_line=1, last_line=5, lines=(5, 4, 3, 2)), text=TEXT
)
LATER = Target(place=Place(path="a.py", name="later", first_line=8, last_line=9, lines=(9,)), text=TEXT)
MEAN_TEXT = TEXT + "\n\ndef mean(values):\n    count = len(values)\n    return total(values) / count\n"
MEAN = Target(
    place=Place(path="a.py", name="mean", first_line=12, last_line=14, lines=(14, 13)), text=MEAN_TEXT
)
TOTAL_BESIDE_MEAN = replace(TOTAL, text=MEAN_TEXT)
AT_BASE = GoalRun(green=(), said=(("t", "2"),))


SOLVE = SolveConfig(max_attempts=1, max_refinement_loops=0)


def rounds(
    candidates: Sequence[TriedAnswer],
    *targets: Target,
    fills: bool = True,
    probed: list[bool] | None = None,
    solve: SolveConfig = SOLVE,
    goal: GoalTest = GOAL,
) -> Iterator[list[PlaceQuestion]]:
    models = model_client(ScriptedTransport(lambda _: ""), MemorySink(), window=8_192)
    texts = {one.commit: one.text for one in candidates}

    def text(commit: str, path: str) -> str:
        del path
        return texts.get(commit) or next(one.text for one in candidates if one.commit == commit)

    def can_fill() -> bool:
        if probed is not None:
            probed.append(fills)
        return fills

    assignment = replace(ASSIGNMENT, goals=(goal,))
    questions = Questions(models, targets, assignment, AT_BASE, text, fills=can_fill, solve=solve)
    return questions.rounds(candidates)


def candidate(
    item: str, *, text: str = "", said: str = "", fault: str = "", green: tuple[str, ...] = ()
) -> TriedAnswer:
    goals = GoalRun(green=green, said=(("t", said),)) if said else None
    return TriedAnswer(
        number=1,
        item=item,
        path="a.py",
        symbol="total",
        answer=Answered(text="", call_id=1),
        text=text,
        commit="made",
        fault=fault,
        goals=goals,
    )


def items(questions: Sequence[PlaceQuestion]) -> list[str]:
    return [one.item for one in questions]


def test_gaps_come_before_whole_definitions_and_the_last_line_that_ran_first() -> None:
    asked = [items(one) for one in rounds([], TOTAL)]
    assert "masked" in asked[0][0]
    assert " 5-5 " in asked[0][0]
    first_worded = next(at for at, one in enumerate(asked) if "function" in one[0])
    assert all(0 < len(one) <= MASKED_AT_A_TIME for one in asked[:first_worded])
    assert sum(len(one) for one in asked[:first_worded]) <= MASKED_AT_A_TIME * MASKED_ROUNDS
    everything = [item for one in asked for item in one]
    assert len(set(everything)) == len(everything)


def test_what_is_inside_a_block_that_an_answer_opens_is_asked_in_the_next_round() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    line = next(item for item in items(next(asked)) if "masked line 5-5" in item)
    answer = Answered(text=" if not values:", call_id=1)
    candidates.append(replace(candidate(line, fault="the file no longer parses"), answer=answer))
    first, *others = next(asked)
    assert first.item == "a.py::total masked block 5 if not values: comment 0"
    assert "block" not in "".join(items(others))
    assert first.write(Answered(text=" return 0", call_id=2)) == TEXT.replace(
        "    return", "    if not values:\n        return 0\n    return"
    )


def test_a_place_does_not_wait_for_all_gaps_of_the_one_before_it() -> None:
    asked = [items(one) for one in rounds([], TOTAL_BESIDE_MEAN, MEAN)]
    places = [one[0].partition(" ")[0].rpartition("::")[2] for one in asked if one and "masked" in one[0]]
    assert places[:4] == ["total", "total", "mean", "total"]


def test_a_place_that_is_far_less_suspicious_waits_for_whole_definitions_of_the_others() -> None:
    asked = [items(one) for one in rounds([], TOTAL_BESIDE_MEAN, replace(MEAN, suspicion=0.5)) if one]
    of_mean = next(at for at, one in enumerate(asked) if "::mean masked" in one[0])
    assert any("::total function" in item for one in asked[:of_mean] for item in one)
    near = [items(one) for one in rounds([], TOTAL_BESIDE_MEAN, replace(MEAN, suspicion=0.8)) if one]
    assert "::mean masked" in near[2][0]


def test_wrong_lines_of_a_long_definition_wait_for_all_its_gaps() -> None:
    last = 41
    text = (
        "def total(values):\n"
        + "".join(f"    a{n} = values[{n}]\n" for n in range(2, last))
        + "    return a2\n"
    )
    place = Place(path="a.py", name="total", first_line=1, last_line=last, lines=tuple(range(last, 1, -1)))
    near = replace(candidate("a.py::total masked 0", text=text, said="1"), base=0)
    asked = [items(one) for one in rounds([near], Target(place=place, text=text, suspicion=1.0)) if one]
    of_lines = next(at for at, one in enumerate(asked) if "total lines" in one[0])
    assert of_lines > MASKED_ROUNDS
    assert all("masked" in item for one in asked[:of_lines] for item in one)


def test_what_has_still_to_be_written_is_asked_for_whole() -> None:
    asked = [items(one) for one in rounds([], LATER) if one]
    assert all("function" in item for one in asked for item in one)
    assert asked[0] == ["a.py::later function 0"]
    assert len(asked[1]) > 1
    first, drawn = list(rounds([], LATER))[:2]
    assert not first[0].in_turn
    assert all(one.in_turn for one in drawn)


def test_whether_the_model_fills_gaps_is_asked_once_and_only_where_there_is_one() -> None:
    probed: list[bool] = []
    next(rounds([], LATER, probed=probed))
    assert probed == []
    assert list(rounds([], TOTAL, probed=probed))
    assert probed == [True]


def test_a_function_of_one_line_is_not_taken_for_one_to_be_written() -> None:
    short = Target(
        place=Place(path="a.py", name="half", first_line=1, last_line=2, lines=(2,)),
        text="def half(value):\n    return value // 3\n",
    )
    assert "masked" in items(next(rounds([], short)))[0]


def test_a_model_that_fills_no_gaps_is_only_asked_in_words() -> None:
    asked = [item for one in rounds([], TOTAL, fills=False) for item in items(one)]
    assert asked
    assert all("function" in item for item in asked)


def test_where_one_holds_the_last_round_is_less_of_its_change_without_a_model() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    first = next(asked)
    judged = ChangeJudgment(tests=pytest_run({}), verdict=StepVerdict(passed=True))
    held = replace(
        candidate(first[0].item, text=TEXT.replace("result += value", "result -= value + 1")), judgment=judged
    )
    candidates.append(held)
    (last,) = asked
    texts = [one.write(one.send("")) for one in last]
    assert texts == [TEXT.replace("+=", "-="), TEXT.replace("+= value", "+= value + 1")]
    assert all(one.is_smaller for one in last)


def held(item: str, text: str) -> TriedAnswer:
    """A candidate that holds."""
    new = [line for line in text.splitlines() if line not in TEXT.splitlines()]
    old = [line for line in TEXT.splitlines() if line not in text.splitlines()]
    diff = "\n".join([f"-{line}" for line in old] + [f"+{line}" for line in new])
    judged = ChangeJudgment(tests=pytest_run({}), verdict=StepVerdict(passed=True))
    return replace(candidate(item, text=text), judgment=judged, diff=diff)


def test_beside_a_large_change_that_only_words_show_gaps_are_asked_for_once_more() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    first = next(asked)
    candidates.append(held(first[0].item, TEXT.replace("return result", "return sum(values)")))
    assert all(one.is_smaller for one in next(asked))
    rivals = next(asked)
    assert rivals
    assert all(item.startswith("a.py::total masked") for item in items(rivals))
    small = held(rivals[0].item, TEXT.replace("result = 1", "result = 0"))
    candidates.append(replace(small, number=2))
    assert all(one.is_smaller for questions in asked for one in questions)


@pytest.mark.parametrize("goal", [replace(GOAL, source=GoalSource.REPOSITORY), GOAL])
def test_nothing_is_asked_beside_what_a_test_proves_or_what_cannot_be_smaller(goal: GoalTest) -> None:
    proven = goal.trust == "proof"
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL, goal=goal)
    first = next(asked)
    changed = ("return result", "return sum(values)") if proven else ("result = 1", "result = 0")
    candidates.append(held(first[0].item, TEXT.replace(*changed)))
    assert all(one.is_smaller for questions in asked for one in questions)


def test_beside_a_stub_that_is_written_nothing_is_asked() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, LATER)
    first = next(asked)
    written = held(first[0].item, TEXT.replace("raise NotImplementedError", "return [one for one in values]"))
    candidates.append(replace(written, symbol="later"))
    assert all(one.is_smaller for questions in asked for one in questions)


def test_in_a_candidates_tree_what_is_left_to_do_is_told_as_it_is_there() -> None:
    done, left = (
        GoalTest(name="a", source=GoalSource.GIVEN),
        GoalTest(name="b", source=GoalSource.GIVEN, got="0"),
    )
    assignment = Assignment(task="x", goals=(done, left), observed="n = 0")
    after = left_to_do(assignment, GoalRun(green=("a",), said=(("b", "no attribute reset"),)))
    assert after == Assignment(task="x", goals=(replace(left, got="no attribute reset"),))


def test_of_a_stub_other_texts_are_drawn_before_one_that_does_more_is_gone_on_from() -> None:
    candidates: list[TriedAnswer] = []
    probed: list[bool] = []
    asked = rounds(candidates, LATER, probed=probed)
    first = next(asked)
    text = LATER.text.replace("pass", "return value + 1")
    candidates.append(candidate(first[0].item, text=text, said="2", green=("t1",)))
    assert items(next(asked)) == [f"a.py::later function {number}" for number in (1, 2, 3)]
    assert items(next(asked)) == ["from 1 a.py::later function 0"]
    assert probed == []


def test_a_candidate_that_came_nearer_is_gone_on_from_and_its_failure_is_told() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    next(asked)
    candidates.append(candidate("x", text=TEXT.replace("= 1", "= 0.5"), said="1.5"))
    later = [item for one in asked for item in items(one)]
    assert any(item.startswith("from 1 a.py::total masked") for item in later)
    assert any(item.startswith("after 1 a.py::total function") for item in later)


def test_what_holds_or_gives_what_is_further_off_is_not_gone_on_from() -> None:
    text = TEXT.replace("result = 1", "result = 7")
    kept = replace(held("x", text), goals=GoalRun(green=("t",)), left=("u",))
    for one in (kept, candidate("x", text=text, said="6")):
        candidates: list[TriedAnswer] = []
        asked = rounds(candidates, TOTAL)
        next(asked)
        candidates.append(one)
        later = [item for questions in asked for item in items(questions)]
        assert later
        assert not any("from 1" in item or "after 1" in item for item in later)


def test_where_one_more_goal_test_is_green_all_is_asked_again_from_there() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    assert items(next(asked))[0].startswith("a.py::total masked")
    text = TEXT.replace("result = 1", "first = 0\n    result = first")
    candidates.append(candidate("x", text=text, said="6", green=("other",)))
    later = [one for questions in asked for one in questions]
    assert {one.base for one in later} == {1}
    assert later[0].item.startswith("from 1 a.py::total masked")


def test_what_breaks_a_test_that_passed_is_not_gone_on_from() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    next(asked)
    text = TEXT.replace("result = 1", "result = 7")
    candidates.append(replace(candidate("x", text=text, said="6", green=("other",)), broken="u fails now"))
    assert {one.base for questions in asked for one in questions if "after" not in one.item} == {0}


def test_a_gap_whose_answer_breaks_something_is_asked_for_again_told_of_that() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    item = items(next(asked))[0]
    counter = GoalTest(name="u", source=GoalSource.REPOSITORY, call="total([])", wanted="0", got="1")
    text = TEXT.replace("result = 1", "result = 7")
    whole = replace(candidate("a.py::total function 0", text=text), broken="u fails now", counter=counter)
    candidates += [whole, replace(whole, number=2), replace(whole, number=3, item=item)]
    again = [next(asked) for _ in range(3)]
    mask = item.rpartition(" ")[0].rpartition(" ")[0]
    assert [items(one) for one in again] == [
        [f"{mask} {telling} 0 against 3"] for telling in ("comment", "wrong", "docstring")
    ]
    assert not [one for questions in asked for one in questions if "against" in one.item]


def test_a_gap_that_was_asked_for_again_and_holds_is_not_told_of_in_further_ways() -> None:
    candidates: list[TriedAnswer] = []
    asked = rounds(candidates, TOTAL)
    item = items(next(asked))[0]
    counter = GoalTest(name="u", source=GoalSource.REPOSITORY, call="total([])", wanted="0", got="1")
    text = TEXT.replace("result = 1", "result = 7")
    candidates.append(replace(candidate(item, text=text), broken="u fails now", counter=counter))
    (again,) = next(asked)
    assert again.item.endswith("comment 0 against 1")
    candidates.append(replace(held(again.item, TEXT.replace("result = 1", "result = 0")), number=2))
    assert not [one for questions in asked for one in questions if "against" in one.item]


def test_a_line_that_the_model_would_leave_comes_last_from_then_on() -> None:
    def places_of(line: str, candidates: list[TriedAnswer], fault: str) -> list[int]:
        found: list[str] = []
        for number, questions in enumerate(rounds(candidates, TOTAL)):
            if number == 0:
                candidates.append(candidate(questions[0].item, fault=fault))
            found += [one.item for one in questions if "masked" in one.item]
        return [at for at, item in enumerate(found) if f"masked {line} " in item]

    first = items(next(rounds([], TOTAL)))[0].partition("masked ")[2].rpartition(" ")[0].rpartition(" ")[0]
    assert places_of(first, [], SAME)[-1] > places_of(first, [], "it does not parse")[-1]


def test_entities_in_an_answer_are_replaced_where_it_fits_only_so() -> None:
    (asked,) = (one for one in next(rounds([], TOTAL, fills=False)) if one.item.endswith("function 0"))
    written = TEXT.split("\n\n\n", maxsplit=1)[0].replace("result = 1", "result = 0 &lt; 1")
    made = asked.write(Answered(text=f"```python\n{written}\n```", call_id=1))
    assert isinstance(made, str)
    assert "result = 0 < 1\n" in made


def test_whole_definitions_come_before_gaps_where_the_configuration_says_so() -> None:
    asked = [
        items(one) for one in rounds([], TOTAL, solve=replace(SOLVE, forms=("function", "masked"))) if one
    ]
    assert asked[0] == ["a.py::total function 0"]
    assert "masked" in asked[1][0]


def test_wrong_lines_are_asked_for_where_they_come_first_and_no_more_often_than_configured() -> None:
    solve = replace(SOLVE, forms=("lines",), draws=2)
    asked = [item for one in rounds([], TOTAL, fills=False, solve=solve) for item in items(one)]
    assert asked == ["a.py::total lines 0", "a.py::total lines 1"]


def test_a_model_that_only_fills_gaps_is_asked_nothing_in_words() -> None:
    asked = [
        item for one in rounds([], TOTAL, solve=replace(SOLVE, forms=("masked",))) for item in items(one)
    ]
    assert asked
    assert all("masked" in item for item in asked)


@pytest.mark.parametrize("forms", [("masked",), ("lines",)])
def test_what_has_still_to_be_written_is_asked_for_whole_in_any_forms(forms: tuple[Form, ...]) -> None:
    asked = [item for one in rounds([], LATER, solve=replace(SOLVE, forms=forms)) for item in items(one)]
    assert asked[0] == "a.py::later function 0"
    assert all("function" in item for item in asked)


def test_gaps_are_asked_side_by_side_where_the_configuration_says_so() -> None:
    assert next(rounds([], TOTAL))[0].in_turn
    assert not next(rounds([], TOTAL, solve=replace(SOLVE, gaps="side-by-side")))[0].in_turn
