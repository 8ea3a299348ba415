"""The oracle that is distracted: by what it errs, how often, and the same way each time."""

import json
from collections.abc import Sequence

import pytest
from testing.oracle.distractible import Attention, DistractibleOracle, Reader, Weaknesses
from testing.servers.ollama_script import ChatCall

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.decomposed_plan_prompts import SAME_PART
from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.retrieval.prompts import SCOPE_BATCH, SCOPE_JUDGMENT

CLEAN = Attention(needless=200, source_missing=False, words_missing=False, unexplained=0)
NEIGHBOUR = "def beside(x):\n    y = x + 1\n    return y"
RIGHT = (
    PatchEdit(kind="edit", file_path="a.py", search="def f(x):\n    return x", replacement="def f(x):\n    if x == 1:\n        return True\n    return x"),
    PatchEdit(kind="edit", file_path="a.py", search="import os", replacement="import os\nimport sys"),
)  # fmt: skip
ANSWER = render_edits(RIGHT)
PLAN = json.dumps({"parts": [{"files": ["a.py"], "id": "p1"}], "summary": "s"})


class Told(Reader):
    """A reader that is told what prompts hold."""

    def __init__(
        self, found: Attention = CLEAN, *, code: bool = True, functions: Sequence[str] = (NEIGHBOUR,)
    ) -> None:
        self.found = found
        self.code = code
        self.functions = functions

    def attention(self, prompt: str) -> Attention:
        return self.found

    def shows_code(self, prompt: str, path: str, name: str) -> bool:
        return self.code

    def paths(self, prompt: str) -> Sequence[str]:
        return ("other.py",)

    def neighbours(self, prompt: str, path: str) -> Sequence[str]:
        return self.functions


def call(title: str, body: str = "") -> ChatCall:
    return ChatCall(
        number=0,
        model="m",
        system="",
        prompt=f"# Instructions: {title}\n{body}",
        schema=None,
        options={},
        body={},
    )


def edits(reader: Reader, *, seed: str = "c-1", times: int = 400, body: str = "") -> list[str]:
    oracle = DistractibleOracle(lambda _: ANSWER, reader, seed=seed)
    return [str(oracle(call(IMPLEMENT.title, body))) for _ in range(times)]


def wrong(answers: Sequence[str], right: str = ANSWER) -> float:
    return sum(answer != right for answer in answers) / len(answers)


def test_a_clean_prompt_errs_rarely_and_a_full_one_without_the_tests_nearly_always() -> None:
    assert 0 < wrong(edits(Told())) < 0.06
    full = Attention(needless=20_000, source_missing=True, words_missing=True, unexplained=9)
    assert wrong(edits(Told(found=full))) == 1.0


@pytest.mark.parametrize(
    ("found", "rate"),
    [
        (Attention(needless=0, source_missing=False, words_missing=False, unexplained=0), 0.0),
        (Attention(needless=12_000, source_missing=False, words_missing=False, unexplained=0), 0.632),
        (Attention(needless=0, source_missing=True, words_missing=False, unexplained=0), 0.25),
        (Attention(needless=0, source_missing=False, words_missing=True, unexplained=0), 0.15),
        (Attention(needless=0, source_missing=False, words_missing=False, unexplained=3), 0.09),
        (Attention(needless=0, source_missing=False, words_missing=False, unexplained=30), 0.2),
        (Attention(needless=50_000, source_missing=True, words_missing=True, unexplained=30), 1.0),
    ],
)
def test_each_thing_that_is_too_much_or_missing_adds_its_rate(found: Attention, rate: float) -> None:
    assert DistractibleOracle(lambda _: "", Told(), seed="s").edit_rate(found) == pytest.approx(
        rate, abs=1e-3
    )


def test_the_draw_is_of_the_calls_identity_and_not_of_the_prompts_words() -> None:
    half = Told(found=Attention(needless=8_000, source_missing=False, words_missing=False, unexplained=0))
    first = edits(half, times=40)
    assert edits(half, times=40, body="quite another prompt") == first
    assert edits(half, times=40, seed="c-2") != first


