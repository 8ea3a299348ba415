import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from benchmarks.real import forms
from benchmarks.real.forms import Answered, Solver, Try, against, end_of, page, solve
from benchmarks.real.seeded import JUDGE, Example, SeededFault
from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalSource, GoalTest, TracedFunction
from clean_room_agent.execute.forms.masked import MaskedRequest

GOOD = '''\
def mean(values):
    """The mean.

    >>> mean([1, 3])
    2.0
    >>> mean([5])
    5.0
    >>> mean([])
    0
    """
    if not values:
        return 0
    return sum(values) / len(values)
'''
BAD = GOOD.replace("/ len(values)", "/ len(values) + 1")
FAULT = SeededFault(
    id="a/b:mean:13",
    repository="a/b",
    path="tiny.py",
    module="tiny",
    name="mean",
    kind="off by one",
    good=GOOD,
    bad=BAD,
    goal=GoalTest(name="m", source=GoalSource.DOCUMENTED, call="mean([1, 3])", wanted="2.0", got="3.0"),
    traced=TracedFunction(path="tiny.py", name="mean", first_line=1, calls=1, lines=((11, 0.7), (13, 1.0))),
    goal_at=0,
    passing=(2,),
    examples=3,
    new=True,
)


class LocalJudge:
    """The judge's program, outside of a sandbox: nothing that a model wrote is run here."""

    def __init__(self, folder: Path) -> None:
        (folder / "tiny.py").write_text(GOOD, encoding="utf-8")
        self._process = subprocess.Popen(
            (sys.executable, str(JUDGE)),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, module: str, name: str, text: str, *, document: str, trace: bool = False
    ) -> tuple[Example, ...] | None:
        asked = {"module": module, "name": name, "text": text, "document": document, "trace": trace}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        if "results" not in told:
            return None
        return tuple(
            Example(source=source, want=want, got=got, lines=tuple(lines))
            for source, want, got, lines in told["results"]
        )

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[LocalJudge]:
    made = LocalJudge(tmp_path)
    yield made
    made.end()


class Scripted(Struct):
    """Fills lines with what is given for them, parts of lines with nonsense, and knows nothing else."""

    answers: dict[int, str]

    def fill(self, request: MaskedRequest) -> Answered | None:
        line = request.mask.first_line
        if request.mask.kind == "part":
            return Answered("(", whole=True, tokens=0, logprob=None)
        if request.mask.kind != "line" or line not in self.answers:
            return None
        return Answered(self.answers[line], whole=True, tokens=10, logprob=None)


def lines_of(tries: list[Try]) -> list[Try]:
    return [one for one in tries if one.mask == "line"]


def test_the_judge_runs_the_examples_of_any_text_and_says_which_lines_ran(judge: LocalJudge) -> None:
    good = judge.run("tiny", "mean", GOOD, document=GOOD, trace=True)
    assert good is not None
    assert [(one.got, one.lines) for one in good] == [("", (11, 13)), ("", (11, 13)), ("", (11, 12))]
    bad = judge.run("tiny", "mean", BAD, document=GOOD)
    assert bad is not None
    assert [one.got for one in bad] == ["3.0", "6.0", ""]
    broken = judge.run("tiny", "mean", GOOD.replace("sum", "summe"), document=GOOD)
    assert broken is not None
    assert broken[0].got == "raises NameError: name 'summe' is not defined"
    assert judge.run("tiny", "mean", "def mean(:\n", document=GOOD) is None


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("    return sum(values) / len(values)", "right"),
        ("    return 2.0", "wrong"),
        ("    return sum(values)", "red"),
        ("    return total(values)", "refused"),
        ("    return sum(values) / len(values) + 1", "same"),
    ],
)
def test_a_candidate_is_judged_by_the_goal_and_then_by_the_examples_held_back(
    judge: LocalJudge, answer: str, outcome: str
) -> None:
    solver: Solver = Scripted(answers={13: answer, 11: "    if not values:"})  # type: ignore[assignment]
    tries = lines_of(solve("masked", FAULT, solver, judge, 100))  # type: ignore[arg-type]
    assert tries[0].outcome == outcome
    assert (tries[0].telling, tries[0].mask, tries[0].tokens) == ("comment", "line", 10)
    assert (len(tries) == 1) == (outcome == "right")


