import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from clean_room_agent.db.session import Session
from clean_room_agent.orchestrator.resume.journal import Journal, seconds_used
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.testing.results import TestRun

TASK = "0b0c0d0e-0000-4000-8000-000000000000"
END = PassEnd(success=True, detail="2 steps", plan="{}")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with contextlib.closing(Session.open(tmp_path, TASK, clock=lambda: "2026-01-01T00:00:00Z")) as opened:
        yield opened


def journal(session: Session, *, resumed: bool = False) -> Journal:
    return Journal(session, resumed=resumed, seconds=lambda: 12.5)


def never() -> PassEnd:
    raise AssertionError("it was done already")


def test_what_was_done_is_taken_and_not_done_again(session: Session) -> None:
    assert journal(session).once(f"{TASK}:meta_plan", "pass", PassEnd, lambda: END, ("a", "b")) == END
    again = journal(session, resumed=True)
    assert again.once(f"{TASK}:meta_plan", "pass", PassEnd, never, ("a", "b")) == END
    assert again.behind
    assert seconds_used(session) == 12.5


def test_from_other_inputs_it_is_done_and_the_run_is_no_longer_behind(session: Session) -> None:
    journal(session).keep(TASK, "x", PassEnd, END, ("ab", ""))
    again = journal(session, resumed=True)
    assert again.recall(TASK, "x", PassEnd, ("a", "b")) is None
    other = PassEnd(success=False)
    assert again.once(TASK, "x", PassEnd, lambda: other, ("a", "b")) == other
    assert not again.behind


def test_what_another_program_kept_is_not_taken(session: Session) -> None:
    journal(session).keep(TASK, "x", PassEnd, END)
    kept = session.get_state("done:x")
    assert isinstance(kept, dict)
    session.set_state("done:x", {**kept, "format": 0})
    assert journal(session).recall(TASK, "x", PassEnd) is None
    session.set_state("done:x", {**kept, "value": {"success": "perhaps"}})
    assert journal(session).recall(TASK, "x", PassEnd) is None


def test_a_note_does_not_count_as_work(session: Session) -> None:
    again = journal(session, resumed=True)
    again.note(TASK, "x", PassEnd, END)
    assert again.behind
    assert again.has(TASK, "x")


def test_bytes_that_are_no_text_come_back(session: Session) -> None:
    run = TestRun(command="x", returncode=1, output="\udce4", outcomes={"a": "passed"})
    journal(session).keep(TASK, "baseline", TestRun, run)
    assert journal(session).recall(TASK, "baseline", TestRun) == run
