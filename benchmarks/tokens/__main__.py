"""How near the estimate of tokens comes to real tokenisers, after 200 calls and before.

    python -m benchmarks.tokens --tokenizer NAME=FILE [--tokenizer ...] [--write] RECORD...

from the repository's root. A RECORD is the `raw.sqlite` of a repository with runs; its folder's folder names the
project. A FILE is a `tokenizer.json`; the package `tokenizers` reads it, and must be installed for this alone. The
counts of a record's own server play no part: each different prompt is counted by each tokeniser, and a chat template's
tokens are added. Calibration sees the first 200 prompts of an order, the others are the test.

A prompt is within the band if its true count is at most the bound, and at least 85 % of it.
"""

import argparse
import importlib
import random
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.results import table, write_section
from clean_room_agent.llm.calibration import QUANTILE, Pair, calibrate
from clean_room_agent.llm.token_estimator import InitialEstimator, TokenEstimator, count_pieces

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Tokens: the estimate against real tokenisers"
SEEN = 200
LEAST_TEST = 20
SHUFFLES = (1, 2, 3)
BAND = 0.85
TEMPLATE = 14
"""Tokens of a chat template around a system and a user message."""
FULL = 32_768
PROMPTS = """
SELECT system_prompt, prompt FROM retrieval_llm_calls WHERE call_type <> 'window_probe' ORDER BY id
"""
HEAD = (
    "tokeniser",
    "prompts",
    "one factor",
    "1.3 x pieces",
    "fitted",
    "above the bound",
    "worst",
    "mean slack",
)


class Question(Struct, frozen=True, kw_only=True):
    """A prompt of some project."""

    project: str
    system: str
    prompt: str


class Split(Struct, frozen=True, kw_only=True):
    """What calibration sees, and what is tested: positions of questions."""

    name: str
    seen: tuple[int, ...]
    tested: tuple[int, ...]


class Shares(Struct, frozen=True, kw_only=True):
    """True counts as shares of the bound, prompt by prompt."""

    shares: tuple[float, ...]

    @property
    def within(self) -> float:
        """Of the prompts, how many are within the band."""
        return statistics.fmean(BAND <= share <= 1 for share in self.shares)

    @property
    def above(self) -> float:
        """Of the prompts, how many are larger than their bound."""
        return statistics.fmean(share > 1 for share in self.shares)


def main() -> None:
    """Measure, print, write the section where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--tokenizer", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    options = parser.parse_args()
    questions = read_questions(sorted(options.records))
    tokenizers = dict(given.split("=", 1) for given in options.tokenizer)
    counts = {name: count_all(questions, load(Path(file))) for name, file in tokenizers.items()}
    body = report(questions, counts)
    print(body)
    if options.write:
        write_section(RESULTS, SECTION, body)


def read_questions(records: Sequence[Path]) -> list[Question]:
    """Every different prompt, in the order of the records and of their calls."""
    found: dict[tuple[str, str], Question] = {}
    for record in records:
        with closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as conn:
            for system, prompt in conn.execute(PROMPTS):
                question = Question(project=record.parents[1].name, system=system, prompt=prompt)
                found.setdefault((system, prompt), question)
    return list(found.values())


def load(file: Path) -> Callable[[str], int]:
    """Counts a text's tokens."""
    package: Any = importlib.import_module("tokenizers")
    tokenizer = package.Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def count_all(questions: Sequence[Question], count: Callable[[str], int]) -> list[int]:
    """The true count of each question, its template included."""
    return [count(question.system) + count(question.prompt) + TEMPLATE for question in questions]


def splits_of(questions: Sequence[Question]) -> list[Split]:
    """Each project by itself; all together, shuffled; and each of the large projects against all others."""
    projects: defaultdict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        projects[question.project].append(place)
    large = {name: places for name, places in sorted(projects.items()) if len(places) >= SEEN + LEAST_TEST}
    everything = range(len(questions))
    shuffled = [random.Random(seed).sample(everything, len(everything)) for seed in SHUFFLES]
    return [
        *(
            Split(name="the same project", seen=tuple(places[:SEEN]), tested=tuple(places[SEEN:]))
            for places in large.values()
        ),
        *(
            Split(name="all projects, shuffled", seen=tuple(order[:SEEN]), tested=tuple(order[SEEN:]))
            for order in shuffled
        ),
        *(
            Split(
                name="other projects",
                seen=tuple(places[:SEEN]),
                tested=tuple(place for place in everything if questions[place].project != name),
            )
            for name, places in large.items()
        ),
    ]


