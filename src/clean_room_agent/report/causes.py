"""Why a task failed: counts by cause, and what to do about the most important one."""

from collections.abc import Mapping

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.failure_causes import Cause, CauseCount, Causes, count_causes
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.answers import NO_THINKING
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.orchestrator.test_runs.gate import FAILED_BEFORE
from clean_room_agent.report.summary import Ending
from clean_room_agent.report.trace import RunTrace

JUDGING = "judging"
PROMPTS_BY_WORK: Mapping[str, tuple[str, ...]] = {
    "editing": ("implement", "function", "lines", "fill"),
    "planning": (
        *("meta_plan", "change_points", "same_part", "part_dependency"),
        *("part_plan", "symbol_targets", "step_design", "step_dependency", "doctor"),
        *("adjustment", "adjustment_step_viability", "adjustment_root_cause"),
        *("adjustment_new_step", "adjustment_finalize"),
    ),
    "testing": ("goal_test",),
    "describing": ("enrichment",),
    JUDGING: (
        *("task_analysis", "scope_judgment", "scope_batch", "piece_judgment", "precision_batch"),
        *("refilter", "goal_check"),
    ),
}
WORK: Mapping[str, str] = {name: work for work, names in PROMPTS_BY_WORK.items() for name in names}
"""The work that a prompt does. A prompt of an earlier build, which a record may name, counts as judging."""
NEAREST = ("editing", "planning", "testing", "describing", JUDGING)
"""From the end of a task to its beginning."""
WEAK_COUNT = 3
WEAK_SHARE = 0.75
"""From this share of unusable answers among all of their kind on, the model is too weak for the work."""
MOST_LINES = 4
WRITE_THE_PLAN = "write the plan yourself: `cra solve --plan FILE`"
WEAK: Mapping[str, str] = {
    "planning": f"this model is too weak for planning at this window; try a larger one, or {WRITE_THE_PLAN}",
    "editing": "this model is too weak for these edits; try a larger one as [models] coding, "
    f"or give it smaller steps: {WRITE_THE_PLAN}",
    "testing": "this model is too weak to write a test of the task; give one: `--check CODE` or `--test NODE-ID`",
    "describing": "this model is too weak to describe files at this window; try a larger one: "
    "enrichment in [models.overrides]",
    JUDGING: "this model is too weak to judge what the task needs; try a larger one as [models] classifier or reasoning",
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
    "PROTECTED": "the edits changed files that must stay, as the attempts say: [edit] protected lists some, and a plan may name tests",
    "TRUNCATED": "the edits were cut off: give the model smaller steps, or raise coding in [models.max_tokens]",
}
"""The advice if one code prevails among the refused edits."""
BUDGET = "budget spent"
"""The beginning of the reason of a run that used up one of its budgets."""
RAISE_BUDGET = "raise max_calls, max_tokens or max_minutes in [orchestrator], then `cra solve --resume {run}`"
LET_THEM_FAIL = (
    "if they may: `cra config set testing.accept goals`, then `cra solve --resume {run}`, which asks no model"
)
PLURAL: Mapping[Cause, str] = {
    Cause.LIMIT: "ran to their limit",
    Cause.RUNAWAY: "repeated themselves and were stopped",
    Cause.REFUSED: "were refused",
}
UNFINISHED = frozenset({RunStatus.FAILED, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})


def ending_of(conn: Connection, task_id: str, *, reason: str = "") -> Ending:
    """Why the task is unfinished. `reason` is the run's own."""
    return explain(count_causes(conn, task_id, probe=PROBE_NAME), task_id, reason=reason)


def ending_on_record(conn: Connection, trace: RunTrace) -> Ending:
    """Why the run is unfinished; empty while it is running, and if it is complete."""
    if trace.run is None or trace.run.status not in UNFINISHED:
        return Ending()
    return ending_of(conn, trace.task_id, reason=trace.run.reason)


def explain(causes: Causes, task_id: str, *, reason: str = "") -> Ending:
    """The counts in words, those nearest to the end of the task first, with the advice that they support."""
    run = short_id(task_id)
    counts = tuple(sorted(causes.counts, key=_cause_sort_key))
    weak = _weak_advice(causes)
    of_counts = weak or (_advice(counts[0]) if counts else "")
    if reason.startswith(FAILED_BEFORE):  # whatever else failed on the way
        return Ending(advice=LET_THEM_FAIL.format(run=run))
    advice = RAISE_BUDGET if reason.startswith(BUDGET) else of_counts
    return Ending(
        counts=counts,
        lines=tuple(map(_cause_line, counts[:MOST_LINES])),
        advice=advice.format(run=run, show=f"cra show {run}"),
        weak=bool(weak),
    )


def _cause_sort_key(count: CauseCount) -> tuple[int, int]:
    """The sort key of a cause: nearest to the end of a task first, then the most frequent."""
    if count.cause is Cause.NO_EDITS and not count.subject:
        return (NEAREST.index("editing"), 1)  # why the answers had none says more
    if not count.subject:
        return (len(NEAREST) if count.cause is Cause.NOTHING_IN_SCOPE else -1, -count.count)
    return (NEAREST.index(WORK.get(count.subject, JUDGING)), -count.count)


def _weak_advice(causes: Causes) -> str:
    """What to do if nearly all answers of one kind were unusable; for the first such kind."""
    for work, advice in WEAK.items():
        asked = sum(number for prompt, number in causes.asked if WORK.get(prompt, JUDGING) == work)
        of_model = (one for one in causes.counts if one.subject and one.cause.is_of_model)
        useless = sum(one.count for one in of_model if WORK.get(one.subject, JUDGING) == work)
        if useless >= WEAK_COUNT and useless >= WEAK_SHARE * asked:
            return advice
    return ""


def _advice(count: CauseCount) -> str:
    if WORK.get(count.subject) == "describing" and count.cause.is_of_model:
        return "a larger model may do: enrichment in [models.overrides]"
    return BY_CODE.get("".join(count.codes[:1])) or ADVICE[count.cause]


def _cause_line(count: CauseCount) -> str:
    """`4 of 4 answers to meta_plan ran to their limit`."""
    if count.subject:
        one, many = f"answer to {count.subject}", f"answers to {count.subject}"
    elif count.cause is Cause.NOTHING_IN_SCOPE:
        one, many = "search for context", "searches for context"
    else:
        one, many = "attempt at a step", "attempts at steps"
    words = count.cause.value if count.count == 1 else PLURAL.get(count.cause, count.cause.value)
    codes = f" ({', '.join(count.codes)})" if count.codes else ""
    return f"{count.count} of {count.total} {one if count.total == 1 else many} {words}{codes}"
