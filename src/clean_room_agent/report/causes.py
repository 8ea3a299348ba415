"""Why a task failed: counts by cause, and what to do about the most important one."""

from collections.abc import Mapping
from typing import Literal

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.failure_causes import Cause, CauseCount, Causes, count_causes
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.answers import NO_THINKING
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.summary import Ending
from clean_room_agent.report.trace import RunTrace

Work = Literal["planning", "editing", "describing", "judging"]

WORK: Mapping[str, Work] = {
    "meta_plan": "planning",
    "part_plan": "planning",
    "adjustment": "planning",
    "implement": "editing",
    "scaffold": "editing",
    "doctor": "planning",
    "enrichment": "describing",
}
"""The work that a prompt does; every other prompt judges what belongs in the context."""
NEAREST: tuple[Work, ...] = ("editing", "planning", "describing", "judging")
"""From the end of a task to its beginning."""
WEAK_COUNT = 3
WEAK_SHARE = 0.75
"""From this share of unusable answers among all of their kind on, the model is too weak for the work."""
MOST_LINES = 4
WRITE_THE_PLAN = "write the plan yourself: `cra solve --plan FILE`"
LARGER_DESCRIBER = "a larger model may do: enrichment in [models.overrides]"
WEAK: Mapping[Work, str] = {
    "planning": f"this model is too weak for planning at this window; try a larger one, or {WRITE_THE_PLAN}",
    "editing": "this model is too weak for these edits; try a larger one as [models] coding, "
    f"or give it smaller steps: {WRITE_THE_PLAN}",
    "describing": "this model is too weak to describe files at this window; try a larger one: "
    "enrichment in [models.overrides]",
    "judging": "this model is too weak to judge what the task needs; try a larger one as [models] classifier or reasoning",
}
ADVICE: Mapping[Cause, str] = {
    Cause.LIMIT: "`{show} --response` has the answers: if they were good up to the limit, raise [models.max_tokens]; "
    "else try a larger model",
    Cause.RUNAWAY: "a [models.temperature] above 0 can help, and a larger model does",
    Cause.UNREADABLE: "`{show} --response` has the answers; a larger model keeps to the format",
    Cause.THINKING: NO_THINKING,
    Cause.EXAMPLE: "say more in the task, so that the model has more to go by than the example; or try a larger model",
    Cause.SERVER_TIMEOUT: "raise [models.timeouts], or lower parallel in [models]",
    Cause.SERVER: "the server's own log says more; `cra check` tries it",
    Cause.REFUSED: "`{show}` has each attempt; smaller steps are easier to answer: " + WRITE_THE_PLAN,
    Cause.NO_EDITS: "`{show} --response` has the answers; say in the task what is to change, and where",
    Cause.IMPORT_BROKEN: "`{show}` has the error of each attempt; a larger model, or smaller steps, break less: "
    + WRITE_THE_PLAN,
    Cause.TESTS_RED: "`{show} --tests` has what they said; tell the model what it misses: "
    "`cra solve --resume {run} --hint TEXT`",
    Cause.TESTS_TIMEOUT: "raise timeout in [testing], or give a quicker step_test_command, or one that does not watch for changes",
    Cause.NOTHING_IN_SCOPE: "name files or functions in the task; `cra retrieve TASK` shows what is found",
}
BY_CODE: Mapping[str, str] = {
    "WRONG_FILE": "the edits changed files that the plan does not name: name them in the task, or "
    + WRITE_THE_PLAN,
    "PROTECTED": "the edits changed protected files: [edit] protected lists them, and a plan may name tests",
    "TRUNCATED": "the edits were cut off: give the model smaller steps, or raise coding in [models.max_tokens]",
}
"""The advice if one code prevails among the refused edits."""
BUDGET = "budget spent"
"""The beginning of the reason of a run that used up one of its budgets."""
RAISE_BUDGET = "raise max_calls, max_tokens or max_minutes in [orchestrator], then `cra solve --resume {run}`"


def ending_of(conn: Connection, task_id: str, *, reason: str = "") -> Ending:
    """Why the task is unfinished. `reason` is the run's own."""
    return explain(count_causes(conn, task_id, probe=PROBE_NAME), task_id, reason=reason)


def explain(causes: Causes, task_id: str, *, reason: str = "") -> Ending:
    """The counts in words, with the advice that they support."""
    run = short_id(task_id)
    counts = tuple(sorted(causes.counts, key=_distance))
    weak = _weak_advice(causes)
    advice = RAISE_BUDGET if reason.startswith(BUDGET) else weak or (_advice(counts[0]) if counts else "")
    return Ending(
        counts=counts,
        lines=tuple(_line(one) for one in counts[:MOST_LINES]),
        advice=advice.format(run=run, show=f"cra show {run}"),
        weak=bool(weak),
    )


def work_of(prompt: str) -> Work:
    """What the prompt is for."""
    return WORK.get(prompt, "judging")


def _distance(count: CauseCount) -> tuple[int, int]:
    """The sort key of a cause: nearest to the end of a task first, then the most frequent."""
    if not count.subject:
        return (len(NEAREST) if count.cause is Cause.NOTHING_IN_SCOPE else -1, -count.count)
    return (NEAREST.index(work_of(count.subject)), -count.count)


def _weak_advice(causes: Causes) -> str:
    """What to do if nearly all answers of one kind were unusable; for the first such kind."""
    for work, advice in WEAK.items():
        asked = sum(number for prompt, number in causes.asked if work_of(prompt) == work)
        useless = sum(
            one.count
            for one in causes.counts
            if one.subject and work_of(one.subject) == work and one.cause.is_of_model
        )
        if useless >= WEAK_COUNT and useless >= WEAK_SHARE * asked:
            return advice
    return ""


def _advice(count: CauseCount) -> str:
    if work_of(count.subject) == "describing" and count.cause.is_of_model:
        return LARGER_DESCRIBER
    code = count.codes[0] if count.codes else ""
    return BY_CODE.get(code) or ADVICE[count.cause]


def _line(count: CauseCount) -> str:
    """`4 of 4 answers to meta_plan ran to their limit`."""
    if count.subject:
        what = f"{'answer' if count.total == 1 else 'answers'} to {count.subject}"
    elif count.cause is Cause.NOTHING_IN_SCOPE:
        what = "search for context" if count.total == 1 else "searches for context"
    else:
        what = "attempt at a step" if count.total == 1 else "attempts at steps"
    words = count.cause.value if count.count == 1 else PLURAL.get(count.cause, count.cause.value)
    codes = f" ({', '.join(count.codes)})" if count.codes else ""
    return f"{count.count} of {count.total} {what} {words}{codes}"


PLURAL: Mapping[Cause, str] = {
    Cause.LIMIT: "ran to their limit",
    Cause.RUNAWAY: "repeated themselves and were stopped",
    Cause.REFUSED: "were refused",
    Cause.SERVER: "failed because of the server",
}


UNFINISHED = frozenset({RunStatus.FAILED, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})


def ending_on_record(conn: Connection, trace: RunTrace) -> Ending:
    """Why the run is unfinished; empty while it is running, and if it is complete."""
    if trace.run is None or trace.run.status not in UNFINISHED:
        return Ending()
    return ending_of(conn, trace.task_id, reason=trace.run.reason)
