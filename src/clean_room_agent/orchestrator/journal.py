"""Keeps a run's finished work in its session, so that a resumed run takes it from there and does nothing twice.

A pass is opened, recalled or done, kept, and closed. Of a planning pass, which comes to a `PassEnd`, `Journal.carry_out` does all
four; an attempt at a step comes to more, and its pass is opened and closed by hand:

    entry = run.journal.entry(pass_id, "attempt", Attempt, inputs)
    current = run.journal.open_pass(header, entry)
    if entry.value is None:         # not done before this process began
        entry.keep(make())          # on disk before anything depends on it
    current.close(PassEnd(...))
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.db.session import Session
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader, RunRecorder
from clean_room_agent.orchestrator.spending import Budget
from clean_room_agent.orchestrator.task import Hints

ValueT = TypeVar("ValueT")

FORMAT = 1
"""Raised when the stored values change their meaning, so that an older program's values are not misread."""
SECONDS = "seconds_used"
STATE = "done:"
"""The prefix of the keys."""
PASS = "pass"  # noqa: S105 - a key, no password
"""The name under which a planning pass stores how it ended."""


class Journal(Struct, kw_only=True):
    """Finished work under the id of its pass (or of the task) and a name, with a hash of what it was done from.

    A value has reached the disk when `keep` returns, and its consequences follow afterwards: a process that dies leaves
    work undone or done, and done work is only published again.
    """

    session: Session
    recorder: RunRecorder
    budget: Budget
    hints: Hints
    interrupts: Interrupts
    behind: bool
    """Whether all that was asked for so far had been done before this process began."""

    def entry(
        self, owner: str, name: str, kind: type[ValueT], inputs: Sequence[str] = ()
    ) -> "JournalEntry[ValueT]":
        """The entry for a piece of work, with its value if it was done before from the same inputs."""
        digest = hashlib.sha256(json.dumps(list(inputs)).encode()).hexdigest()
        kept = self._saved_state(owner, name)
        value = _decode_value(kept, kind) if kept is not None and kept["inputs"] == digest else None
        return JournalEntry(self, owner, name, digest, value)

    def newest(self, owner: str, name: str, kind: type[ValueT]) -> ValueT | None:
        """The value that was stored last, from any inputs; None if there is none, or another version of the program
        stored it.
        """
        kept = self._saved_state(owner, name)
        return None if kept is None else _decode_value(kept, kind)

    def has(self, owner: str, name: str) -> bool:
        """Whether any value is stored there, from any inputs."""
        return self._saved_state(owner, name) is not None

    def carry_out(
        self, header: PassHeader, inputs: Sequence[str], make: Callable[[], PassEnd], *, must_fit: bool = True
    ) -> PassEnd:
        """How a planning pass ended, before this process began or, by `make`, now. Unless it `must_fit`, a prompt that does
        not fit ends only the pass; a resumed run tries it again, since its window may be larger then. A pass that made no
        plan is done again if the user has added a hint.
        """
        entry = self.entry(header.pass_id, PASS, PassEnd, inputs)
        known = entry.value
        failed = known is not None and known.plan is None and not known.success
        if failed and self.hints.new_to(header.pass_id):
            entry.value = None  # what the user has added since may help
        current = self.open_pass(header, entry)
        try:
            end = entry.value or entry.keep(make())
        except WindowExceeded as error:
            if must_fit:
                raise
            self.recorder.note(f"{error.message} ({error.hint})")
            end = PassEnd(success=False, detail=error.message)
        current.close(end)
        return end

    def open_pass(self, header: PassHeader, entry: "JournalEntry[Any]") -> "Pass":
        """A pass that has begun, to be closed by the caller. It is the first to be shown the hints that are due."""
        known = entry.value is not None
        for text in self.hints.begin(header.pass_id, known=known):
            self.recorder.event(header.pass_id, EventKind.HINT_SHOWN, text)
        row_id = self.recorder.open_pass(header, known=known)
        return Pass(journal=self, header=header, row_id=row_id, known=known, began=self.budget.seconds())

    def _saved_state(self, owner: str, name: str) -> dict[str, Any] | None:
        kept = self.session.for_pass(owner).get_state(STATE + name)
        return kept if isinstance(kept, dict) else None


class JournalEntry(Struct, Generic[ValueT]):
    """One piece of finished work, or the place for it."""

    journal: Journal
    owner: str
    name: str
    digest: str
    value: ValueT | None
    """None where the work was not done yet, was done from other inputs, or by a program that kept other things."""

    def keep(self, value: ValueT) -> ValueT:
        """The value, which is on disk: work was done for it."""
        self.journal.behind = False
        self._write_value(value)
        return value

    def note(self, value: ValueT) -> None:
        """The value is on disk; no work was done for it."""
        if self.value is None:
            self._write_value(value)

    def _write_value(self, value: ValueT) -> None:
        session, seconds = self.journal.session, self.journal.budget.seconds()
        done = {"format": FORMAT, "inputs": self.digest, "value": to_plain(value)}
        session.set_states({session.key_of(self.owner, STATE + self.name): done, SECONDS: seconds})
        self.value = value


class Pass(Struct, frozen=True, kw_only=True):
    """A pass that has begun."""

    journal: Journal
    header: PassHeader
    row_id: int
    known: bool
    """Whether it was done before this process began, and is only read back."""
    began: float
    """After so many seconds of the run."""

    def close(self, end: PassEnd) -> None:
        """Record how it ended, and notify the observer."""
        seconds = self.journal.budget.seconds() - self.began
        self.journal.recorder.close_pass(self.header, end, known=self.known, seconds=seconds)


def seconds_used(session: Session) -> float:
    """Seconds that earlier processes spent on the run."""
    kept = session.get_state(SECONDS)
    return float(kept) if isinstance(kept, int | float) else 0.0


def as_text(value: object) -> str:
    """The value as an input: the same text for the same value."""
    return json.dumps(to_plain(value), sort_keys=True)


def _decode_value(kept: dict[str, Any], kind: type[ValueT]) -> ValueT | None:
    if kept["format"] != FORMAT:
        return None
    try:
        return from_plain(kept["value"], kind)
    except ValueError:
        return None
