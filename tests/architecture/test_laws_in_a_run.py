"""Laws of the product, seen in one run in which much happens."""

import contextlib
import json
import re

from testing.record_faults import record_faults
from tests.architecture.eventful_run import UNREADABLE, Eventful, mark

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import CALLS
from clean_room_agent.workspace import Workspace

MARK = re.compile(r"Marked-(\d{3})-so\.")


def answered(eventful: Eventful, number: int) -> ModelCall:
    """The recorded call that gave the answer of that number."""
    return next(row for row in eventful.told.recorded.calls if mark(number) in row.answer.response)


def test_the_run_is_as_eventful_as_its_tests_need(eventful: Eventful) -> None:
    recorded = eventful.told.recorded
    assert eventful.told.code == 0, eventful.told.err
    assert recorded.outcomes[0] != "applied_and_passed"
    assert recorded.outcomes[-1] == "applied_and_passed"
    assert len(recorded.outcomes) == 2
    assert any(reading.reading == "repaired" for reading in recorded.readings)


def test_no_prompt_shows_an_earlier_answer_but_the_repair_that_is_on_record(eventful: Eventful) -> None:
    recorded = eventful.told.recorded
    shown = {
        (int(number), row.id)
        for row in recorded.calls
        for number in MARK.findall(row.request.prompt + row.request.system_prompt)
    }
    assert len(shown) == 1
    for number, call_id in shown:
        faulty = answered(eventful, number)
        repair = next(row for row in recorded.calls if row.id == call_id)
        assert UNREADABLE in faulty.answer.response
        assert recorded.reading_of(faulty)[0] == "unreadable"
        assert recorded.reading_of(repair)[0] == "repaired"
        assert (repair.site.pass_id, repair.site.call_type, repair.site.attempt) == (
            faulty.site.pass_id,
            faulty.site.call_type,
            faulty.site.attempt + 1,
        )


def test_every_request_is_one_system_text_and_one_question(eventful: Eventful) -> None:
    for row in eventful.told.recorded.calls:
        messages = json.loads(row.request.request_body)["messages"]
        assert [message["role"] for message in messages] == ["system", "user"]
        assert [message["content"] for message in messages] == [row.request.system_prompt, row.request.prompt]


def test_a_refused_edit_is_shown_only_to_the_retry_that_is_on_record(eventful: Eventful) -> None:
    recorded = eventful.told.recorded
    edit = "return [share] * (people - 1) + [cents]"
    first = next(row for row in recorded.calls_of("implement") if edit in row.answer.response)
    shown = [
        row for row in recorded.calls if edit in row.request.prompt and row.site.call_type == "implement"
    ]
    assert [relative_pass(row.site.pass_id) for row in shown] == [
        f"{relative_pass(first.site.pass_id)}:retry_1"
    ]
    assert [row.task_id for row in recorded.recoveries] == [first.site.pass_id]
    assert recorded.actions[0] in {"retry", "refine"}
    assert [
        row.site.call_type for row in recorded.calls if edit in row.request.prompt and row not in shown
    ] == []


def test_every_prompt_fits_its_window_with_its_answer_and_may_not_be_cut(eventful: Eventful) -> None:
    for row in eventful.told.recorded.calls:
        body = json.loads(row.request.request_body)
        options = body["options"]
        assert row.cost.estimated_tokens + options["num_predict"] <= options["num_ctx"] == 8192
        assert (body["truncate"], body["shift"]) == (False, False)
        assert row.cost.prompt_tokens is not None
        assert row.cost.prompt_tokens <= row.cost.estimated_tokens


def test_every_judged_candidate_was_found_without_a_model(eventful: Eventful) -> None:
    path = Workspace(repo=eventful.project.top).raw
    with contextlib.closing(connect_file("raw", path, read_only=True)) as conn:
        rows = conn.execute(
            "SELECT path, reason, score, call_id FROM retrieval_decisions"
            " WHERE stage = 'scope' AND path != '' ORDER BY id"
        ).fetchall()
    assert any(row["call_id"] for row in rows)
    assert all(row["reason"] and row["score"] is not None for row in rows)


def test_every_applied_edit_was_judged_by_the_tests(eventful: Eventful) -> None:
    recorded = eventful.told.recorded
    judged = {row.attempt_id: row for row in recorded.validations if row.attempt_id is not None}
    applied = [row for row in recorded.attempts if row.patch_applied]
    assert applied
    for row in applied:
        assert judged[row.id].command == eventful.project.test_command
        assert judged[row.id].success == (row.outcome == "applied_and_passed")
    kinds = [row.kind for row in recorded.validations if row.kind != "recheck"]  # of goal tests at the base
    assert kinds == ["baseline", "attempt", "attempt", "final"]
    assert recorded.tests("final").success


def test_every_call_was_on_record_before_the_next_was_asked(eventful: Eventful) -> None:
    recorded = eventful.told.recorded
    assert eventful.late == ()
    assert [(row.request.prompt, row.answer.response) for row in recorded.calls] == [
        (call.prompt, text) for call, text in zip(eventful.calls, eventful.answers, strict=True)
    ]


def test_the_chain_from_the_result_to_its_reasons_is_whole(eventful: Eventful) -> None:
    path = Workspace(repo=eventful.project.top).raw
    with contextlib.closing(connect_file("raw", path, read_only=True)) as conn:
        assert record_faults(conn) == ()


def test_a_dirty_tree_its_index_and_its_stash_are_as_before(eventful: Eventful) -> None:
    told = eventful.told
    assert told.traces == {}
    assert any(name == "tree:notes.txt" for name in told.before)
    assert any(name.endswith("logs/refs/stash") for name in told.before)
    assert told.branches == (f"cra/{told.recorded.run.task_id[:8]}",) if told.recorded.run else False
    assert eventful.project.branch_file("notes.txt") == b"mine\n"
    assert b"WIDTH = 80" in eventful.project.branch_file("till/receipt.py")


def test_the_record_has_a_field_for_all_that_replay_needs(eventful: Eventful) -> None:
    needed = {"prompt_hash", "request_body", "response", "item", "attempt", "finish"}
    assert needed <= set(CALLS.columns)
    assert all(row.request.prompt_hash and row.request.request_body for row in eventful.told.recorded.calls)
