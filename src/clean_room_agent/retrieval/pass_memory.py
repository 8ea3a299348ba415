"""What a retrieval leaves in the session for its pass, so that a refinement can start from it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from clean_room_agent.artifacts.context import ContextPackage, TaskQuery
from clean_room_agent.artifacts.names import attempts_up_to
from clean_room_agent.db.session import Session, States
from clean_room_agent.errors import RecordError
from clean_room_agent.retrieval.stage import Candidate, Selection, StageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutputs:
    """What the stages decided: enough to assemble the package again."""

    files: tuple[Candidate, ...]
    selections: tuple[Selection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """One finished retrieval."""

    pass_id: str
    query: TaskQuery
    outputs: StageOutputs
    package: ContextPackage


CHANGES = "to_change"
CHANGED: Final = TypeAdapter(tuple[tuple[str, str], ...])
QUERY: Final = TypeAdapter(TaskQuery)
OUTPUTS: Final = TypeAdapter(StageOutputs)
PACKAGE: Final = TypeAdapter(ContextPackage)


def remember_query(states: States, query: TaskQuery) -> None:
    """The understood task is kept."""
    states.set_state("task_query", QUERY.dump_python(query, mode="json"))


def remember_outputs(states: States, context: StageContext) -> None:
    """What the stages decided is kept."""
    outputs = StageOutputs(files=context.files, selections=context.selections)
    states.set_state("stage_outputs", OUTPUTS.dump_python(outputs, mode="json"))


def remember_package(states: States, package: ContextPackage) -> None:
    """The package is kept."""
    states.set_state("final_context", PACKAGE.dump_python(package, mode="json"))


def remember_changes(states: States, changes: Collection[tuple[str, str]]) -> None:
    """Path and name of the pieces that the pass judged to be changed are kept."""
    states.set_state(CHANGES, [list(change) for change in sorted(changes)])


def recall_changes(session: Session, task_id: str) -> frozenset[tuple[str, str]]:
    """What the task's planning passes judged to be changed."""
    keys = [key for key in session.list_keys(f"{task_id}:") if key.endswith(f"/{CHANGES}")]
    return frozenset(change for key in keys for change in CHANGED.validate_python(session.get_state(key)))


def recall(session: Session, pass_id: str) -> Remembered:
    """The retrieval of the pass, or else of the newest attempt before it (`…:retry_2`, `…:retry_1`, `…`).

    Raises:
        RecordError: none of them left a package in the session, or what is there cannot be read.
    """
    for earlier in reversed(attempts_up_to(pass_id)):
        states = session.for_pass(earlier)
        kept = {key: states.get_state(key) for key in ("task_query", "stage_outputs", "final_context")}
        if None in kept.values():
            continue
        try:
            return Remembered(
                pass_id=earlier,
                query=QUERY.validate_python(kept["task_query"]),
                outputs=OUTPUTS.validate_python(kept["stage_outputs"]),
                package=PACKAGE.validate_python(kept["final_context"]),
            )
        except ValidationError as exc:
            raise RecordError(f"the session's context of pass {earlier} cannot be read: {exc}") from exc
    raise RecordError(
        f"the session holds no context for pass {pass_id}", hint="retrieve it before it is refined"
    )
