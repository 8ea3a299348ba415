"""Scaffolds: a step that creates files of code may begin with only what they declare, and its bodies come after that.

A scaffold is the new files without their bodies: imports, signatures and docstrings, each body a stub
(`edits/stubs.py`). The bodies are asked for in one answer, or else in one answer each.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage
from clean_room_agent.artifacts.edits import PatchEdit, StepResult, Stub
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.parse import parse_edits
from clean_room_agent.execute.edits.stubs import scaffold_faults, stub_names
from clean_room_agent.execute.implement import (
    Implemented,
    StepInputs,
    StepInstruction,
    answer_bound,
    edit_forms,
    editable_files,
    editable_paths,
    implemented,
    step_inputs,
)
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit
from clean_room_agent.llm.answers import TextAnswer
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template
from clean_room_agent.paths import is_test_path
from clean_room_agent.syntax import grammar_of, nodes_of

PACKAGE_FILE = "__init__.py"
"""Holds imports, and hardly ever a function."""
WRITTEN_APART = "These functions are written apart; do what else the step asks for:"
"""The beginning of the hint in the prompt for everything that is not a stub."""
FRAME_TOKENS = 12
Ask = Callable[[StepInstruction, str], Implemented]
"""Answers an instruction under an item's name ("" for the whole step)."""


SCAFFOLD: Prompt[StepInputs, tuple[PatchEdit, ...]] = Prompt(
    name="scaffold",
    role="coding",
    title="Declare what one step adds",
    system=SYSTEM,
    template=KNOWN + template(__file__, "scaffold"),
    answer=TextAnswer(parse_edits),
    max_answer_tokens=4096,
    example='''\
<create file="quokka_zoo/food.py">
"""What the quokkas eat."""

from quokka_zoo.pen import QuokkaPen

MEALS_A_DAY = 2


class QuokkaMenu:
    """The meals of one pen."""

    def __init__(self, pen: QuokkaPen) -> None:
        """A menu without meals."""
        raise NotImplementedError

    def add(self, meal: str) -> int:
        """Adds a meal; how many there are then."""
        raise NotImplementedError
</create>
<insert file="quokka_zoo/pen.py" after="QuokkaPen.open">
    def close(self) -> None:
        """Shuts the gate."""
        raise NotImplementedError
</insert>''',
    grammar=edit_forms,
    editable=editable_paths,
)


def created_sources(step: PlanStep) -> tuple[str, ...]:
    """The files that the step creates and that may have bodies: code, but no tests, no package files, no declaration files."""
    if step.any_of_files:
        return ()
    paths = (target.path for target in step.target_files if target.role == "create")
    return tuple(
        path
        for path in paths
        if nodes_of(path).stubs
        and not path.endswith((".pyi", ".d.ts", ".d.mts", ".d.cts"))
        and not is_test_path(path)
        and PurePosixPath(path).name != PACKAGE_FILE
    )


def ask_scaffold(
    models: ModelClient,
    package: ContextPackage,
    instruction: StepInstruction,
    *,
    pass_id: str,
    answer_tokens: int,
    tag: str = "",
) -> Implemented:
    """The coder's declarations for the step, in one answer of at most so many tokens.

    Raises:
        WindowExceeded: the step and the primary items of the context do not fit the coder's window.
        ModelError: the server failed.
    """
    targets = instruction.step.target_files
    created = tuple(target.path for target in targets if target.role == "create")
    # Of a step that changes other files, too, nobody says which of its symbols are new.
    symbols = instruction.step.target_symbols if len(created) == len(targets) else ()

    def build(carried: PromptContents) -> StepInputs:
        return replace(
            step_inputs(instruction, carried),
            symbols=symbols,
            edited=editable_files(package, targets),
            created=created,
        )

    wanted = all_contents(package, instruction.diff)
    fitted = fit(models, SCAFFOLD, build, wanted, answer_tokens=answer_tokens)
    reply = models.ask(
        SCAFFOLD,
        fitted.inputs,
        pass_id=pass_id,
        repair=False,
        max_answer_tokens=min(answer_tokens, answer_bound(models, package, instruction, raised=False)),
        thinking_tokens=answer_tokens,
        tag=tag,
    )
    return implemented(reply, fitted.dropped)


