"""Scaffolds: which steps begin with only declarations, the prompt that asks for them, and what counts as one.

A scaffold is what a step adds without its bodies: imports, signatures and docstrings, each body a stub
(`edits/stubs.py`). Nothing is applied here; `scaffold_bodies.py` asks for the bodies.
"""

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import PatchEdit, Stub
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.execute.edits.parse import render_edit
from clean_room_agent.execute.edits.stubs import declared_names, scaffold_faults, stub_names
from clean_room_agent.execute.implement import (
    Implemented,
    StepInputs,
    StepInstruction,
    answer_bound,
    edit_forms,
    editable_files,
    editable_paths,
    implemented,
    read_edits,
    step_inputs,
)
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit
from clean_room_agent.llm.answers import TextAnswer
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template
from clean_room_agent.paths import is_test_path
from clean_room_agent.syntax import grammar_of

PACKAGE_FILE = "__init__.py"
"""Holds imports, and hardly ever a function."""


class ScaffoldInputs(StepInputs, frozen=True, kw_only=True):
    """A step that adds much; its `symbols` are what the answer has to declare. Texts may be empty."""

    rejected: str
    """An earlier answer in the edit format; "" if there is none, or it was unreadable."""
    faults: tuple[str, ...]
    """What was wrong with it."""


SCAFFOLD_EXAMPLE = '''\
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
</insert>'''

SCAFFOLD: Prompt[ScaffoldInputs, tuple[PatchEdit, ...]] = Prompt(
    name="scaffold",
    role="coding",
    title="Declare what one step adds",
    system=SYSTEM,
    template=KNOWN + template(__file__, "scaffold"),
    answer=TextAnswer(read_edits),
    max_answer_tokens=4096,
    example=SCAFFOLD_EXAMPLE,
    grammar=edit_forms,
    editable=editable_paths,
)


class RefusedScaffold(Struct, frozen=True, kw_only=True):
    """An earlier answer, and what was wrong with it; both empty for the first."""

    edits: tuple[PatchEdit, ...] = ()
    faults: tuple[str, ...] = ()


def created_sources(step: PlanStep) -> tuple[str, ...]:
    """The code files that the step creates: no tests, no package files, and only languages with a grammar."""
    return tuple(
        target.path
        for target in step.target_files
        if target.role == "create"
        and _is_code(target.path)
        and not is_test_path(target.path)
        and PurePosixPath(target.path).name != PACKAGE_FILE
    )


def new_symbols(step: PlanStep, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The symbols that the step names and none of its files declares; `texts` are the existing files, by path."""
    return tuple(symbol for symbol in step.target_symbols if not _is_declared(symbol, texts))


def why_scaffold(step: PlanStep, new: Collection[str], *, least: int) -> str:
    """Why the step begins with a scaffold, in words: it creates a file of code, or names `least` new symbols; "" for a step
    that does not.
    """
    if step.any_of_files:
        return ""
    created = created_sources(step)
    if created:
        return f"it creates {', '.join(created)}"
    has_code = any(target.role == "modify" and _is_code(target.path) for target in step.target_files)
    return f"it names {len(new)} new symbols" if has_code and len(new) >= least else ""


def _is_declared(symbol: str, texts: Mapping[str, str]) -> bool:
    """Whether one of the files declares it, by its qualified name or the end of one."""
    names = (name for path, text in texts.items() for name in declared_names(path, text))
    return any(name == symbol or name.endswith(f".{symbol}") for name in names)


def _is_code(path: str) -> bool:
    """Whether the file may have bodies: declaration files have none."""
    return grammar_of(path) is not None and not path.endswith((".pyi", ".d.ts", ".d.mts", ".d.cts"))


def ask_scaffold(
    models: ModelClient,
    package: ContextPackage,
    instruction: StepInstruction,
    *,
    new: tuple[str, ...],
    refused: RefusedScaffold,
    pass_id: str,
    answer_tokens: int,
    tag: str = "",
) -> Implemented:
    """The coder's declarations for the step, in one answer of at most so many tokens; a `refused` answer is shown with
    its faults.

    Raises:
        WindowExceeded: the step and the primary items of the context do not fit the coder's window.
        ModelError: the server failed.
    """

    def build(carried: PromptContents) -> ScaffoldInputs:
        said = step_inputs(instruction, carried)
        return ScaffoldInputs(
            context=said.context,
            diff=said.diff,
            evidence=said.evidence,
            task=said.task,
            part=said.part,
            constraints=said.constraints,
            step=said.step,
            targets=said.targets,
            symbols=new,
            rejected=carried.rejected,
            faults=refused.faults,
            edited=editable_files(package, targets),
            created=tuple(target.path for target in targets if target.role == "create"),
        )

    targets = instruction.step.target_files
    rejected = "".join(map(render_edit, refused.edits)).rstrip("\n")
    wanted = all_contents(package, instruction.diff, rejected=rejected)
    fitted = fit(models, SCAFFOLD, build, wanted, answer_tokens=answer_tokens)
    reply = models.ask(
        SCAFFOLD,
        fitted.inputs,
        pass_id=pass_id,
        repair=False,
        sampling=models.warm_sampling() if refused.faults and not refused.edits else None,
        max_answer_tokens=min(
            answer_tokens, answer_bound(models, package, instruction, raised=bool(refused.faults))
        ),
        thinking_tokens=answer_tokens,
        tag=tag,
    )
    return implemented(reply, fitted.dropped)


def faults_of(
    step: PlanStep, new: Collection[str], before: Mapping[str, str], after: Mapping[str, str | None]
) -> tuple[str, ...]:
    """What is wrong with the texts of the changed files (`after`) as a scaffold for the step; see also `scaffold_faults`."""
    faults = [f"{path} must not be deleted" for path, text in after.items() if text is None]
    texts = {path: text for path, text in after.items() if text is not None}
    for path, text in sorted(texts.items()):
        if grammar_of(path) is None:
            faults.append(f"{path} holds no declarations")
        else:
            faults += scaffold_faults(path, before.get(path, ""), text)
    faults += [f"{path} is not created" for path in created_sources(step) if path not in texts]
    faults += [f"{symbol} is not declared" for symbol in new if not _is_declared(symbol, texts)]
    if not faults and not stubs_of(before, texts):
        faults.append("it declares no function")
    return tuple(faults)


def stubs_of(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Stub, ...]:
    """The stubs in `after` that `before` does not have."""
    return tuple(
        Stub(path=path, symbol=symbol)
        for path, text in sorted(after.items())
        for symbol in stub_names(path, text)
        if symbol not in stub_names(path, before.get(path, ""))
    )


def unwritten(stubs: Collection[Stub], texts: Mapping[str, str | None]) -> tuple[Stub, ...]:
    """The stubs that are still stubs in `texts`."""
    left = {path: stub_names(path, text or "") for path, text in texts.items()}
    return tuple(stub for stub in stubs if stub.symbol in left.get(stub.path, ()))


def after_scaffold(step: PlanStep, paths: Collection[str]) -> PlanStep:
    """The step once the scaffold has created `paths`: these files are now to be modified instead of created."""
    targets = tuple(
        TargetFile(path=target.path) if target.role == "create" and target.path in paths else target
        for target in step.target_files
    )
    return step.model_copy(update={"target_files": targets})


def with_stubs(instruction: StepInstruction, stubs: Collection[Stub]) -> StepInstruction:
    """The instruction that asks for the bodies of these stubs."""
    paths = {stub.path for stub in stubs}
    return replace(
        instruction,
        step=after_scaffold(instruction.step, paths),
        stubs=tuple(stub.name for stub in stubs),
    )
