from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.artifacts.plans import Part, PlanStep, TargetFile
from clean_room_agent.execute.goal_check import GoalCheck
from clean_room_agent.execute.plan_drafts import Revision


def step(name: str) -> PlanStep:
    return PlanStep(id=name, description=f"Do {name}.", target_files=(TargetFile(path=f"{name}.py"),))


REVISION = Revision(
    task="Do both.",
    part=Part(id="p1", description="Both of them."),
    before=(step("s1"), step("s2")),
    done=("- s0, done: prepared",),
    diff="",
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


def test_what_cannot_be_read_refuses_no_plan() -> None:
    goal, _ = check("perhaps")
    assert goal.faults(()) == ()
    assert goal.verdicts[0].item == "s1 s2 to nothing"
