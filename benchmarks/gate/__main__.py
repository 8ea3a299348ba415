"""Which adapters the gate lets through: drawn ones whose worth is known.

python -m benchmarks.gate [--draws N] [--write]

Null adapters flip answers at random, or have the base's skill and say yes more often; of these at most 5 % may pass.
Improvements of 10 points at 300 examples are drawn with three shares of flips: the more answers flip for nothing, the
more examples the same gain needs. The last of them has arms that are independent of each other, which an adapter of the
same base, asked the same questions greedily, is not. A second table says what stops those: each of the two tests alone.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from testing.adapters import graded, verdicts

from benchmarks.results import write_section
from clean_room_agent.training.gate import Finding, Pair, judge_candidate

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "The gate for adapters"
STOPS = """\
What stops an improvement of 10 points between independent arms: no check of the gate's, but the 46 % of answers that flip.
Over 300 examples their noise is 3.9 points, so that any test at 5 % finds 10 points in 72 % of the cases; McNemar and the
bootstrap find them alike. Such arms need 400 examples for 80 %. An adapter is asked the same questions as its base,
greedily, and most answers stay: draws with 18 to 24 % of flips are what an evaluation looks like. What it can detect with
its own share of flips is told before it is paid for."""


def _graded(better: float, worse: float, examples: int = 300) -> Callable[[int], Finding]:
    return lambda seed: judge_candidate(graded(seed, examples=examples, better=better, worse=worse))


def _verdicts(candidate: float, shift: float, examples: int = 300) -> Callable[[int], Finding]:
    def drawn(seed: int) -> list[Pair]:
        return verdicts(seed, examples=examples, base=0.8, candidate=candidate, shift=shift)

    return lambda seed: judge_candidate(drawn(2 * seed), validation=drawn(2 * seed + 1))


CASES: dict[str, Callable[[int], Finding]] = {
    "null: 20 % of the answers flip, as many for the better": _graded(0.10, 0.10),
    "null: the same, 1,000 examples": _graded(0.10, 0.10, 1000),
    "null: verdicts of the same skill": _verdicts(0.8, 0.0),
    "null: the same, and yes far more often": _verdicts(0.8, 1.5),
    "null: verdicts of no skill at all": _verdicts(0.0, 0.0),
    "+10 points: 14 % better, 4 % worse": _graded(0.14, 0.04),
    "+10 points: 17 % better, 7 % worse": _graded(0.17, 0.07),
    "+10 points: 28 % better, 18 % worse (independent arms)": _graded(0.28, 0.18),
    "verdicts: AUC .71 -> .80": _verdicts(1.2, 0.0),
    "verdicts: AUC .71 -> .90": _verdicts(1.8, 0.0),
}


POWER = ((0.28, 0.18, 300), (0.28, 0.18, 361), (0.28, 0.18, 400), (0.28, 0.18, 450), (0.17, 0.07, 300))
"""Shares of answers that become better and worse, and examples."""
FEW_RESAMPLES = 400


def power(draws: int) -> list[str]:
    """How often each of the gate's two tests holds alone, and both."""
    lines = ["| better / worse | examples | McNemar | bootstrap | both |", "|---|---:|---:|---:|---:|"]
    for better, worse, examples in POWER:
        held: Counter[str] = Counter()
        for seed in range(draws):
            pairs = graded(seed, examples=examples, better=better, worse=worse)
            finding = judge_candidate(pairs, resamples=FEW_RESAMPLES)
            names = {check.name for check in finding.checks if check.holds}
            held.update(names | ({"both"} if {"better", "every task"} <= names else set()))
        shares = " | ".join(f"{held[name] / draws:.1%}" for name in ("better", "every task", "both"))
        lines.append(f"| {better:.0%} / {worse:.0%} | {examples} | {shares} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="into the results")
    given = parser.parse_args()
    lines = ["| drawn adapters | pass | ties | ms a finding |", "|---|---:|---:|---:|"]
    for name, finding in CASES.items():
        begun = time.perf_counter()
        found = [finding(seed) for seed in range(given.draws)]
        spent = (time.perf_counter() - begun) * 1000 / given.draws
        passed = sum(each.passed for each in found) / given.draws
        ties = sum(each.status == "tie" for each in found)
        lines.append(f"| {name} | {passed:.1%} | {ties} | {spent:.0f} |")
        print(lines[-1], flush=True)
    stops = power(given.draws)
    if given.write:
        about = f"{given.draws} draws a line, 300 examples of 100 tasks where nothing else is said."
        write_section(RESULTS, TITLE, "\n".join([about, "", *lines, "", STOPS, "", *stops]))


if __name__ == "__main__":
    main()
