"""What base and adapter answered to the held-out questions, from the record of the evaluation."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct
from testing.servers.llama_server import TAG

from benchmarks.results import table
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.db.connection import get_connection
from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.retrieval.prompts import TASK_ANALYSIS
from clean_room_agent.training.dataset import Row, read_rows

ANSWERS = """
    SELECT task_id, item, response, latency_ms, finish FROM retrieval_llm_calls
    WHERE call_type = ? AND item != '' AND attempt = 0 ORDER BY id
"""


class Answer(Struct, frozen=True, kw_only=True):
    """One answer of one arm."""

    item: str
    """The row's id."""
    text: str
    seconds: float
    copied: bool
    """Stopped because it copied the prompt's example."""


def answers_of(folder: Path, prompt: str) -> Mapping[str, Sequence[Answer]]:
    """`base` and `adapter` -> what they answered to the test's questions, the first time."""
    rows = {row.id for row in read_rows(folder / "data", prompt, "test")}
    found: dict[str, dict[str, Answer]] = {"base": {}, "adapter": {}}
    with contextlib.closing(get_connection("raw", repo_path=folder / "project", read_only=True)) as conn:
        for task, item, text, latency, finish in conn.execute(ANSWERS, (prompt,)):
            arm = task.partition(":")[2]
            if item in rows and arm.startswith(TAG):
                answer = Answer(item=item, text=text, seconds=latency / 1000, copied=finish == "copied")
                found["base" if arm == TAG else "adapter"].setdefault(item, answer)
    return {arm: tuple(answers.values()) for arm, answers in found.items()}


def answers_page(folders: Mapping[str, Path], prompt: str) -> list[str]:
    """What the answers hold, by arm: the base's, which are the same for each kind, and each adapter's."""
    given = {kind: answers_of(folder, prompt) for kind, folder in folders.items()}
    arms = {"base": next(iter(given.values()))["base"]} | {
        kind: each["adapter"] for kind, each in given.items()
    }
    rows = {row.id: row for row in read_rows(next(iter(folders.values())) / "data", prompt, "test")}
    head = [
        "answers of",
        "n",
        "copies of the example",
        "unreadable",
        "different",
        "the commonest",
        "median s",
    ]
    names = prompt == TASK_ANALYSIS.name
    head += (
        ["files found", "definitions found", "names that are right", "names that stand in the prompt"]
        if names
        else []
    )
    lines = [
        (arm, *_told(prompt, each), *(_names(rows, each) if names else ())) for arm, each in arms.items()
    ]
    return [table(head, lines)]


def _told(prompt: str, answers: Sequence[Answer]) -> tuple[object, ...]:
    parse = next(each for each in PROMPTS if each.name == prompt).parse
    counts = Counter(each.text.strip() for each in answers)
    bad = sum(isinstance(parse(each.text), BadAnswer) for each in answers if not each.copied)
    commonest = counts.most_common(1)[0][1] if counts else 0
    seconds = f"{median(each.seconds for each in answers):.1f}" if answers else ""
    return len(answers), sum(each.copied for each in answers), bad, len(counts), commonest, seconds


def _names(rows: Mapping[str, Row], answers: Sequence[Answer]) -> tuple[str, ...]:
    """Of all rows together: the shares of files and definitions that were named, of names that were right, and of names that
    stand in the question.
    """
    due: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    for each in answers:
        row = rows[each.item]
        right: Any = TASK_ANALYSIS.parse(row.completion[-1].content)
        said: Any = TASK_ANALYSIS.parse("" if each.copied else each.text)
        read = not isinstance(said, BadAnswer)
        for what in ("areas", "symbols"):
            wanted, named = set(getattr(right, what)), set(getattr(said, what)) if read else set()
            due[what] += len(wanted)
            hit[what] += len(wanted & named)
            due["named"] += len(named)
            hit["named"] += len(wanted & named)
            hit["stand"] += sum(
                name in row.prompt[-1].content.partition("## Files found")[2] for name in named
            )
    pairs = (
        (hit["areas"], due["areas"]),
        (hit["symbols"], due["symbols"]),
        (hit["named"], due["named"]),
        (hit["stand"], due["named"]),
    )
    return tuple(f"{part} of {whole} ({part / whole:.0%})" if whole else "none" for part, whole in pairs)
