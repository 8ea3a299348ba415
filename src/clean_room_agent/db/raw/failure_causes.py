"""Counts a task's calls and attempts by cause: the one place that says why answers were not usable."""

import json
from collections import Counter
from enum import StrEnum

from msgspec import Struct

from clean_room_agent.db.raw.calls import COPIED, THINKING
from clean_room_agent.db.rows import OF_TASK, Connection, task_range


class Cause(StrEnum):
    """Why an answer or an attempt was not usable."""

    LIMIT = "ran to its limit"
    RUNAWAY = "repeated itself and was stopped"
    UNREADABLE = "could not be read"
    THINKING = "went into thinking alone"
    EXAMPLE = "copied the prompt's example"
    SERVER_TIMEOUT = "timed out"
    SERVER = "failed because of the server"
    REFUSED = "was refused"
    NO_EDITS = "held no edit"
    IMPORT_BROKEN = "broke an import"
    TESTS_RED = "failed the tests"
    TESTS_TIMEOUT = "ran out of the tests' time"
    NOTHING_IN_SCOPE = "found nothing in scope"

    @property
    def is_of_model(self) -> bool:
        """Whether the model's answer itself was the cause, whatever server, repository and tests do. Thinking is switched off
        at the server.
        """
        return self in {Cause.LIMIT, Cause.RUNAWAY, Cause.UNREADABLE, Cause.EXAMPLE, Cause.NO_EDITS}


class CauseCount(Struct, frozen=True, kw_only=True):
    """`count` of `total` failed for this cause."""

    cause: Cause
    subject: str
    """The prompt whose answers are counted; "" if attempts at steps or searches for context are counted."""
    count: int
    total: int
    codes: tuple[str, ...] = ()
    """For `REFUSED`, why edits were refused, most frequent first."""


class Causes(Struct, frozen=True, kw_only=True):
    """Everything in a task that failed, most frequent cause first, out of everything that was asked."""

    counts: tuple[CauseCount, ...] = ()
    asked: tuple[tuple[str, int], ...] = ()
    """All calls by prompt, including usable ones."""


FAILURES = {
    "error:DegenerateOutput": Cause.RUNAWAY,
    "error:ServerTimeout": Cause.SERVER_TIMEOUT,
}
"""By the end of a call; every other error is the server's."""
INTERRUPTED = "error:CallInterrupted"
"""The end of a call that the user's Ctrl-C stopped, which is nobody's failure."""
ENDS = {"repeated": Cause.RUNAWAY, "length": Cause.LIMIT}
"""How a call with an unreadable answer ended."""
OUTCOMES = {
    "refused": Cause.REFUSED,
    "no_edits": Cause.NO_EDITS,
    "import_broken": Cause.IMPORT_BROKEN,
    "tests_failed": Cause.TESTS_RED,
    "timed_out": Cause.TESTS_TIMEOUT,
}
"""Outcomes of attempts; a truncated or unreadable answer is counted as a call."""

# The newest reading counts. A call that was repeated after an error counts each time.
CALLS = f"""
SELECT c.call_type, c.finish, coalesce(r.reading, ''), coalesce(r.fault, ''), count(*)
FROM retrieval_llm_calls AS c
LEFT JOIN call_readings AS r ON r.id = (SELECT max(id) FROM call_readings WHERE call_id = c.id)
WHERE {OF_TASK} AND c.call_type <> ? GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""  # noqa: S608 - a constant condition
ATTEMPTS = f"""
SELECT a.outcome, a.edit_report FROM run_attempts AS a
WHERE a.task_run_id IN (SELECT id FROM task_runs WHERE {OF_TASK}) ORDER BY a.id
"""  # noqa: S608
SEARCHES = f"""
SELECT coalesce(sum(shown = 0), 0), count(*) FROM (
    SELECT max(stage = 'assembly' AND included) AS shown FROM retrieval_decisions WHERE {OF_TASK} GROUP BY task_id)
"""  # noqa: S608


def count_causes(conn: Connection, task_id: str, *, probe: str) -> Causes:
    """Count why calls, attempts and searches of a task and its passes failed.

    `probe` is the call type of requests that a server is supposed to refuse; they are not counted.
    """
    empty, searches = conn.execute(SEARCHES, task_range(task_id)).fetchone()
    scope = CauseCount(cause=Cause.NOTHING_IN_SCOPE, subject="", count=empty, total=searches)
    totals: Counter[str] = Counter()
    found = (*_of_calls(conn, task_id, probe, totals), *_of_attempts(conn, task_id), scope)
    order = list(Cause)
    counts = sorted(
        (one for one in found if one.count),
        key=lambda one: (-one.count, one.subject, order.index(one.cause)),
    )
    return Causes(counts=tuple(counts), asked=tuple(sorted(totals.items())))


def _of_calls(conn: Connection, task_id: str, probe: str, totals: Counter[str]) -> list[CauseCount]:
    """Count by prompt and cause; `totals` receives the number of calls of each prompt."""
    counts: Counter[tuple[str, Cause]] = Counter()
    for prompt, finish, reading, fault, number in conn.execute(CALLS, (*task_range(task_id), probe)):
        totals[prompt] += number
        cause = _cause_of_call(finish, reading, fault)
        if cause is not None:
            counts[prompt, cause] += number
    return [
        CauseCount(cause=cause, subject=prompt, count=count, total=totals[prompt])
        for (prompt, cause), count in counts.items()
    ]


def _cause_of_call(finish: str, reading: str, fault: str) -> Cause | None:
    if finish == INTERRUPTED:
        return None
    if finish.startswith("error:"):
        return FAILURES.get(finish, Cause.SERVER)
    if reading != "unreadable":
        return None
    if fault.startswith(COPIED):
        return Cause.EXAMPLE
    if THINKING in fault:
        return Cause.THINKING
    return ENDS.get(finish, Cause.UNREADABLE)


def _of_attempts(conn: Connection, task_id: str) -> list[CauseCount]:
    total = 0
    counts: Counter[Cause] = Counter()
    codes: Counter[str] = Counter()
    for outcome, report in conn.execute(ATTEMPTS, task_range(task_id)):
        total += 1
        cause = OUTCOMES.get(outcome)
        if cause is not None:
            counts[cause] += 1
        if cause is Cause.REFUSED:
            codes.update({edit["code"] for edit in json.loads(report)} - {"APPLIED", "ALREADY_APPLIED"})
    ranked = tuple(sorted(codes, key=lambda code: (-codes[code], code)))
    return [
        CauseCount(
            cause=cause, subject="", count=count, total=total, codes=ranked if cause is Cause.REFUSED else ()
        )
        for cause, count in counts.items()
    ]
