"""The bodies of a step that has a scaffold: by one answer, else by one for each stub."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from clean_room_agent.artifacts.edits import PatchEdit, StepResult
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented, StepInstruction
from clean_room_agent.execute.scaffold import Stub, with_stubs
from clean_room_agent.execute.scaffold_room import reduced_room

Ask = Callable[[ContextPackage, StepInstruction, str], Implemented]
"""The answer to an instruction in a context, under an item's name ("" for the whole of the step)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A scaffold, as the coder is shown it."""

    room: ContextPackage
    texts: Mapping[str, str]
    """Its files, by path."""
    stubs: tuple[Stub, ...]


def write_bodies(
    ask: Ask, scaffold: Declared, instruction: StepInstruction, count: Callable[[str], int]
) -> Implemented:
    """Edits that write the stubs: all by one answer; where the window does not hold that prompt, or the answer is cut off, one
    by one, put together to one answer.

    Raises:
        WindowExceeded: the prompt of a single stub does not fit either.
    """
    try:
        whole = ask(scaffold.room, with_stubs(instruction, scaffold.stubs), "")
        if not whole.truncated or len(scaffold.stubs) == 1:
            return whole
    except WindowExceeded:
        if len(scaffold.stubs) == 1:
            raise
    parts: list[tuple[Stub, Implemented]] = []
    for stub in scaffold.stubs:
        part = _one(ask, scaffold, instruction, stub, count)
        parts.append((stub, part))
        if part.bad is not None:
            break
    return _joined(parts, scaffold)


def _one(
    ask: Ask,
    scaffold: Declared,
    instruction: StepInstruction,
    stub: Stub,
    count: Callable[[str], int],
) -> Implemented:
    """The answer for one stub, beside the others where the window holds them."""
    step = with_stubs(instruction, scaffold.stubs).step
    told = replace(instruction, step=step, stubs=(stub.name,))
    try:
        return ask(scaffold.room, told, stub.name)
    except WindowExceeded:
        return ask(reduced_room(scaffold.room, scaffold.texts, stub, count), told, stub.name)


def _joined(parts: list[tuple[Stub, Implemented]], scaffold: Declared) -> Implemented:
    """The answers as one; the last is the one that failed, if any did."""
    last = parts[-1][1]
    edits: dict[PatchEdit, None] = {}
    for stub, part in parts:
        others = {(one.path, one.symbol) for one in scaffold.stubs if one != stub}
        for edit in part.step.edits:
            rewrites = edit.kind == "create" and edit.file_path in scaffold.texts
            if not rewrites and (edit.kind != "symbol" or (edit.file_path, edit.symbol) not in others):
                edits.setdefault(replace(edit, answer_line=0))
    return replace(
        last,
        step=StepResult(
            success=last.step.success,
            edits=tuple(edits) if last.bad is None else (),
            error_info=last.step.error_info,
            raw_response="\n".join(part.step.raw_response for _, part in parts),
        ),
        dropped=tuple(name for _, part in parts for name in part.dropped),
        prompt_tokens=_sum(part.prompt_tokens for _, part in parts),
        completion_tokens=_sum(part.completion_tokens for _, part in parts),
        latency_ms=sum(part.latency_ms for _, part in parts),
        attempts=sum(part.attempts for _, part in parts),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum; None where one is not known."""
    known = tuple(counts)
    return None if None in known else sum(count or 0 for count in known)
