"""Fills in a scaffold: the bodies of its stubs in one answer, or else in one answer each."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import PatchEdit, StepResult, Stub
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented, StepInstruction
from clean_room_agent.execute.scaffold import with_stubs
from clean_room_agent.execute.scaffold_context import reduced_package

WRITTEN_APART = "These functions are written apart; do what else the step asks for:"
"""The beginning of the hint in the prompt for everything that is not a stub."""
Ask = Callable[[ContextPackage, StepInstruction, str], Implemented]
"""Answers an instruction in a context, under an item's name ("" for the whole step)."""


class Declared(Struct, frozen=True, kw_only=True):
    """A scaffold, as the coder is shown it."""

    package: ContextPackage
    texts: Mapping[str, str]
    """Its files, by path."""
    stubs: tuple[Stub, ...]


def write_bodies(
    ask: Ask, scaffold: Declared, instruction: StepInstruction, count: Callable[[str], int]
) -> Implemented:
    """Edits that write the stubs and do what else the step asks for, in one answer. If that prompt does not fit the
    window, or the answer is cut off, there is one answer for each stub and one for the rest, joined into one.

    Raises:
        WindowExceeded: a prompt for a part of it does not fit either.
    """
    try:
        whole = ask(scaffold.package, with_stubs(instruction, scaffold.stubs), "")
        if not whole.truncated or len(scaffold.stubs) == 1:
            return whole
    except WindowExceeded:
        if len(scaffold.stubs) == 1:
            raise
    parts: list[tuple[Stub, Implemented]] = []
    for stub in scaffold.stubs:
        part = _one(ask, scaffold, instruction, stub, count)
        parts.append((stub, part))
        if part.bad is not None and not _is_empty(part):
            return _joined(parts, scaffold)
    # What nothing was written for stays a stub, and the attempt is refused by its name; where that is all, by the answer.
    parts = [(stub, part) for stub, part in parts if not _is_empty(part)] or parts
    rest = _rest(ask, scaffold, instruction)
    return _joined(parts, scaffold, rest)


def _rest(ask: Ask, scaffold: Declared, instruction: StepInstruction) -> Implemented | None:
    """The answer for what the step changes besides the stubs; None if the step only creates files, or there is nothing
    else to do.
    """
    if all(target.role == "create" for target in instruction.step.target_files):
        return None
    written = f"{WRITTEN_APART} {', '.join(stub.name for stub in scaffold.stubs)}."
    hint = "\n".join(filter(None, (instruction.hint, written)))
    told = replace(with_stubs(instruction, scaffold.stubs), stubs=(), hint=hint)
    answer = ask(scaffold.package, told, "rest")
    return None if _is_empty(answer) else answer


def _is_empty(answer: Implemented) -> bool:
    """Whether the coder wrote no edit."""
    return answer.bad is not None and answer.bad.kind == "empty"


def _one(
    ask: Ask,
    scaffold: Declared,
    instruction: StepInstruction,
    stub: Stub,
    count: Callable[[str], int],
) -> Implemented:
    """The answer for one stub, shown together with the others if they fit the window."""
    step = with_stubs(instruction, scaffold.stubs).step
    told = replace(instruction, step=step, stubs=(stub.name,), apart=True)
    try:
        return ask(scaffold.package, told, stub.name)
    except WindowExceeded:
        return ask(reduced_package(scaffold.package, scaffold.texts, stub, count), told, stub.name)


def _joined(
    parts: list[tuple[Stub, Implemented]], scaffold: Declared, rest: Implemented | None = None
) -> Implemented:
    """The answers as one; the last is the one that failed, if any did. Edits in one answer that write another's stub
    are left out.
    """
    answers: list[tuple[Stub | None, Implemented]] = [*parts]
    if rest is not None:
        answers.append((None, rest))
    last = answers[-1][1]
    edits: dict[PatchEdit, None] = {}
    for stub, part in answers:
        others = {(one.path, one.symbol) for one in scaffold.stubs if one != stub}
        for edit in part.step.edits:
            rewrites = edit.kind == "create" and edit.file_path in scaffold.texts
            if not rewrites and (edit.kind != "symbol" or (edit.file_path, edit.symbol) not in others):
                edits.setdefault(replace(edit, answer_line=0))
    every = [part for _, part in answers]
    return replace(
        last,
        step=StepResult(
            success=last.step.success,
            edits=tuple(edits) if last.bad is None else (),
            error_info=last.step.error_info,
            raw_response="\n".join(part.step.raw_response for part in every),
        ),
        dropped=tuple(name for part in every for name in part.dropped),
        prompt_tokens=_sum(part.prompt_tokens for part in every),
        completion_tokens=_sum(part.completion_tokens for part in every),
        latency_ms=sum(part.latency_ms for part in every),
        attempts=sum(part.attempts for part in every),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one is unknown."""
    known = tuple(counts)
    return None if None in known else sum(count or 0 for count in known)