def report(questions: Sequence[Question], counts: dict[str, list[int]]) -> str:
    """The section's text."""
    splits = splits_of(questions)
    projects = sorted({question.project for question in questions})
    pieces = [_pieces(question) for question in questions]
    start = [InitialEstimator().request(question.system, question.prompt) for question in questions]
    own = sum(split.name == "the same project" for split in splits)
    head = (
        f"`python -m benchmarks.tokens`: {len(questions)} different prompts of {len(projects)} projects "
        f"({', '.join(projects)}). A prompt is within the band if its true count is at most the bound and at least "
        f"{BAND:.0%} of it. Calibration sees the first {SEEN} prompts; the rest is tested. *One factor*: the 99th "
        f"percentile of tokens for a piece in those {SEEN}. *Fitted*: `llm/calibration.py`. *Worst*: the largest share of its "
        "bound that any prompt took."
    )
    parts = [head]
    names = (
        (
            "the same project",
            f"{own} projects with {SEEN + LEAST_TEST} prompts or more, each after its own {SEEN}",
        ),
        ("all projects, shuffled", f"all projects mixed, after {SEEN} of any, in {len(SHUFFLES)} orders"),
        (
            "other projects",
            f"each of these projects' {SEEN} prompts, tested on all other projects (the model goes on to new repositories)",
        ),
    )
    for name, title in names:
        chosen = [split for split in splits if split.name == name]
        rows = [
            _row(tokenizer, questions, truth, chosen, pieces, start) for tokenizer, truth in counts.items()
        ]
        parts.append(f"**{title[0].upper()}{title[1:]}**\n\n{table(HEAD, rows)}")
    parts.append(_speed(questions, next(iter(counts.values()))))
    return "\n\n".join(parts)


def _row(
    name: str,
    questions: Sequence[Question],
    truth: Sequence[int],
    splits: Sequence[Split],
    pieces: Sequence[int],
    start: Sequence[int],
) -> tuple[str, ...]:
    fitted: list[float] = []
    single: list[float] = []
    first: list[float] = []
    for split in splits:
        estimator = _calibrated(questions, truth, split)
        factor = _one_factor(truth, pieces, split)
        for place in split.tested:
            question = questions[place]
            fitted.append(truth[place] / estimator.request(question.system, question.prompt))
            single.append(truth[place] / (factor * pieces[place]))
            first.append(truth[place] / start[place])
    learned = Shares(shares=tuple(fitted))
    return (
        name,
        str(len(fitted)),
        f"{Shares(shares=tuple(single)).within:.1%}",
        f"{Shares(shares=tuple(first)).within:.1%}",
        f"{learned.within:.1%}",
        f"{learned.above:.1%}",
        f"{max(fitted):.3f}",
        f"{1 - statistics.fmean(fitted):.1%}",
    )


def _calibrated(questions: Sequence[Question], truth: Sequence[int], split: Split) -> TokenEstimator:
    pairs = [
        Pair(system=questions[place].system, prompt=questions[place].prompt, counted=truth[place])
        for place in split.seen
    ]
    estimator = calibrate(pairs)
    assert estimator is not None
    return estimator


def _one_factor(truth: Sequence[int], pieces: Sequence[int], split: Split) -> float:
    ratios = sorted(truth[place] / pieces[place] for place in split.seen)
    return ratios[int(QUANTILE * len(ratios)) - 1]


def _pieces(question: Question) -> int:
    return count_pieces(question.system) + count_pieces(question.prompt) + TEMPLATE


def _speed(questions: Sequence[Question], truth: Sequence[int]) -> str:
    split = Split(name="", seen=tuple(range(SEEN)), tested=())
    started = time.process_time()
    estimator = _calibrated(questions, truth, split)
    fitting = time.process_time() - started
    longest = sorted(range(len(questions)), key=lambda place: -truth[place])[:20]
    times = []
    for place in longest:
        started = time.process_time()
        estimator.request(questions[place].system, questions[place].prompt)
        times.append((time.process_time() - started) * FULL / truth[place])
    return (
        f"A calibration from {SEEN} prompts took {fitting:.1f} s of processor time. Measuring took {statistics.median(times) * 1000:.0f} ms for "
        f"{FULL:,} tokens (median of the {len(longest)} longest prompts)."
    )


if __name__ == "__main__":
    main()