def test_a_retry_draws_anew() -> None:
    half = Told(found=Attention(needless=8_000, source_missing=False, words_missing=False, unexplained=0))
    first_two = [edits(half, times=2, seed=f"c-{number}") for number in range(60)]
    outcomes = {(first == ANSWER, second == ANSWER) for first, second in first_two}
    assert outcomes == {(True, True), (True, False), (False, True), (False, False)}


def test_a_better_prompt_turns_wrong_answers_right_and_none_wrong() -> None:
    worse = Attention(needless=9_000, source_missing=True, words_missing=True, unexplained=2)
    better = Attention(needless=3_000, source_missing=False, words_missing=False, unexplained=2)
    before, after = (edits(Told(found=found), times=200) for found in (worse, better))
    assert wrong(before) > wrong(after) > 0
    assert all(new == ANSWER for old, new in zip(before, after, strict=True) if old == ANSWER)


def test_wrong_edits_are_half_right_or_in_a_function_beside() -> None:
    full = Attention(needless=10**6, source_missing=False, words_missing=False, unexplained=0)
    beside = 0
    for answer in edits(Told(found=full), times=60):
        read = parse_edits(answer)
        assert isinstance(read, tuple)
        assert len(read) == len(RIGHT)
        moved = read[0].search in NEIGHBOUR
        beside += moved
        assert moved or (read[0].search == RIGHT[0].search and read[0].replacement != RIGHT[0].replacement)
    assert 15 <= beside <= 45
    assert all(
        NEIGHBOUR.split("\n")[1] not in answer for answer in edits(Told(found=full, functions=()), times=20)
    )


def test_a_verdict_about_code_that_is_shown_is_wrong_more_rarely() -> None:
    def rate(reader: Reader) -> float:
        oracle = DistractibleOracle(lambda _: "yes", reader, seed="c")
        asked = [f"## File\n===== candidate: a{n}.py\nwords\n===== end\n" for n in range(1000)]
        answers = [str(oracle(call(SCOPE_JUDGMENT.title, text))) for text in asked]
        return wrong(answers, "yes")

    assert 0.05 <= rate(Told(code=True)) <= 0.11
    assert 0.16 <= rate(Told(code=False)) <= 0.24


def test_each_option_of_a_list_is_judged_for_itself() -> None:
    listed = "## Files\n" + "".join(f"===== candidate {n}: f{n}.py\n===== end\n" for n in range(1, 101))
    oracle = DistractibleOracle(
        lambda _: json.dumps({"relevant": list(range(1, 51))}), Told(code=False), seed="c"
    )
    picked = json.loads(str(oracle(call(SCOPE_BATCH.title, listed))))["relevant"]
    again = json.loads(str(oracle(call(SCOPE_BATCH.title, listed))))["relevant"]
    assert 30 <= sum(n <= 50 for n in picked) < 50
    assert 0 < sum(n > 50 for n in picked) <= 20
    assert picked != again


def test_plans_err_with_half_the_slope_of_edits_and_name_a_shown_file() -> None:
    reader = Told(found=Attention(needless=24_000, source_missing=True, words_missing=True, unexplained=9))
    oracle = DistractibleOracle(lambda _: PLAN, reader, seed="c")
    answers = [str(oracle(call(META_PLAN.title))) for _ in range(400)]
    assert 0.55 <= wrong(answers, PLAN) <= 0.71
    assert {json.loads(answer)["parts"][0]["files"][0] for answer in answers} == {"a.py", "other.py"}


def test_what_the_oracle_cannot_answer_stays_as_it_is() -> None:
    words = "The code that has to change is not shown to me."
    full = Attention(needless=10**6, source_missing=True, words_missing=True, unexplained=9)
    oracle = DistractibleOracle(lambda _: words, Told(found=full), seed="c", weaknesses=Weaknesses())
    assert oracle(call(IMPLEMENT.title)) == words


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [("===== reference: a.py :: f\nx\n===== end\n", 15, 55), ("s1: do it", 55, 110)],
)
def test_verdicts_about_a_plan_err_less_where_they_show_code(body: str, least: int, most: int) -> None:
    oracle = DistractibleOracle(lambda _: "yes", Told(), seed="c-1")
    answers = [oracle(call(SAME_PART.title, body)) for _ in range(400)]
    assert least <= answers.count("no") <= most
