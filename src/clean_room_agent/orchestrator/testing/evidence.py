"""What a run of the tests tells retrieval: names, error lines, frames, bounded and in a stated order."""

import re

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.orchestrator.testing.results import TestRun

MAX_TESTS = 50
MAX_MESSAGES = 60
MAX_FRAMES = 60
TELLING = re.compile(r"error|fail|assert|exception|panic|cannot find|not found", re.IGNORECASE)


def evidence_of(run: TestRun) -> Evidence:
    """The run's failing tests, error lines and frames, each once.

    Order: files that could not be collected, then failing tests by name; messages and frames in that order of their
    tests, frames innermost first. The caps cut the ends. A run whose failures have no names gives the last lines of
    its output that speak of errors; one that is not whole also gives why, first.
    """
    words = [line for test in run.failing for line in test.message.split("\n") if line.strip()]
    if not run.failing and run.returncode != 0:
        words = telling_lines(run.excerpt)
    first: dict[str, FailingTest] = {}
    for test in run.failing:
        first.setdefault(test.name, test)
    if run.problem:
        words.insert(0, run.problem)
    return Evidence(
        tests=tuple(first.values())[:MAX_TESTS],
        messages=tuple(dict.fromkeys(words))[:MAX_MESSAGES],
        frames=run.frames[:MAX_FRAMES],
    )


def telling_lines(output: str) -> list[str]:
    """The lines of `output` that speak of errors, in order: the last `MAX_MESSAGES`, or its last 20 if none does."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    return [line for line in lines if TELLING.search(line)][-MAX_MESSAGES:] or lines[-20:]