def declaration_faults(step: PlanStep, texts: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong with the texts of the new files as a scaffold for the step."""
    faults = [f"{path} is not created" for path in created_sources(step) if path not in texts]
    for path, text in sorted(texts.items()):
        faults += scaffold_faults(path, text) if grammar_of(path) else ()
    if not faults and not stubs_of(texts):
        faults.append("it declares no function")
    return tuple(faults)


def stubs_of(texts: Mapping[str, str | None]) -> tuple[Stub, ...]:
    """The stubs in the texts."""
    return tuple(
        Stub(path=path, symbol=symbol)
        for path, text in sorted(texts.items())
        for symbol in stub_names(path, text or "")
    )


def scaffolded_package(
    package: ContextPackage, texts: Mapping[str, str], count: Callable[[str], int]
) -> ContextPackage:
    """The context with the scaffold's files, whole. `count` estimates the tokens of a text."""
    added = tuple(
        ContextItem(
            path=path,
            detail="primary",
            symbol=None,
            start_line=1,
            end_line=text.removesuffix("\n").count("\n") + 1,
            text=text,
            tier=0,
            score=1.0,
            reason="declared by the step's scaffold",
            tokens=count(text) + FRAME_TOKENS,
            content_hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        )
        for path, text in sorted(texts.items())
    )
    return replace(package, items=(*package.items, *added))


def with_stubs(instruction: StepInstruction, stubs: Collection[Stub]) -> StepInstruction:
    """The instruction that asks for the bodies of these stubs, whose files are now to be modified instead of created."""
    paths = {stub.path for stub in stubs}
    targets = tuple(
        TargetFile(path=target.path) if target.role == "create" and target.path in paths else target
        for target in instruction.step.target_files
    )
    step = instruction.step.model_copy(update={"target_files": targets})
    return replace(instruction, step=step, stubs=tuple(stub.name for stub in stubs))


def write_bodies(ask: Ask, stubs: tuple[Stub, ...], instruction: StepInstruction) -> Implemented:
    """Edits that write the stubs and do what else the step asks for, in one answer. If that prompt does not fit the
    window, or the answer is cut off, there is one answer for each stub and one for the rest, joined into one.

    Raises:
        WindowExceeded: a prompt for a part of it does not fit either.
    """
    whole = with_stubs(instruction, stubs)
    try:
        answer = ask(whole, "")
        if not answer.truncated or len(stubs) == 1:
            return answer
    except WindowExceeded:
        if len(stubs) == 1:
            raise
    parts: list[tuple[Stub | None, Implemented]] = []
    for stub in stubs:
        part = ask(replace(whole, stubs=(stub.name,), apart=True), stub.name)
        parts.append((stub, part))
        if part.bad is not None and not _is_empty(part):
            return _joined(parts, stubs)
    # What nothing was written for stays a stub, and the attempt is refused by its name; where that is all, by the answer.
    parts = [(stub, part) for stub, part in parts if not _is_empty(part)] or parts
    if any(target.role != "create" for target in instruction.step.target_files):
        written = f"{WRITTEN_APART} {', '.join(stub.name for stub in stubs)}."
        hint = "\n".join(filter(None, (instruction.hint, written)))
        rest = ask(replace(whole, stubs=(), hint=hint), "rest")
        parts += [] if _is_empty(rest) else [(None, rest)]
    return _joined(parts, stubs)


def _is_empty(answer: Implemented) -> bool:
    """Whether the coder wrote no edit."""
    return answer.bad is not None and answer.bad.kind == "empty"


def _joined(parts: list[tuple[Stub | None, Implemented]], stubs: tuple[Stub, ...]) -> Implemented:
    """The answers as one; the last is the one that failed, if any did. Edits in one answer that write another's stub
    are left out.
    """
    last = parts[-1][1]
    files = {stub.path for stub in stubs}
    edits: dict[PatchEdit, None] = {}
    for stub, part in parts:
        others = {(other.path, other.symbol) for other in stubs if other != stub}
        for edit in part.step.edits:
            rewrites = edit.kind == "create" and edit.file_path in files
            if not rewrites and (edit.kind != "symbol" or (edit.file_path, edit.symbol) not in others):
                edits.setdefault(replace(edit, answer_line=0))
    every = [part for _, part in parts]
    return replace(
        last,
        step=StepResult(
            success=last.step.success,
            edits=tuple(edits) if last.bad is None else (),
            error_info=last.step.error_info,
            raw_response="\n".join(part.step.raw_response for part in every),
        ),
        dropped=tuple(name for part in every for name in part.dropped),
    )
