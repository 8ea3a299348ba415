"""Where a run lost its commit, by a record made by hand."""

from pathlib import Path

import pytest
from benchmarks.commits.commit_list import CommitEntry
from benchmarks.commits.solve_commit import Attempted
from benchmarks.oracle.losses import Recorded, costs_of, find_loss
from testing.runs.decision_rows import decision_row
from testing.runs.model_calls import model_call

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw.passes import AttemptRow, DecisionRow, TaskRunRow
from clean_room_agent.training.gold_edits import GoldFile

GOLD = GoldFile(path="a.py", before="x = 1\ny = 2\n", after="x = 1\ny = 3\n")
SHOWN = "===== file: a.py (lines 1-2)\nx = 1\ny = 2\n===== end\n"
STEP = "\n## The step to do now\nMend.\nFiles: modify a.py\n"


def done(words: str = "", status: str = "failed") -> Attempted:
    entry = CommitEntry(
        id="a-1",
        repository="o/a",
        commit="c",
        base="b",
        environment="e",
        sources=("a.py",),
        changed_lines=2,
        test_files=(),
        command=(),
    )
    return Attempted(
        entry=entry,
        window=8192,
        exit_code=1,
        solved=False,
        untouched=True,
        answer={"status": status, "task_id": "t"},
        words=words,
        seconds=0,
        model_seconds=0,
        test_seconds=0,
        record=Path("raw.sqlite"),
        top=Path(),
        gold=(GOLD,),
    )


def call(kind: str, prompt: str, *, number: int = 1, response: str = "{}", stage: str = "") -> ModelCall:
    return model_call(
        call_id=number,
        task_id="t:plan",
        call_type=kind,
        stage_name=stage,
        model="m",
        prompt=prompt,
        response=response,
        prompt_tokens=100,
        completion_tokens=1,
        latency_ms=1,
        timestamp="",
        system_prompt="s",
        request_body="{}",
        provider="ollama",
        finish="stop",
        role="coding",
        prompt_hash="",
        estimated_tokens=1,
    )


def decision(stage: str, *, asked: bool = False, reason: str = "because") -> DecisionRow:
    return decision_row(
        task_id="t:plan",
        stage=stage,
        file_id=1,
        tier=2,
        included=False,
        reason=reason,
        timestamp="",
        path="a.py",
        call_id=1 if asked else None,
    )


def attempt(outcome: AttemptOutcome, error: str = "said") -> AttemptRow:
    return AttemptRow(
        task_run_id=1,
        attempt=1,
        prompt_tokens=1,
        completion_tokens=1,
        latency_ms=1,
        raw_response="",
        patch_applied=False,
        timestamp="",
        outcome=outcome,
        call_id=2,
        error=error,
    )


def recorded(
    *calls: ModelCall, decisions: tuple[DecisionRow, ...] = (), attempts: tuple[AttemptRow, ...] = ()
) -> Recorded:
    one_pass = TaskRunRow(
        task_id="t:plan",
        repo_path="",
        mode="plan",
        execute_model="m",
        context_window=1,
        reserved_tokens=1,
        stages="",
        detail="no valid plan",
        timestamp="",
    )
    return Recorded(calls=calls, decisions=decisions, attempts=attempts, passes=(one_pass,))


@pytest.mark.parametrize(
    ("decisions", "stage"),
    [
        ((), "retrieval: never a candidate"),
        ((decision("scope"),), "retrieval: candidate, but not judged"),
        ((decision("scope", asked=True),), "scope: judged out"),
        ((decision("scope"), decision("precision")), "precision"),
        ((decision("precision"), decision("assembly")), "budget: dropped"),
    ],
)
def test_a_file_that_no_planner_saw_was_lost_by_the_last_that_decided_about_it(
    decisions: tuple[DecisionRow, ...], stage: str
) -> None:
    assert find_loss(done(), recorded(call("meta_plan", "no file"), decisions=decisions)).stage == stage


def test_a_file_that_the_planner_saw_and_did_not_name_was_lost_by_the_plan() -> None:
    assert find_loss(done(), recorded(call("meta_plan", SHOWN))).stage == "plan: file not named"


def test_a_plan_that_names_the_file_and_is_refused_is_lost_there() -> None:
    found = find_loss(done(), recorded(call("meta_plan", SHOWN, response="a.py")))
    assert (found.stage, found.example) == ("plan: refused", "a.py: no valid plan")


def test_what_does_not_fit_is_lost_by_the_budget() -> None:
    prompts = (call("part_plan", SHOWN, response="a.py"), call("implement", SHOWN + STEP, number=2))
    words = "prompt implement needs about 9000 tokens and 512 for its answer, and the window has 8192"
    assert find_loss(done(words), recorded(*prompts)).stage == "budget: what must be shown does not fit"


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [
        (AttemptOutcome.TRUNCATED, "edit format: answer cut off"),
        (AttemptOutcome.NO_EDITS, "edit format: no edits"),
        (AttemptOutcome.REFUSED, "apply: refused"),
        (AttemptOutcome.TESTS_FAILED, "tests: fail"),
    ],
)
def test_a_step_that_saw_the_lines_to_change_was_lost_by_its_last_attempt(
    outcome: AttemptOutcome, stage: str
) -> None:
    prompts = (call("part_plan", SHOWN, response="a.py"), call("implement", SHOWN + STEP, number=2))
    assert find_loss(done(), recorded(*prompts, attempts=(attempt(outcome),))).stage == stage


def test_a_step_that_did_not_see_the_lines_to_change_was_lost_before_it() -> None:
    hidden = SHOWN.replace("y = 2\n", "")
    prompts = (call("part_plan", SHOWN, response="a.py"), call("implement", hidden + STEP, number=2))
    found = find_loss(done(), recorded(*prompts, attempts=(attempt(AttemptOutcome.NO_EDITS),)))
    assert (found.stage, found.example) == ("precision", "a.py, lines 2-2 not shown; 0 pieces dropped")
    dropped = (decision("assembly"),)
    found = find_loss(
        done(), recorded(*prompts, decisions=dropped, attempts=(attempt(AttemptOutcome.NO_EDITS),))
    )
    assert found.stage == "budget: dropped"


def test_a_run_that_calls_itself_complete_and_fails_outside_is_named_so() -> None:
    assert find_loss(done(status="complete"), recorded()).stage == "tests: pass in the run, fail outside it"


def test_of_judgment_prompts_what_an_earlier_prompt_began_with_is_shared() -> None:
    first, second = "same " * 50 + "a" * 248, "same " * 50 + "b" * 248
    costs = costs_of(
        recorded(call("scope_judgment", first, stage="scope"), call("scope_judgment", second, stage="scope")),
        50,
    )
    assert (costs.judged_tokens, costs.shared_tokens, costs.over) == (200, 50, 2)
