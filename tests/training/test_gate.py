"""What the gate lets through and what not, over many drawn adapters whose worth is known."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from testing.adapters import graded, verdicts

from clean_room_agent.training.gate import AnswerPair, GateFinding, Scored, before_spending, judge_candidate

DRAWS = 100
RESAMPLES = 100


def graded_finding(seed: int, better: float, worse: float) -> GateFinding:
    return judge_candidate(graded(seed, examples=300, better=better, worse=worse), resamples=RESAMPLES)


def verdict_finding(seed: int, candidate: float, shift: float = 0.0) -> GateFinding:
    def drawn(part: int) -> list[AnswerPair]:
        return verdicts(2 * seed + part, examples=300, base=0.8, candidate=candidate, shift=shift)

    return judge_candidate(drawn(0), validation=drawn(1), resamples=RESAMPLES)


def passes(finding: Callable[[int], GateFinding]) -> int:
    return sum(finding(seed).passed for seed in range(DRAWS))


def test_of_100_adapters_that_flip_answers_at_random_at_most_5_percent_pass() -> None:
    assert passes(lambda seed: graded_finding(seed, 0.1, 0.1)) <= DRAWS * 0.05


def test_of_100_adapters_without_more_skill_that_say_yes_more_often_at_most_5_percent_pass() -> None:
    assert passes(lambda seed: verdict_finding(seed, 0.8, shift=1.5)) <= DRAWS * 0.05


def test_of_100_improvements_by_10_points_at_least_80_percent_pass() -> None:
    assert passes(lambda seed: graded_finding(seed, 0.17, 0.07)) >= DRAWS * 0.8


def test_of_100_adapters_with_much_more_skill_at_least_80_percent_pass() -> None:
    assert passes(lambda seed: verdict_finding(seed, 1.8)) >= DRAWS * 0.8


def test_an_adapter_of_zeros_ties() -> None:
    pairs = [
        replace(each, candidate=each.base) for each in verdicts(1, examples=300, base=0.8, candidate=0.8)
    ]
    finding = judge_candidate(pairs, validation=pairs, resamples=RESAMPLES)
    assert (finding.status, finding.figures.p, finding.flips) == ("tie", 1.0, ())


def test_a_shift_of_all_answers_changes_nothing() -> None:
    pairs = verdicts(1, examples=300, base=0.8, candidate=0.8)
    shifted = [replace(each, candidate=Scored(yes=0.5 + (each.base.yes or 0) / 2)) for each in pairs]
    assert judge_candidate(shifted, validation=shifted, resamples=RESAMPLES).status == "tie"


def test_few_examples_are_never_enough_however_good() -> None:
    pairs = graded(1, examples=199, better=0.4, worse=0.0)
    finding = judge_candidate(pairs, resamples=RESAMPLES)
    assert finding.status == "shadow"
    assert not finding.passed
    assert "1 are missing" in before_spending(199)
    assert "shadow" not in before_spending(200)


GOOD = graded(1, examples=300, better=0.2, worse=0.02)


def failed(pairs: list[AnswerPair], **more: object) -> list[str]:
    finding = judge_candidate(pairs, resamples=RESAMPLES, **more)  # type: ignore[arg-type]
    assert finding.status == "failed"
    return [check.name for check in finding.checks if not check.holds]


def test_what_fails_is_named() -> None:
    assert judge_candidate(GOOD, resamples=RESAMPLES).passed
    slow = [
        replace(
            each, base=replace(each.base, latency_ms=100), candidate=replace(each.candidate, latency_ms=121)
        )
        for each in GOOD
    ]
    assert failed(slow) == ["latency"]
    broken = [
        replace(each, candidate=replace(each.candidate, readable=number % 50 != 0))
        for number, each in enumerate(GOOD)
    ]
    assert failed(broken) == ["readable"]
    worse = graded(2, examples=300, better=0.02, worse=0.2)
    assert failed(GOOD, others={"refilter": worse}) == ["other prompt refilter"]
    assert failed(worse) == ["better", "every task"]


def test_many_candidates_raise_the_bar() -> None:
    pairs = graded(0, examples=300, better=0.13, worse=0.06)
    alone = judge_candidate(pairs, resamples=RESAMPLES)
    assert alone.passed
    among = judge_candidate(pairs, rivals=[0.5] * 30, resamples=RESAMPLES)
    assert among.figures.adjusted_p == pytest.approx(min(1.0, 31 * alone.figures.p))
    assert [check.name for check in among.checks if not check.holds] == ["better"]


def test_one_task_with_many_flips_is_no_proof() -> None:
    one = [replace(each, task="big") if each.base.value != each.candidate.value else each for each in GOOD]
    assert "every task" in failed(one)


def test_an_answer_that_cannot_be_read_is_wrong() -> None:
    pairs = verdicts(1, examples=300, base=0.8, candidate=0.8)
    mute = [replace(each, candidate=Scored(yes=None, readable=False)) for each in pairs]
    finding = judge_candidate(mute, validation=mute, resamples=RESAMPLES)
    assert finding.figures.candidate_mean == 0
    assert {"better", "readable", "skill"} <= {check.name for check in finding.checks if not check.holds}


def test_the_finding_says_which_answers_flipped_and_where() -> None:
    finding = judge_candidate(GOOD, resamples=RESAMPLES)
    changed = {each.key for each in GOOD if each.base.value != each.candidate.value}
    assert {flip.key for flip in finding.flips} == changed
    counts = finding.flips_by["repository"].values()
    assert sum(better for better, _ in counts) == sum(flip.better for flip in finding.flips)
    assert sum(worse for _, worse in counts) == sum(not flip.better for flip in finding.flips)
    assert 0 < finding.figures.detectable < 0.1


def test_verdicts_of_one_class_alone_cannot_be_compared() -> None:
    pairs = [replace(each, truth=True) for each in verdicts(1, examples=300, base=0.8, candidate=0.8)]
    with pytest.raises(ValueError, match="lacks one of the two answers"):
        judge_candidate(pairs, validation=pairs)
