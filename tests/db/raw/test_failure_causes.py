"""Causes are counted over the calls, attempts and searches of one task, and no other."""

import sqlite3

import pytest
from testing.runs.decision_rows import decision_row
from tests.db.raw.samples import NOW, PASS, TASK, attempt, call, task_run

from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw import calls, passes
from clean_room_agent.db.raw.failure_causes import Cause, CauseCount, count_causes
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.llm.answers import ParseFault, thinking_only

PROBE = "window_probe"


def asked(
    conn: sqlite3.Connection,
    reading: AnswerReading | None,
    *,
    fault: str = "",
    prompt: str = "meta_plan",
    finish: str = "stop",
    task: str = PASS,
) -> None:
    call_id = calls.append_call(conn, call(task_id=task, call_type=prompt, finish=finish))
    if reading is not None:
        calls.append_reading(
            conn, calls.ReadingRow(call_id=call_id, reading=reading, fault=fault, timestamp=NOW)
        )


def fault_of_a_copy() -> str:
    """As the client records it."""
    read, _ = META_PLAN.read(META_PLAN.example, (), asked=META_PLAN.example)
    assert isinstance(read, ParseFault)
    return read.fault


def counted(conn: sqlite3.Connection, task: str = TASK) -> dict[tuple[str, Cause], tuple[int, int]]:
    found = count_causes(conn, task, probe=PROBE).counts
    return {(one.subject, one.cause): (one.count, one.total) for one in found}


@pytest.mark.parametrize(
    ("finish", "reading", "fault", "cause"),
    [
        ("length", AnswerReading.UNREADABLE, "the answer was cut off after 512 tokens", Cause.LIMIT),
        ("stop", AnswerReading.UNREADABLE, "parts: Field required", Cause.UNREADABLE),
        ("repeated", AnswerReading.UNREADABLE, "the answer repeated itself and was stopped", Cause.RUNAWAY),
        ("stop", AnswerReading.UNREADABLE, fault_of_a_copy(), Cause.EXAMPLE),
        ("stop", AnswerReading.UNREADABLE, thinking_only(7), Cause.THINKING),
        ("length", AnswerReading.UNREADABLE, thinking_only(None), Cause.THINKING),
        ("error:DegenerateOutput", None, "", Cause.RUNAWAY),
        ("error:ServerTimeout", None, "", Cause.SERVER_TIMEOUT),
        ("error:ServerFailed", None, "", Cause.SERVER),
    ],
)
def test_each_answer_of_no_use_has_one_cause(
    conn: sqlite3.Connection, finish: str, reading: AnswerReading | None, fault: str, cause: Cause
) -> None:
    asked(conn, reading, fault=fault, finish=finish)
    asked(conn, AnswerReading.REPAIRED)
    assert counted(conn) == {("meta_plan", cause): (1, 2)}


def test_an_interrupted_answer_is_nobodys_failure(conn: sqlite3.Connection) -> None:
    asked(conn, None, finish="error:CallInterrupted")
    assert counted(conn) == {}


def test_what_was_read_is_of_use_also_where_it_was_cut(conn: sqlite3.Connection) -> None:
    asked(conn, AnswerReading.PARSED, finish="length", prompt="scope_judgment")
    asked(conn, AnswerReading.REPAIRED)
    found = count_causes(conn, TASK, probe=PROBE)
    assert found.counts == ()
    assert found.asked == (("meta_plan", 1), ("scope_judgment", 1))


def test_the_newest_reading_of_a_call_counts(conn: sqlite3.Connection) -> None:
    asked(conn, AnswerReading.UNREADABLE, fault="x")
    calls.append_reading(conn, calls.ReadingRow(call_id=1, reading=AnswerReading.PARSED, timestamp=NOW))
    assert counted(conn) == {}


def test_neither_other_tasks_nor_the_probe_count(conn: sqlite3.Connection) -> None:
    asked(conn, AnswerReading.UNREADABLE, task="another-task")
    asked(conn, None, prompt=PROBE, finish="error:WindowExceeded")
    assert count_causes(conn, TASK, probe=PROBE).asked == ()


def tried(conn: sqlite3.Connection, number: int, outcome: AttemptOutcome, *codes: EditCode) -> None:
    run = passes.append_task_run(conn, task_run())
    report = tuple(EditReport(index=at, file_path="a.py", code=code) for at, code in enumerate(codes))
    row = attempt(run, number, patch_applied=False, outcome=outcome, edit_report=report)
    passes.append_attempt(conn, row)


def test_attempts_are_counted_with_the_codes_of_refused_edits(conn: sqlite3.Connection) -> None:
    tried(conn, 1, AttemptOutcome.REFUSED, EditCode.NO_MATCH, EditCode.NO_MATCH, EditCode.APPLIED)
    tried(conn, 2, AttemptOutcome.REFUSED, EditCode.NO_MATCH, EditCode.ELISION)
    tried(conn, 3, AttemptOutcome.TESTS_FAILED, EditCode.APPLIED)
    tried(conn, 4, AttemptOutcome.TIMED_OUT)
    tried(conn, 5, AttemptOutcome.NO_EDITS)
    tried(conn, 6, AttemptOutcome.TRUNCATED)
    found = count_causes(conn, TASK, probe=PROBE).counts
    assert found[0] == CauseCount(
        cause=Cause.REFUSED, subject="", count=2, total=6, codes=("NO_MATCH", "ELISION")
    )
    assert {one.cause: one.count for one in found[1:]} == {
        Cause.NO_EDITS: 1,
        Cause.TESTS_RED: 1,
        Cause.TESTS_TIMEOUT: 1,
    }


def decided(conn: sqlite3.Connection, task: str, stage: str, *, included: bool) -> None:
    row = decision_row(
        task_id=task,
        stage=stage,
        file_id=None,
        tier=2,
        included=included,
        reason="r",
        timestamp=NOW,
        path="a.py",
    )
    passes.append_decisions(conn, (row,))


def test_a_search_of_which_nothing_was_shown_is_counted(conn: sqlite3.Connection) -> None:
    decided(conn, TASK, "scope", included=False)
    decided(conn, PASS, "scope", included=True)
    decided(conn, PASS, "assembly", included=True)
    assert counted(conn) == {("", Cause.NOTHING_IN_SCOPE): (1, 2)}


def test_models_that_copied_are_known_by_the_faults_that_are_recorded(conn: sqlite3.Connection) -> None:
    def answered(model: str, fault: str, task: str = PASS) -> None:
        call_id = calls.append_call(conn, call(task_id=task, model=model))
        row = calls.ReadingRow(call_id=call_id, reading=AnswerReading.UNREADABLE, fault=fault, timestamp=NOW)
        calls.append_reading(conn, row)

    answered("whole", fault_of_a_copy())
    answered("another", fault_of_a_copy())
    answered("other", "parts: Field required")
    answered("elsewhere", fault_of_a_copy(), task="another-task")
    answered("here", fault_of_a_copy(), task=f"{TASK}:here")
    assert calls.copying_models(conn, TASK, beside=f"{TASK}:here") == ("another", "whole")
