from testing.runs.memory_run import TASK_ID, MemoryProject

from clean_room_agent.artifacts.goals import GoalOutcome, GoalSource
from clean_room_agent.artifacts.outcomes import EventKind, PassType, RunStatus
from clean_room_agent.db.raw.passes import get_task_run, list_passes
from clean_room_agent.db.raw.runs import get_orchestrator_run, list_events, recorded_evidence
from clean_room_agent.orchestrator.events import Note, PassFinished
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader, RunRecorder

STEP = PassHeader(
    kind=PassType.IMPLEMENT, pass_id=f"{TASK_ID}:impl:p1:s1", title="step", part_id="p1", step_id="s1"
)


def recorder_of(project: MemoryProject) -> RunRecorder:
    return project.open(lambda _: "").run.recorder


def test_the_coder_answers_an_attempt_and_the_reasoning_model_a_plan() -> None:
    assert STEP.kind.role == "coding"
    assert PassType.ADJUST.role == "reasoning"


def test_a_pass_is_on_record_when_it_begins_and_when_it_ends(project: MemoryProject) -> None:
    recorder = recorder_of(project)
    recorder.open_pass(STEP)
    row = project.record.write(get_task_run, STEP.pass_id)
    assert row is not None
    assert (row.mode, row.execute_model, row.success) == ("implement", "coder:3b", None)
    recorder.close_pass(STEP, PassEnd(success=True, detail="4 pass", diff="the diff"), seconds=2.5)
    row = project.record.write(get_task_run, STEP.pass_id)
    assert row is not None
    assert (row.success, row.detail, row.final_diff) == (True, "4 pass", "the diff")
    finished = project.observer.events[-1]
    assert isinstance(finished, PassFinished)
    assert (finished.seconds, finished.title) == (2.5, "step")


def test_a_run_that_ends_closes_the_passes_under_way(project: MemoryProject) -> None:
    recorder = recorder_of(project)
    recorder.open_pass(STEP)
    recorder.ended(RunStatus.INTERRUPTED, reason="interrupted")
    row = project.record.write(get_task_run, STEP.pass_id)
    assert row is not None
    assert (row.success, row.detail) == (False, "stopped: interrupted")
    run = project.record.write(get_orchestrator_run, TASK_ID)
    assert run is not None
    assert (run.status, run.completed_at) == (RunStatus.INTERRUPTED, None)


def test_passes_keep_the_order_in_which_they_began(project: MemoryProject) -> None:
    recorder = recorder_of(project)
    headers = (STEP, PassHeader(kind=PassType.IMPLEMENT, pass_id=f"{STEP.pass_id}:retry_1", title=""))
    for header in headers:
        recorder.open_pass(header)
    for header in headers:
        recorder.close_pass(header, PassEnd(success=False), seconds=1.0)
    run = project.record.write(get_orchestrator_run, TASK_ID)
    assert run is not None
    rows = project.record.write(list_passes, run.id)
    assert [row.sequence_order for row in rows] == [0, 1]


def test_a_note_reaches_the_record_and_whoever_watches(project: MemoryProject) -> None:
    recorder_of(project).note("no sandbox here")
    assert project.events() == [("note", "no sandbox here")]
    assert project.observer.events == [Note(text="no sandbox here")]


def test_a_resumed_run_says_again_what_it_said_and_the_record_has_it_once(project: MemoryProject) -> None:
    for _ in range(2):
        recorder_of(project).event(STEP.pass_id, EventKind.TARGET_NOT_SHOWN, "a.py")
    assert project.events() == [("target_not_shown", "a.py")]


def goal(*, green: bool) -> tuple[GoalOutcome, ...]:
    return (GoalOutcome(name="t", source=GoalSource.REPOSITORY, trust="proof", green=green),)


def test_how_a_run_ended_is_on_record_with_its_newest_evidence(project: MemoryProject) -> None:
    def evidence() -> tuple[GoalOutcome, ...] | None:
        return recorded_evidence(project.record.write(list_events, TASK_ID))

    recorder_of(project).ended(RunStatus.INTERRUPTED)
    assert evidence() is None
    for green in (False, True, False, False):
        recorder_of(project).ended(RunStatus.PARTIAL, evidence=goal(green=green))
        assert evidence() == goal(green=green)
    assert [kind for kind, _ in project.events()] == ["evidence"] * 3, "what it was before is not said again"
    recorder_of(project).ended(RunStatus.COMPLETE, evidence=())
    assert evidence() == ()
