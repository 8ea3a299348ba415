"""Candidates from one prompt against attempts in turn, with the same number of answers to edit prompts.

Coders are scripts that are right by chance, from a seed; with the same seed, each division gets the same luck.
"""

import os
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct
from testing.runs.solving import MONEY_TESTS, TILL, Script, edit, make_project
from testing.servers.ollama_script import Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

from benchmarks.results import table
from clean_room_agent.execute.implement import IMPLEMENT

TITLE = "Recovery: candidates from one prompt, and attempts in turn"
SPLIT = "    share = cents // people\n    return [share] * people"
EVENLY = "\n    def test_shares_are_even(self):\n        self.assertEqual(split(101, 3), [34, 34, 33])\n"
FIRST_PAYS = "    share = cents // people\n    return [cents - share * (people - 1)] + [share] * (people - 1)"
"""Turns one of the two goal tests green."""
WRONG = ("    return [cents]", "    return [people] * cents", "    raise ValueError(cents)")
TOLD = " failed; the code is again as shown above"
"""Stands in a prompt that shows a failed attempt."""
ANSWERS = 6
"""To edit prompts, at most."""
DIVISIONS = ((6, 1), (2, 3), (1, 6))
"""(attempts, candidates of each)."""
SEEDS = 16
SPENT = (150, 300, 450)
"""Answer tokens at which the divisions are compared."""

Chances = tuple[float, float]
"""(right, half right)."""


class Coder(Struct, frozen=True, kw_only=True):
    """Who is right by chance: from a bare prompt, and from one that shows what failed."""

    name: str
    bare: Chances
    told: Chances


CODERS = (
    Coder(name="right one time in five", bare=(0.2, 0.0), told=(0.2, 0.0)),
    Coder(name="the same, half as often when told what failed", bare=(0.2, 0.0), told=(0.1, 0.0)),
    Coder(name="the same, twice as often when told what failed", bare=(0.2, 0.0), told=(0.4, 0.0)),
    Coder(name="right one time in five, half right two times", bare=(0.2, 0.4), told=(0.2, 0.4)),
)


class Outcome(Struct, frozen=True, kw_only=True):
    """How one run ended, and what its edits cost."""

    solved: bool
    answers: int
    tokens: int
    """Of the answers."""
    tests: int
    """Different trees that were tested."""


def measure(number: int, division: tuple[int, int], seed: int) -> Outcome:
    """A run of the coder of that number."""
    attempts, samples = division
    with (
        tempfile.TemporaryDirectory(prefix="cra-samples-") as folder,
        patch.dict(os.environ, XDG_STATE_HOME=f"{folder}/state"),
    ):
        files = {**TILL, "tests/test_money.py": MONEY_TESTS + EVENLY}
        project = make_project(Path(folder), files)
        right = Script(project.oracle)
        answer = by_chance(CODERS[number], seed, right)
        with OllamaServer(answer) as server:
            told = project.solve(
                server,
                solve={"max_attempts": attempts, "samples": samples, "max_refinement_loops": 0},
                recovery={"replans_per_part": 0},
            )
    recorded = told.recorded
    return Outcome(
        solved=recorded.ending[0] == "complete",
        answers=len(recorded.attempts),
        tokens=sum(row.completion_tokens or 0 for row in recorded.attempts),
        tests=len({row.commit_hash for row in recorded.attempts if row.commit_hash}),
    )


def by_chance(coder: Coder, seed: int, right: Answerer) -> Callable[[ChatCall], str]:
    """The coder, whose luck is the seed's; `right` knows the right answers."""
    luck = random.Random(f"{coder.bare} {seed}")

    def answer(call: ChatCall) -> str:
        said = right(call)
        text = said if isinstance(said, str) else said.text
        if call.title != IMPLEMENT.title:
            return text
        drawn, other = luck.random(), luck.choice(WRONG)
        wholly, half = coder.told if TOLD in call.prompt else coder.bare
        if drawn < wholly:
            return text
        return edit(SPLIT, FIRST_PAYS if drawn < wholly + half else other)

    return answer


def measure_all(pool: Executor) -> str:
    """The section."""
    waiting = {
        (number, division): [pool.submit(measure, number, division, seed) for seed in range(SEEDS)]
        for number in range(len(CODERS))
        for division in DIVISIONS
    }
    found = {key: [each.result() for each in runs] for key, runs in waiting.items()}
    return page(found)


def page(found: Mapping[tuple[int, tuple[int, int]], Sequence[Outcome]]) -> str:
    """The table: a row for each coder and division."""
    head = (
        "coder",
        "attempts x candidates",
        *(f"solved within {most} answer tokens" for most in SPENT),
        "solved",
        "answers",
        "answer tokens",
        "trees tested",
    )
    rows = [
        (
            CODERS[number].name,
            f"{attempts} x {samples}",
            *(f"{sum(one.solved and one.tokens <= most for one in runs)}" for most in SPENT),
            f"{sum(one.solved for one in runs)}/{len(runs)}",
            sum(one.answers for one in runs),
            sum(one.tokens for one in runs),
            sum(one.tests for one in runs),
        )
        for (number, (attempts, samples)), runs in found.items()
    ]
    said = (
        f"Scripted coders, {SEEDS} seeds each, at most {ANSWERS} answers to edit prompts a run, no plan made anew. Of two goal "
        "tests, half right turns one green. A run ends when it is solved, so what it took by then is what it cost: the middle "
        "columns compare the divisions at equal output. The chances are assumptions: this shows what each division makes of them, not "
        "what a model does."
    )
    return f"{said}\n\n{table(head, rows)}"
