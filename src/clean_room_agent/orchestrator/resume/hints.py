"""What the user says to a run that goes on: words that every pass from then on is shown beside the task's own."""

from dataclasses import dataclass

from clean_room_agent.artifacts.ids import relative_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One hint; `since` is the first pass that was shown it, relative to the task, "" while none was."""

    text: str
    since: str = ""


class Hints:
    """The hints of a run, in the order in which they were given."""

    def __init__(self, hints: tuple[Hint, ...] = ()) -> None:
        self._waiting = list(hints)
        self._active: list[Hint] = []

    def begin(self, pass_id: str, *, known: bool) -> tuple[str, ...]:
        """The hints that are shown from this pass on and have not been to any; a `known` pass was done without them."""
        new = tuple(hint for hint in self._waiting if not hint.since and not known)
        due = [hint for hint in self._waiting if hint.since == relative_pass(pass_id) or hint in new]
        self._waiting = [hint for hint in self._waiting if hint not in due]
        self._active += due
        return tuple(hint.text for hint in new)

    def by(self, pass_id: str) -> int:
        """How many hints this pass would be shown, were it to begin next."""
        return len(self._active) + sum(hint.since in {"", relative_pass(pass_id)} for hint in self._waiting)

    def with_task(self, task: str) -> str:
        """The task's words, and what was said since."""
        said = "".join(f"\n\nThe user has added since: {hint.text}" for hint in self._active)
        return task + said
