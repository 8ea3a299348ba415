"""What a run has finished: kept in its session, so that a resumed run takes it from there and does nothing twice."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from clean_room_agent.db.session import Session

ValueT = TypeVar("ValueT")

FORMAT = 1
"""Goes up when what is kept changes its meaning, so that an older program's notes are not taken for ours."""
SECONDS = "seconds_used"
STATE = "done:"
"""Begins the keys."""


class Journal:
    """Finished work under the id of its pass (or of the task) and a name, with a hash of what it was done from.

    What is kept has reached the disk when `keep` returns, and whatever follows from it is done afterwards: a process that
    dies leaves work undone or done, and done work is only published again.
    """

    def __init__(self, session: Session, *, resumed: bool, seconds: Callable[[], float]) -> None:
        """`seconds` is what the run has taken so far, earlier processes included."""
        self._session = session
        self._seconds = seconds
        self.behind = resumed
        """Whether all that was asked for so far had been done before this process began."""

    def once(
        self,
        owner: str,
        name: str,
        kind: type[ValueT],
        make: Callable[[], ValueT],
        inputs: Sequence[str] = (),
    ) -> ValueT:
        """What was made from these inputs, now or before."""
        known = self.recall(owner, name, kind, inputs)
        return self.keep(owner, name, kind, make(), inputs) if known is None else known

    def recall(self, owner: str, name: str, kind: type[ValueT], inputs: Sequence[str] = ()) -> ValueT | None:
        """What was kept; None where nothing was, or from other inputs, or by a program that kept other things."""
        kept = self._session.for_pass(owner).get_state(STATE + name)
        if not isinstance(kept, dict) or kept["inputs"] != _digest(inputs):
            return None
        return self.newest(owner, name, kind)

    def newest(self, owner: str, name: str, kind: type[ValueT]) -> ValueT | None:
        """What was kept last, from whatever inputs; None where nothing was, or by a program that kept other things."""
        kept = self._session.for_pass(owner).get_state(STATE + name)
        if not isinstance(kept, dict) or kept["format"] != FORMAT:
            return None
        try:
            return cast("ValueT", _adapter(kind).validate_python(kept["value"]))
        except ValidationError:
            return None

    def keep(
        self, owner: str, name: str, kind: type[ValueT], value: ValueT, inputs: Sequence[str] = ()
    ) -> ValueT:
        """The value, which is on disk."""
        self.behind = False
        plain = _adapter(kind).dump_python(value, mode="json")
        states = self._session.for_pass(owner)
        states.set_state(STATE + name, {"format": FORMAT, "inputs": _digest(inputs), "value": plain})
        self._session.set_state(SECONDS, self._seconds())
        return value

    def note(
        self, owner: str, name: str, kind: type[ValueT], value: ValueT, inputs: Sequence[str] = ()
    ) -> None:
        """The value is on disk; no work was done for it."""
        if self.recall(owner, name, kind, inputs) is None:
            behind = self.behind
            self.keep(owner, name, kind, value, inputs)
            self.behind = behind

    def has(self, owner: str, name: str) -> bool:
        """Whether anything is kept there, from whatever inputs."""
        return self._session.for_pass(owner).get_state(STATE + name) is not None


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
"""One is dear to make."""


def seconds_used(session: Session) -> float:
    """What earlier processes have taken for the run."""
    kept = session.get_state(SECONDS)
    return float(kept) if isinstance(kept, int | float) else 0.0


def as_text(value: object) -> str:
    """The value as an input: the same text for the same value."""
    return json.dumps(_adapter(type(value)).dump_python(value, mode="json"), sort_keys=True)


def _digest(inputs: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(inputs)).encode()).hexdigest()


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
