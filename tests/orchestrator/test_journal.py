import pytest
from testing.runs.memory_run import TASK_ID, MemoryProject

from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.test_results import TestReport
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.orchestrator.events import Note, PassFinished, PassStarted
from clean_room_agent.orchestrator.journal import Journal, seconds_used
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader
from clean_room_agent.orchestrator.task import Hint
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

META = f"{TASK_ID}:meta_plan"
HEADER = PassHeader(kind=PassType.META_PLAN, pass_id=META, title="plan")
END = PassEnd(success=True, detail="2 steps", plan="{}")


def journal(project: MemoryProject, *, resumed: bool = False, hints: tuple[Hint, ...] = ()) -> Journal:
    return project.open(lambda _: "", resumed=resumed, hints=hints).run.journal


def test_what_was_done_is_taken_and_not_done_again(project: MemoryProject) -> None:
    first = journal(project)
    project.seconds = 12.5
    entry = first.entry(META, "pass", PassEnd, ("a", "b"))
    assert entry.value is None
    assert entry.keep(END) == END
    again = journal(project, resumed=True)
    assert again.entry(META, "pass", PassEnd, ("a", "b")).value == END
    assert again.behind
    assert seconds_used(project.session) == 12.5


def test_from_other_inputs_it_is_done_and_the_run_is_no_longer_behind(project: MemoryProject) -> None:
    journal(project).entry(TASK_ID, "x", PassEnd, ("ab", "")).keep(END)
    again = journal(project, resumed=True)
    entry = again.entry(TASK_ID, "x", PassEnd, ("a", "b"))
    assert entry.value is None
    assert again.newest(TASK_ID, "x", PassEnd) == END
    entry.keep(PassEnd(success=False))
    assert not again.behind


def test_what_another_program_kept_is_not_taken(project: MemoryProject) -> None:
    journal(project).entry(TASK_ID, "x", PassEnd).keep(END)
    kept = project.session.get_state("done:x")
    assert isinstance(kept, dict)
    project.session.set_state("done:x", {**kept, "format": 0})
    assert journal(project).entry(TASK_ID, "x", PassEnd).value is None
    project.session.set_state("done:x", {**kept, "value": {"success": "perhaps"}})
    assert journal(project).entry(TASK_ID, "x", PassEnd).value is None


def test_a_note_does_not_count_as_work(project: MemoryProject) -> None:
    again = journal(project, resumed=True)
    again.entry(TASK_ID, "x", PassEnd).note(END)
    assert again.behind
    assert again.has(TASK_ID, "x")


def test_bytes_that_are_no_text_come_back(project: MemoryProject) -> None:
    run = TestRun(
        command="x",
        end=CommandEnd(returncode=1, output="\udce4"),
        report=TestReport(outcomes={"a": "passed"}),
    )
    journal(project).entry(TASK_ID, "baseline", TestRun).keep(run)
    assert journal(project).entry(TASK_ID, "baseline", TestRun).value == run


def test_a_pass_is_done_once_and_closed_each_time(project: MemoryProject) -> None:
    made = iter([END])
    for resumed in (False, True):
        own = journal(project, resumed=resumed)
        assert own.carry_out(HEADER, ("base",), lambda: next(made)) == END
        assert [entry.pass_id for entry in own.recorder.passes] == [META]
    kinds = [type(event) for event in project.observer.events]
    assert kinds == [PassStarted, PassFinished], "a pass that was known is not shown again"


def run_out_of_window() -> PassEnd:
    raise WindowExceeded("too long", hint="shorten it")


def test_a_prompt_that_does_not_fit_ends_its_pass_alone_where_it_may(project: MemoryProject) -> None:
    own = journal(project)
    end = own.carry_out(HEADER, (), run_out_of_window, must_fit=False)
    assert end == PassEnd(success=False, detail="too long")
    assert Note(text="too long (shorten it)") in project.observer.events
    assert own.entry(META, "pass", PassEnd).value is None, "a larger window may hold it"


def test_a_pass_that_fails_otherwise_stays_open(project: MemoryProject) -> None:
    own = journal(project)
    with pytest.raises(WindowExceeded):
        own.carry_out(HEADER, (), run_out_of_window)
    assert own.recorder.passes == []


def test_the_pass_that_is_first_shown_a_hint_is_on_record(project: MemoryProject) -> None:
    journal(project, resumed=True, hints=(Hint(text="use divmod"),)).carry_out(HEADER, (), lambda: END)
    assert project.events() == [("hint_shown", "use divmod")]
