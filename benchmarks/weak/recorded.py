"""What a record says of the model's answers, prompt by prompt; by columns that every build's record has.

A question is a prompt about one item in one pass: its first call and the repair of that. What the record of an older
build does not class is classed here by the answer's own text, so that builds can be compared.
"""

import json
import sqlite3
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

PROBE = "window_probe"
CALLS = """
SELECT c.id, c.task_id, c.call_type, c.item, c.attempt, c.prompt, c.response, c.finish, c.request_body,
       c.completion_tokens, c.latency_ms, r.reading
FROM retrieval_llm_calls c LEFT JOIN call_readings r ON r.call_id = c.id
WHERE c.call_type <> 'window_probe' ORDER BY c.id
"""
ATTEMPTS = "SELECT outcome, COUNT(*) FROM run_attempts GROUP BY outcome ORDER BY outcome"
LEAST_PARROTED = 20
"""Characters of an answer; shorter ones, such as a list of one number, may well equal an example."""


class Answer(Struct, frozen=True, kw_only=True):
    """One call."""

    question: tuple[str, str, str, str]
    """The record's file, the pass, the prompt and the item."""
    prompt: str
    """The prompt's name."""
    held: bool
    """Whether the request holds the answer to a shape: a schema or a grammar."""
    cut: bool
    """Whether it ran to its limit."""
    closed: bool
    """Whether the program closed it before its end."""
    parroted: bool
    """Whether it is the prompt's own example."""
    reading: str
    """parsed, repaired, unreadable; "" where it was never read."""
    tokens: int
    seconds: float


class KindRow(Struct, frozen=True, kw_only=True):
    """The answers of one prompt."""

    prompt: str
    held: bool
    calls: int
    cut: int
    closed: int
    parroted: int
    unreadable: int
    """Calls whose answer could not be read."""
    repaired: int
    questions: int
    lost: int
    """Questions without a readable answer, repair included."""
    tokens: int
    seconds: float


def answers_of(record: Path) -> list[Answer]:
    """The calls of a `raw.sqlite`, in order, but for probes of the window."""
    with closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as connection:
        rows = connection.execute(CALLS).fetchall()
    return [_answer(record, row) for row in rows]


def attempts_of(record: Path) -> Counter[str]:
    """Outcome -> attempts at steps."""
    with closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as connection:
        return Counter(dict(connection.execute(ATTEMPTS).fetchall()))


def _answer(record: Path, row: Sequence[object]) -> Answer:
    _, task, name, item, _, prompt, response, finish, request, tokens, latency, reading = row
    body = json.loads(str(request))
    return Answer(
        question=(str(record), str(task), str(name), str(item)),
        prompt=str(name),
        held=any(body.get(key) for key in ("response_format", "format", "grammar", "structured_outputs")),
        cut=finish == "length" and int(str(tokens or 0)) > 1,
        closed=str(finish) not in {"stop", "length"},
        parroted=_is_parroted(str(response), str(prompt)),
        reading=str(reading or ""),
        tokens=int(str(tokens or 0)),
        seconds=int(str(latency)) / 1000,
    )


def _is_parroted(response: str, prompt: str) -> bool:
    """Whether the answer, without its white space, stands in its prompt as it is."""
    bare = "".join(response.split())
    return len(bare) >= LEAST_PARROTED and bare in "".join(prompt.split())


def kinds(answers: Iterable[Answer]) -> list[KindRow]:
    """A row a prompt, by name."""
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.prompt].append(answer)
    return [_row(name, groups[name]) for name in sorted(groups)]


def _row(name: str, answers: Sequence[Answer]) -> KindRow:
    last = {answer.question: answer for answer in answers}
    return KindRow(
        prompt=name,
        held=any(answer.held for answer in answers),
        calls=len(answers),
        cut=sum(answer.cut for answer in answers),
        closed=sum(answer.closed for answer in answers),
        parroted=sum(answer.parroted for answer in answers),
        unreadable=sum(answer.reading == "unreadable" for answer in answers),
        repaired=sum(answer.reading == "repaired" for answer in answers),
        questions=len(last),
        lost=sum(answer.reading not in {"parsed", "repaired"} for answer in last.values()),
        tokens=sum(answer.tokens for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
    )


def share(part: int, whole: int) -> str:
    """A percentage; "" of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else ""


def median_seconds(values: Sequence[float]) -> str:
    """In seconds; "" of none."""
    return f"{statistics.median(values):.1f}" if values else ""
