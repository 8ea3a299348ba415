"""Runs that were interrupted go on with what they had, in whole runs in memory."""

from testing.runs.memory_run import part_plan, step
from testing.runs.memory_till import MemoryTill, dying
from testing.runs.solving import Script, edit
from testing.runs.spoiled_answers import SPLIT
from testing.servers.ollama_script import Answer, Answerer, ChatCall

from clean_room_agent.errors import ServerFailed
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.orchestrator.task import PlanGiven

HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")


def interrupted(script: Answerer, title: str, number: int) -> Answerer:
    """Ctrl-C while the model writes the answer to the prompt's call of that number (from 1)."""
    left = [number]

    def answer(call: ChatCall) -> Answer | str:
        left[0] -= call.title == title
        if call.title == title and left[0] == 0:
            raise KeyboardInterrupt
        return script(call)

    return answer


def test_a_run_that_failed_with_its_server_asks_only_the_failed_question_again(till: MemoryTill) -> None:
    answerer = dying(Script(till.oracle), IMPLEMENT.title)
    told = till.solve(answerer)
    assert isinstance(told.error, ServerFailed)
    assert told.ending[0] == "failed"
    again = till.resume(answerer)
    assert again.ending == ("complete", "")
    titles = [call.site.call_type for call in again.recorded.calls]
    assert titles.count(IMPLEMENT.name) == 2
    assert titles.count(META_PLAN.name) == 1
    assert till.replay().ending == ("complete", "")


def test_a_spent_budget_that_is_not_raised_ends_the_run_again(till: MemoryTill) -> None:
    script = Script(till.oracle)
    assert till.solve(script, orchestrator={"max_calls": 2}).ending[0] == "partial"
    status, reason = till.resume(script).ending
    assert status == "partial"
    assert "(max_calls = 2)" in reason
    told = till.resume(script, orchestrator={"max_calls": 50})
    assert told.ending == ("complete", "")
    assert len(told.recorded.calls) > 2
    assert till.replay().ending == ("complete", "")


def test_an_attempt_that_was_kept_is_known_when_the_run_goes_on(till: MemoryTill) -> None:
    right = Script(till.oracle, {IMPLEMENT.title: [HARMLESS]})
    answerer = interrupted(right, IMPLEMENT.title, 2)
    told = till.solve(answerer, solve={"max_attempts": 2})
    assert isinstance(told.error, KeyboardInterrupt)
    assert (told.ending[0], told.recorded.outcomes) == ("interrupted", ["applied_and_passed"])
    again = till.resume(answerer)
    assert again.recorded.outcomes == ["applied_and_passed", "applied_and_passed"]
    assert len(again.memory.runner.commands_run) == 1, (
        "the new attempt; neither the baseline nor what was kept"
    )
    assert again.ending == ("complete", "")
    assert till.replay().recorded.outcomes == again.recorded.outcomes


FOLLOWED = PlanGiven(single=part_plan(step("s1", "till/money.py")))
NO = {"max_attempts": 2, "max_refinement_loops": 0}


def test_a_hint_lets_a_step_of_a_followed_plan_be_tried_again(till: MemoryTill) -> None:
    script = Script(till.oracle, {IMPLEMENT.title: ["I cannot."] * 20})
    assert till.solve(script, given=FOLLOWED, solve=NO).ending[0] == "failed"
    tried = len(till.resume(script).recorded.attempts)
    told = till.resume(script, "Use divmod.")
    assert len(told.recorded.attempts) == tried + 2, "as many as the step had at first"
    shown = ["Use divmod." in call.request.prompt for call in told.recorded.calls_of("implement")]
    assert shown == sorted(shown)
    assert any(shown)
    assert till.resume(Script(till.oracle), "Really.").ending == ("complete", "")


def test_a_hint_is_tried_where_answers_had_no_end(till: MemoryTill) -> None:
    endless = "again and again " * 400
    script = Script(till.oracle, {IMPLEMENT.title: [endless] * 4})
    assert till.solve(script, given=FOLLOWED, solve=NO).ending[0] == "failed"
    assert till.resume(Script(till.oracle), "Use divmod.").ending == ("complete", "")


def test_a_hint_lets_a_run_without_a_plan_plan_again(till: MemoryTill) -> None:
    strict = {"plan_fallback": False}
    script = Script(till.oracle, {META_PLAN.title: ["No plan."] * 9})
    assert till.solve(script, orchestrator=strict).ending[0] == "failed"
    assert till.resume(Script(till.oracle)).ending[0] == "failed", "nothing new is known"
    told = till.resume(Script(till.oracle), "Plan one part.")
    assert told.ending == ("complete", "")
    assert "Plan one part." in told.recorded.calls_of("meta_plan")[-1].request.prompt


def test_a_hint_that_nobody_was_shown_is_told(till: MemoryTill) -> None:
    script = Script(till.oracle)
    told = till.solve(script, given=FOLLOWED)
    assert told.ending == ("complete", "")
    again = till.resume(script, "Use divmod.")
    assert ("note", "nothing was left to ask, so no model was shown the hint: Use divmod.") in again.notes(
        "note"
    )
