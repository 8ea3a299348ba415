"""Statistics against values known from elsewhere, and against their definitions."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.training.statistics import (
    ClusterSums,
    auc,
    balanced_accuracy,
    cluster_bootstrap,
    detectable_effect,
    examples_to_see,
    holm,
    mcnemar,
    own_threshold,
)

EXAMPLES = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40).filter(
    lambda examples: len({truth for _, truth in examples}) == 2
)


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (5, 5, 1.0), (15, 3, 0.007538), (6, 0, 0.03125), (1, 9, 0.021484)]
)
def test_mcnemar_is_the_exact_binomial_test(wins: int, losses: int, p: float) -> None:
    assert mcnemar(wins, losses) == pytest.approx(p, abs=1e-6)


def test_holm_corrects_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert holm([0.04]) == [0.04]


@given(EXAMPLES)
def test_auc_is_the_share_of_pairs_in_order(examples: list[tuple[int, bool]]) -> None:
    scores, truths = [float(score) for score, _ in examples], [truth for _, truth in examples]
    positives = [score for score, truth in examples if truth]
    negatives = [score for score, truth in examples if not truth]
    each = [(high > low) + (high == low) / 2 for high in positives for low in negatives]
    assert auc(scores, truths) == pytest.approx(sum(each) / len(each))


@given(EXAMPLES)
def test_no_other_threshold_is_better_than_the_own_one(examples: list[tuple[int, bool]]) -> None:
    scores, truths = [float(score) for score, _ in examples], [truth for _, truth in examples]
    best = balanced_accuracy(scores, truths, own_threshold(scores, truths))
    for other in (-0.5, *(score + 0.5 for score in scores)):
        assert balanced_accuracy(scores, truths, other) <= best + 1e-9


def test_the_bootstrap_is_the_same_each_time_and_covers_the_truth() -> None:
    covered = 0
    for seed in range(100):
        draw = random.Random(seed)
        clusters = [ClusterSums(2, 1, draw.gauss(0.2, 1), draw.gauss(0.1, 1)) for _ in range(80)]
        found = cluster_bootstrap(clusters, balanced=False, seed=1, resamples=200)
        covered += found.lower <= 0.1 <= found.upper
    assert covered >= 88
    assert found == cluster_bootstrap(clusters, balanced=False, seed=1, resamples=200)


def test_whole_tasks_are_drawn_not_questions() -> None:
    alike = [ClusterSums(10, 0, 10.0 * (-1) ** number + 2, 0) for number in range(20)]
    apart = [ClusterSums(1, 0, 1.0 * (-1) ** number + 0.2, 0) for number in range(200)]
    wide = cluster_bootstrap(alike, balanced=False, seed=1, resamples=500)
    narrow = cluster_bootstrap(apart, balanced=False, seed=1, resamples=500)
    assert wide.value == pytest.approx(narrow.value)
    assert wide.upper - wide.lower > 2 * (narrow.upper - narrow.lower)


def test_a_balanced_gain_counts_both_classes_alike() -> None:
    clusters = [ClusterSums(1, 9, 1.0, 0.0)] * 30
    assert cluster_bootstrap(clusters, balanced=True, seed=1, resamples=100).value == pytest.approx(0.5)
    assert cluster_bootstrap(clusters, balanced=False, seed=1, resamples=100).value == pytest.approx(0.1)


def test_the_detectable_effect_falls_with_the_root_of_the_examples() -> None:
    assert detectable_effect(0, 0.2) == 1.0
    assert detectable_effect(800, 0.2) == pytest.approx(detectable_effect(200, 0.2) / 2)
    assert detectable_effect(300, 0.24) == pytest.approx(2.801585 * math.sqrt(0.24 / 300), abs=1e-5)


def test_small_gains_need_many_examples() -> None:
    assert examples_to_see(0.5, 0.5) == 0
    assert examples_to_see(0.5, 0.6) > examples_to_see(0.5, 0.7) > 0
    assert examples_to_see(0.5, 0.6) == 388
