import json
from collections.abc import Mapping, Sequence
from typing import Any

from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import Scripted, ScriptedTransport

from clean_room_agent.artifacts.plans import (
    FailureSignal,
    Part,
    PlanAdjustment,
    PlanStep,
    TargetFile,
)
from clean_room_agent.execute.plan import adjust
from clean_room_agent.execute.plan_drafts import AdjustmentAsked, PlanDraft, PlanLimits, StepOutcome
from clean_room_agent.llm.transport import ChatRequest

FAILURE = FailureSignal(category="test_failure", message="assert 99 == 100", source="test_split")
OTHER = FailureSignal(category="compile_error", message="SyntaxError: x", source="test_view")
PART = Part(id="p1", description="Split every cent.")
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"


def step(name: str, *needs: str, words: str = "") -> PlanStep:
    return PlanStep(
        id=name,
        description=words or f"Do {name}.",
        target_files=(TargetFile(path="a.py"),),
        depends_on=needs,
    )


def written(*steps: PlanStep) -> str:
    made = [
        {
            "description": one.description,
            "files": [{"path": "a.py", "role": "modify"}],
            "id": one.id,
            "needs": list(one.depends_on),
            "symbols": [],
        }
        for one in steps
    ]
    return json.dumps({"analysis": "As decided.", "changes": ["something"], "steps": made})


def answering(verdicts: Mapping[str, str], *final: str) -> ScriptedTransport:
    """`verdicts` by prompt and item: steps stay valid, all else is no, unless said otherwise."""
    finals = iter(final)

    def script(request: ChatRequest) -> Scripted:
        name = request.identity.prompt.removeprefix("adjustment_")
        if name == "finalize":
            return next(finals)
        usual = "yes" if name in {"step_viability", "goal_check"} else "no"
        return verdicts.get(f"{name} {request.identity.item}", usual)

    return ScriptedTransport(script)


def adjusted(
    transport: ScriptedTransport,
    *remaining: PlanStep,
    failures: Sequence[FailureSignal] = (FAILURE,),
    **limits: Any,
) -> PlanDraft[PlanAdjustment]:
    bounds: dict[str, Any] = {"max_parts": 3, "max_steps": 5, "max_lines": 200} | limits
    failed = StepOutcome(step=step("s1"), succeeded=False, detail="tests failed", failures=tuple(failures))
    asked = AdjustmentAsked(
        part=PART,
        remaining=remaining,
        outcomes=(failed,),
        task="Split every cent.",
        diff=DIFF,
        paths=frozenset({"a.py"}),
        limits=PlanLimits(**bounds),
    )
    models = model_client(transport, MemorySink(), window=8192)
    return adjust(models, None, asked, pass_id="t:adjust:p1:after_s1", route="decomposed")


def ids(planned: PlanDraft[PlanAdjustment]) -> list[str]:
    assert planned.value is not None, planned.faults
    return [one.id for one in planned.value.revised_steps]


def asked(transport: ScriptedTransport) -> list[str]:
    """Prompts and items, in order of name: some are asked at the same time."""
    return sorted(
        f"{request.identity.prompt.removeprefix('adjustment_')} {request.identity.item}".strip()
        for request in transport.requests
        if request.identity.item != "(nothing)"
    )


def test_nothing_is_asked_where_nothing_failed_or_nothing_remains() -> None:
    transport = ScriptedTransport([])
    assert ids(adjusted(transport, step("s2"), failures=())) == ["s2"]
    assert ids(adjusted(transport)) == []


def test_where_every_step_stays_no_steps_are_written() -> None:
    transport = answering({"root_cause f1 s1 (tried)": "yes"})
    planned = adjusted(transport, step("s2", "s1"), step("s3", "s2"))
    assert ids(planned) == ["s2", "s3"]
    assert planned.value is not None
    assert [one.depends_on for one in planned.value.revised_steps] == [(), ("s2",)]
    assert planned.notes == ("s2 is to be done without s1",)
    assert asked(transport) == [
        "root_cause f1 s1 (tried)",
        "root_cause f1 s2",
        "root_cause f1 s3",
        "step_viability s2",
        "step_viability s3",
    ]
    account = planned.account
    assert account is not None
    assert (account.failures, account.invalid, account.unexplained) == ((FAILURE,), (), ())
    assert account.verdicts == planned.verdicts


