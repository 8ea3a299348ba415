"""The statistics for comparing two models on the same examples. Pure; random draws have a fixed seed."""

import math
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clean_room_agent.training.plan import Z_LEVEL, Z_POWER

LEVEL = 0.05
RESAMPLES = 2000


class Interval(NamedTuple):
    """A value with the bounds between which it lies in 95 % of the resamples."""

    value: float
    lower: float
    upper: float


class ClusterSums(NamedTuple):
    """One task's contribution to a mean difference, separately for the two classes of its examples."""

    positives: int
    negatives: int
    gain_positives: float
    """Candidate less base, summed over the examples of the first class."""
    gain_negatives: float


def mcnemar(wins: int, losses: int) -> float:
    """The two-sided exact p-value of McNemar's test: how likely a fair coin splits the flips at least this unevenly.

    `wins` and `losses` count the examples on which the candidate did better, or worse: with graded values instead of
    right and wrong it is the sign test. No flips: 1.
    """
    flips = wins + losses
    tail = sum(math.comb(flips, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**flips) if flips else 1.0


def holm(p_values: Mapping[str, float]) -> Mapping[str, float]:
    """Each p-value corrected for the number of candidates (Holm 1979), by the candidate's name."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for place, name in enumerate(sorted(p_values, key=lambda each: (p_values[each], each))):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = highest
    return adjusted


def cluster_bootstrap(
    clusters: Sequence[ClusterSums], *, balanced: bool, seed: int, resamples: int = RESAMPLES
) -> Interval:
    """The mean gain of the candidate, with percentile bounds from drawing whole tasks with replacement.

    The examples of one task are correlated, so resampling single examples would give too narrow bounds. `balanced`: the
    mean of the two classes' means, which is the difference of balanced accuracies. A resample that lacks a class is
    drawn again.
    """
    drawing = random.Random(seed)  # noqa: S311 - resampling, not secrets
    value = _gain(clusters, balanced=balanced)
    if value is None:
        return Interval(0.0, -1.0, 1.0)
    found: list[float] = []
    while len(found) < resamples:
        gain = _gain(drawing.choices(clusters, k=len(clusters)), balanced=balanced)
        if gain is not None:
            found.append(gain)
    found.sort()
    edge = int(resamples * LEVEL / 2)
    return Interval(value, found[edge], found[resamples - 1 - edge])


def _gain(clusters: Sequence[ClusterSums], *, balanced: bool) -> float | None:
    """The mean gain; None if a class that is needed has no example."""
    positives, negatives, of_positives, of_negatives = map(sum, zip(*clusters, strict=True))
    if balanced:
        both = positives and negatives
        return (of_positives / positives + of_negatives / negatives) / 2 if both else None
    return (of_positives + of_negatives) / (positives + negatives)


def auc(scores: Sequence[float], truths: Sequence[bool]) -> float | None:
    """The chance that an example of the first class has a higher score than one of the second, ties counting half; None
    if a class is empty. It does not change if all scores are shifted.
    """
    negatives = sorted(score for score, truth in zip(scores, truths, strict=True) if not truth)
    positives = [score for score, truth in zip(scores, truths, strict=True) if truth]
    if not negatives or not positives:
        return None
    below = 0.0
    for score in positives:
        first = bisect_left(negatives, score)
        ties = bisect_left(negatives, math.nextafter(score, math.inf)) - first
        below += first + ties / 2
    return below / (len(positives) * len(negatives))


def balanced_accuracy(scores: Sequence[float], truths: Sequence[bool], threshold: float) -> float | None:
    """The mean of the shares of both classes that the threshold classifies correctly; None if a class is empty."""
    right = [(score >= threshold) == truth for score, truth in zip(scores, truths, strict=True)]
    positives, negatives = sum(truths), len(truths) - sum(truths)
    if not positives or not negatives:
        return None
    hits = sum(each for each, truth in zip(right, truths, strict=True) if truth)
    return (hits / positives + (sum(right) - hits) / negatives) / 2


def own_threshold(scores: Sequence[float], truths: Sequence[bool]) -> float | None:
    """The threshold with the best balanced accuracy on these examples; None if a class is empty.

    It lies midway between two scores. Of several equally good ones it is the middle one, since the first would lie at
    an edge.
    """
    positives, negatives = sum(truths), len(truths) - sum(truths)
    if not positives or not negatives:
        return None
    ordered = sorted(zip(scores, truths, strict=True))
    steps = [(math.nextafter(ordered[0][0], -math.inf), 0.5)]
    above, below = positives, 0
    for place, (score, truth) in enumerate(ordered):
        above, below = above - truth, below + (not truth)
        following = ordered[place + 1][0] if place + 1 < len(ordered) else math.nextafter(score, math.inf)
        if following != score:
            between = (score + following) / 2
            steps.append(
                (max(between, math.nextafter(score, math.inf)), (above / positives + below / negatives) / 2)
            )
    highest = max(quality for _, quality in steps)
    best = [threshold for threshold, quality in steps if quality >= highest - 1e-12]
    return best[len(best) // 2]


def detectable_effect(examples: int, flipping: float) -> float:
    """The smallest difference of two shares that so many examples show in 80 % of the cases at the 5 % level, if the
    share `flipping` of the answers flips: by the normal approximation for paired answers, without clusters; at most
    `flipping`.
    """
    if not examples or not flipping:
        return 1.0
    return min((Z_LEVEL + Z_POWER) * math.sqrt(flipping / examples), 1.0)
