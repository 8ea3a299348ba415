"""The statistics for comparing two models on the same examples. Pure; random draws have a fixed seed."""

import math
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LEVEL = 0.05
Z_LEVEL = 1.959964
"""Of a two-sided test at 5 %."""
Z_POWER = 0.841621
"""For a power of 80 %."""
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


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value corrected for the number of candidates (Holm 1979), in the given order."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
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
    value = _mean_gain(clusters, balanced=balanced)
    if value is None:
        return Interval(0.0, -1.0, 1.0)
    found: list[float] = []
    while len(found) < resamples:
        gain = _mean_gain(drawing.choices(clusters, k=len(clusters)), balanced=balanced)
        if gain is not None:
            found.append(gain)
    found.sort()
    edge = int(resamples * LEVEL / 2)
    return Interval(value, found[edge], found[resamples - 1 - edge])


def _mean_gain(clusters: Sequence[ClusterSums], *, balanced: bool) -> float | None:
    """The mean gain; None if a class that is needed has no example."""
    positives, negatives, of_positives, of_negatives = map(sum, zip(*clusters, strict=True))
    if balanced:
        both = positives and negatives
        return (of_positives / positives + of_negatives / negatives) / 2 if both else None
    return (of_positives + of_negatives) / (positives + negatives)


def auc(scores: Sequence[float], truths: Sequence[bool]) -> float:
    """The chance that an example of the first class has a higher score than one of the second, ties counting half. It
    does not change if all scores are shifted. Both classes must have an example.
    """
    negatives = sorted(score for score, truth in zip(scores, truths, strict=True) if not truth)
    positives = [score for score, truth in zip(scores, truths, strict=True) if truth]
    below = sum(bisect_left(negatives, score) + bisect_right(negatives, score) for score in positives) / 2
    return below / (len(positives) * len(negatives))


def balanced_accuracy(scores: Sequence[float], truths: Sequence[bool], threshold: float) -> float:
    """The mean of the shares of both classes that the threshold classifies correctly. Both must have an example."""
    right = Counter(
        truth for score, truth in zip(scores, truths, strict=True) if (score >= threshold) == truth
    )
    counts = Counter(truths)
    return (right[True] / counts[True] + right[False] / counts[False]) / 2


def own_threshold(scores: Sequence[float], truths: Sequence[bool]) -> float:
    """The threshold with the best balanced accuracy on these examples, midway between two scores, or just below or above
    all. Of several equally good ones it is the middle one, since the first would lie at an edge.
    """
    known = sorted(set(scores))
    places = [math.nextafter(known[0], -math.inf)]
    places += [(low + high) / 2 if (low + high) / 2 > low else high for low, high in pairwise(known)]
    places.append(math.nextafter(known[-1], math.inf))
    quality = {place: balanced_accuracy(scores, truths, place) for place in places}
    highest = max(quality.values()) - 1e-12
    best = [place for place in places if quality[place] >= highest]
    return best[len(best) // 2]


def detectable_effect(examples: int, flipping: float) -> float:
    """The smallest difference of two shares that so many examples show in 80 % of the cases at the 5 % level, if the
    share `flipping` of the answers flips: by the normal approximation for paired answers, without clusters; at most
    `flipping`.
    """
    if not examples or not flipping:
        return 1.0
    return min((Z_LEVEL + Z_POWER) * math.sqrt(flipping / examples), 1.0)


def examples_to_see(now: float, expected: float) -> int:
    """Examples that are needed to tell two shares apart (two-sided 5 %, power 80 %); 0 if no gain is expected.

    By the normal approximation for independent samples: an upper bound for answers to the same examples.
    """
    if expected <= now:
        return 0
    mean = (now + expected) / 2
    spread = Z_LEVEL * math.sqrt(2 * mean * (1 - mean))
    spread += Z_POWER * math.sqrt(now * (1 - now) + expected * (1 - expected))
    return math.ceil((spread / (expected - now)) ** 2)