def test_questions_show_the_failure_the_step_and_the_newest_changes() -> None:
    transport = answering({"root_cause f1 s1 (tried)": "yes"})
    adjusted(transport, step("s2"))
    by_item = {f"{one.identity.prompt} {one.identity.item}": one.prompt for one in transport.requests}
    for prompt in by_item.values():
        assert "Split every cent." in prompt
        assert "+new" in prompt
        assert "- test failure, test_split: assert 99 == 100" in prompt
    assert (
        "## The step that was tried\ns1: Do s1. (modify a.py)"
        in by_item["adjustment_root_cause f1 s1 (tried)"]
    )
    assert "Must this step change" in by_item["adjustment_root_cause f1 s2"]


def test_a_step_that_must_change_is_written_and_the_others_stay_as_they_were() -> None:
    answer = written(step("s2", words="Another way."), step("s3", words="Meddled with."), step("s9"))
    transport = answering({"root_cause f1 s2": "yes"}, answer)
    planned = adjusted(transport, step("s2"), step("s3"), step("s4"))
    assert ids(planned) == ["s2", "s3", "s4"]
    assert planned.value is not None
    assert [one.description for one in planned.value.revised_steps] == ["Another way.", "Do s3.", "Do s4."]
    assert planned.notes == (
        "left out: step s9, for which there is no failure",
        "put back: step s4, which stays",
    )
    assert "- s2: must change: - test failure, test_split: assert 99 == 100" in transport.requests[-1].prompt
    assert "- s3: stays" in transport.requests[-1].prompt


def test_a_failure_that_no_step_is_about_may_need_a_new_one() -> None:
    transport = answering({"new_step f1": "yes"}, written(step("s2"), step("s9")))
    assert ids(adjusted(transport, step("s2"))) == ["s2", "s9"]
    assert "new_step f1" in asked(transport)
    assert ids(adjusted(answering({"new_step f1": "Hm."}), step("s2"))) == ["s2"]


def test_a_step_that_goes_passes_the_goal_check_first() -> None:
    verdicts = {"step_viability s2": "no"}
    transport = answering(verdicts, written(step("s3", "s2")))
    planned = adjusted(transport, step("s2"), step("s3", "s2"))
    assert ids(planned) == ["s3"]
    assert planned.value is not None
    assert planned.value.revised_steps[0].depends_on == ()
    assert "goal_check s2 s3 to s3" in asked(transport)
    refused = answering(
        verdicts | {"goal_check s2 s3 to s3": "no"}, written(step("s3")), written(step("s2"), step("s3"))
    )
    kept = adjusted(refused, step("s2"), step("s3"))
    assert ids(kept) == ["s2", "s3"]
    assert "not all that the task asks for is done" in refused.requests[-1].prompt
    stubborn = answering(verdicts | {"goal_check s2 s3 to s3": "no"}, *[written(step("s3"))] * 2)
    assert adjusted(stubborn, step("s2"), step("s3")).value is None


def test_a_step_about_which_nothing_can_be_read_goes_but_not_all_of_them() -> None:
    transport = answering({"step_viability s2": "Hm."}, written(step("s3")))
    assert ids(adjusted(transport, step("s2"), step("s3"))) == ["s3"]
    none = adjusted(answering({"step_viability s2": "Hm."}), step("s2"))
    assert none.value is None
    assert none.faults == ("no verdict about the remaining steps could be read",)
    assert [one.readable for one in none.verdicts] == [False]


def test_a_cause_that_cannot_be_read_is_none() -> None:
    transport = answering({"root_cause f1 s1 (tried)": "Hm.", "root_cause f1 s2": "Hm."})
    planned = adjusted(transport, step("s2"))
    assert ids(planned) == ["s2"]
    assert planned.account is not None
    assert planned.account.unexplained == ("f1",)


def test_of_many_failures_the_first_are_looked_into() -> None:
    transport = answering({})
    adjusted(transport, step("s2"), failures=(FAILURE, OTHER), max_failures=1)
    assert not any("f2" in one for one in asked(transport))


def test_written_steps_are_validated_like_any_plan() -> None:
    bad = written(step("s2", "s9"))
    planned = adjusted(answering({"root_cause f1 s2": "yes"}, bad, bad), step("s2"))
    assert planned.value is None
    assert planned.faults == ("step s2 needs s9, which is not in the plan",)
