"""Which adapters the gate lets through: drawn ones whose worth is known.

python -m benchmarks.gate [--draws N] [--write]

Null adapters flip answers at random, or have the base's skill and say yes more often; of these at most 5 % may pass.
Improvements of 10 points at 300 examples are drawn with three shares of flips: the more answers flip for nothing, the
more examples the same gain needs. The last of them has arms that are independent of each other, which an adapter of the
same base is not: no test has much power there.
"""

import argparse
import time
from collections.abc import Callable

from benchmarks.report import write_section
from tests.fakes.adapters import graded, verdicts

from clean_room_agent.training.gate import Finding, Pair, judge_candidate

TITLE = "The gate for adapters"


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


def main() -> None:
    """Prints the table."""
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
    if given.write:
        about = f"{given.draws} draws a line, 300 examples of 100 tasks where nothing else is said."
        write_section(TITLE, "\n".join([about, "", *lines]))


if __name__ == "__main__":
    main()
