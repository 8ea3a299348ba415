import math

from inline_snapshot import snapshot
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.prompt_inputs import INPUTS, sources

from clean_room_agent.artifacts.plans import Part, PlanStep, TargetFile
from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.goal_check import GOAL_CHECK, GoalCheck
from clean_room_agent.execute.plan_drafts import Revision
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.llm.transport import ChatRequest, RawAnswer


def step(name: str) -> PlanStep:
    return PlanStep(id=name, description=f"Do {name}.", target_files=(TargetFile(path=f"{name}.py"),))


REVISION = Revision(
    task="Do both.",
    part=Part(id="p1", description="Both of them."),
    before=(step("s1"), step("s2")),
    done=("- s0, done: prepared",),
    diff="",
)


def leaning(text: str, yes: float) -> RawAnswer:
    top = (("yes", math.log(yes)), ("no", math.log(1 - yes)))
    return RawAnswer(
        request_body="{}",
        text=text,
        prompt_tokens=9,
        completion_tokens=1,
        tokens=(TokenChoice(token=text, top=top),),
    )


def check(answer: str) -> tuple[GoalCheck, ScriptedTransport]:
    transport = ScriptedTransport([answer] * 3)
    return GoalCheck(
        model_client(transport, MemorySink(), config=models_config()), REVISION, pass_id="t:p"
    ), transport


def test_a_revision_that_keeps_the_goal_has_no_fault() -> None:
    goal, transport = check("yes")
    assert goal.faults((step("s1"), step("s3"))) == ()
    assert [(verdict.item, verdict.yes) for verdict in goal.verdicts] == [("s1 s2 to s1 s3", True)]
    assert "- s2: Do s2. (s2.py)" in transport.requests[0].prompt


def test_a_revision_that_loses_it_is_told_which_steps_went() -> None:
    goal, _ = check("no")
    (fault,) = goal.faults((step("s1"),))
    assert fault == (
        "with this plan, not all that the task asks for is done; keep what these steps were for: s2: Do s2. (s2.py)"
    )


def test_a_plain_no_refuses_however_much_the_model_leans_to_it() -> None:
    def script(request: ChatRequest) -> RawAnswer:
        return leaning("no", 0.31 if NOTHING in request.prompt else 0.42)

    models = model_client(ScriptedTransport(script), MemorySink(), config=models_config())
    goal = GoalCheck(models, REVISION, pass_id="t:p")
    assert len(goal.faults((step("s1"),))) == 1
    (verdict,) = goal.verdicts
    assert (verdict.yes, verdict.reason, verdict.probability) == (False, "judged no (0.58)", 0.42)


def test_a_yes_still_needs_more_than_the_leaning() -> None:
    def script(request: ChatRequest) -> RawAnswer:
        return leaning("yes", 0.9 if NOTHING in request.prompt else 0.55)

    models = model_client(ScriptedTransport(script), MemorySink(), config=models_config())
    assert len(GoalCheck(models, REVISION, pass_id="t:p").faults((step("s1"),))) == 1


def test_what_cannot_be_read_refuses_no_plan() -> None:
    goal, _ = check("perhaps")
    assert goal.faults(()) == ()
    assert goal.verdicts[0].item == "s1 s2 to nothing"


def test_the_goal_check_prompt_reads_so() -> None:
    assert plain_text(GOAL_CHECK.render(INPUTS["goal_check"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## Steps so far
- s1, done: Sum all prices.

# Instructions: Judge whether a revised plan keeps the goal

A plan for the task above was revised. You get the steps before and the revised steps. Say whether the work still does all that the user asked for.

Rules:
- How it is done may change. What the user gets may not become less.
- Say yes if the revised steps do the same in another way.
- Say yes if the steps that are missing are already done. A step that failed was undone.
- Say no if something that the user asked for is neither done nor in the revised steps.
- Other parts of the task have plans of their own: judge the part under way.
- Answer with one word and nothing else: yes or no.

## Steps before
- s2: Export total. (src/till.py)

## Revised steps
(none)

Is all that the user asked for still done or in the revised steps? Answer yes or no.\
""")


def test_what_each_value_of_the_goal_check_prompt_comes_from() -> None:
    assert sources(GOAL_CHECK) == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (25, 25, "step")]
    )