def test_a_candidate_that_breaks_what_held_is_not_accepted(judge: LocalJudge) -> None:
    solver: Solver = Scripted(answers={13: "    return sum(values) / len(values)", 11: "    if values:"})  # type: ignore[assignment]
    fault = FAULT
    place_last = TracedFunction(
        path="tiny.py", name="mean", first_line=1, calls=1, lines=((11, 1.0), (13, 0.7))
    )
    fault = SeededFault(
        **{name: getattr(FAULT, name) for name in FAULT.__struct_fields__} | {"traced": place_last}
    )
    tries = lines_of(solve("masked", fault, solver, judge, 100))  # type: ignore[arg-type]
    assert [one.outcome for one in tries] == ["red", "right"]
    assert tries[-1].tokens == 20


def test_beside_a_large_change_a_few_more_are_asked_for_and_the_smallest_counts(judge: LocalJudge) -> None:
    answers = {13: "    return [2.0, 7][values[0] // 5]", 11: "    return sum(values) / len(values)"}
    solver: Solver = Scripted(answers=answers)  # type: ignore[assignment]
    tries = solve("masked", FAULT, solver, judge, 100)  # type: ignore[arg-type]
    large = next(one for one in tries if one.outcome == "wrong")
    assert large.changed > 2
    assert tries[-1] is not large
    small = msgspec.structs.replace(large, outcome="right", changed=2, tokens=30)
    assert end_of(
        [large, small, msgspec.structs.replace(small, outcome="red", tokens=50)]
    ) == msgspec.structs.replace(small, tokens=50)


def test_the_bound_of_tokens_ends_the_tries(judge: LocalJudge) -> None:
    solver: Solver = Scripted(answers={13: "    return 1", 11: "    if values:"})  # type: ignore[assignment]
    assert len(lines_of(solve("masked", FAULT, solver, judge, 15))) == 2  # type: ignore[arg-type]
    assert len(lines_of(solve("masked", FAULT, solver, judge, 10))) == 1  # type: ignore[arg-type]


def test_answers_are_kept_by_what_was_asked(tmp_path: Path) -> None:
    solver = Solver(client=None, folder=tmp_path, lock=threading.Lock())
    key = ["a", 1]
    assert solver._kept(key, None) is None
    kept = Solver(client=object(), folder=tmp_path, lock=threading.Lock())  # type: ignore[arg-type]
    assert kept._kept(key, lambda: Answered("x", True, 3, None)).tokens == 3  # type: ignore[union-attr]
    assert solver._kept(key, None) == Answered("x", True, 3, None)


def test_the_table_counts_what_was_right_within_each_bound() -> None:
    right = Try(form="masked", telling="comment", mask="line", draw=0, tokens=40, outcome="right")
    late = Try(form="masked", telling="wrong", mask="line", draw=0, tokens=140, outcome="right")
    text = page({"masked": [(FAULT, [right]), (FAULT, [right, late]), (FAULT, [])]})
    assert "| masked | 3 | 1 (33 %) | 1 (33 %) | 2 (66 %) | 2 (66 %) | 2 (66 %) | 0 | 90 |" in text
    assert "| masked | comment | line | 0 | 2 | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in text


def test_two_models_are_compared_on_the_faults_that_both_were_asked_about() -> None:
    right = Try(form="masked", telling="comment", mask="line", draw=0, tokens=40, outcome="right")
    late, wrong = msgspec.structs.replace(right, tokens=140), msgspec.structs.replace(right, outcome="wrong")
    first, second, third = (msgspec.structs.replace(FAULT, id=name) for name in "abc")
    own = {"masked": [(first, [right]), (second, [late]), (third, [right])]}
    other = {"masked": [(first, [late]), (second, [wrong]), (third, [])]}
    assert "| masked | 2 | 1 | 0 | 1 | 0 | 1.000 | 0 | 1 |" in against(own, other, "base", 100)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(SystemExit):
        forms.main(["work", "mirrors", "--forms", "mosked"])
