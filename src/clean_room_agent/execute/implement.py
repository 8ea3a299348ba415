"""Asks the coder for the edits of a step: the prompt, the question, and the edits in the answer. Nothing is applied here."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, SectionTexts
from clean_room_agent.artifacts.edits import PatchEdit, StepResult
from clean_room_agent.artifacts.names import quoted
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.format import Editable, edit_grammar, holds_tags
from clean_room_agent.execute.edits.parse import parse_edits, render_edit
from clean_room_agent.execute.prompt_fitting import PromptContents, Retry, all_contents, fit
from clean_room_agent.llm.answers import ParseFault, TextAnswer
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template
from clean_room_agent.llm.router import Window
from clean_room_agent.llm.transport import Sampling

MIN_ANSWER_TOKENS = 512
MAX_ANSWER_TOKENS = 8192
KEPT_ANSWER_TOKENS = 4096
"""At most so many tokens are reserved for the answer; it may also use what else is free."""
CODE_TIMES, OTHER_TOKENS = 2, 400
"""An edit quotes the code to find it, and writes it anew; and it has marks, and lines of its own."""
SYMBOL_TOKENS = 400
"""For each definition that is new, a stub, or not shown."""
CREATED_TOKENS = 4096
"""For each file that is created."""
RAISED_TIMES = 3
REPAIR_TOKENS = 800
"""Left free, so that a faulty answer can be quoted in a repair."""

MAX_WHY = 240
"""Characters that describe an attempt other than the newest."""
RAISED_SHARE = 3
TOKENS_PER_LINE = 14
"""Of code, an upper estimate."""
WHOLE_SYMBOLS = (
    "Write each function, method or class that you change whole: <edit> with symbol=, without a search text."
)


class ImplementInputs(Struct, frozen=True, kw_only=True):
    """A step whose edits are asked for, with the code that it is about; texts may be empty."""

    context: SectionTexts
    diff: str
    """What the run has changed so far; the context shows the files after it."""
    evidence: str
    """What the tests show before the step."""
    task: str
    part: str
    constraints: str
    step: str
    targets: tuple[str, ...]
    """Like "modify src/a.py"."""
    symbols: tuple[str, ...]
    unshown: tuple[str, ...]
    """What the step names but the prompt has no space for."""
    failures: tuple[Retry, ...]
    """Oldest first. Of all but the newest, only the feedback is shown, which is one line."""
    hint: str
    edited: tuple[Editable, ...] = ()
    """The files that an answer may edit: those that the step names or the context shows. This and the fields below are
    used only for the grammar.
    """
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def edit_forms(inputs: ImplementInputs) -> str:
    """The grammar that constrains the answer; "" if the code has lines that look like the edit format."""
    shown = (inputs.context.code, inputs.context.tests, inputs.task, inputs.step)
    return "" if any(map(holds_tags, shown)) else edit_grammar(inputs.edited, inputs.created, inputs.deleted)


def editable_paths(inputs: ImplementInputs) -> frozenset[str]:
    """The files whose lines an answer may repeat."""
    return frozenset(file.path for file in inputs.edited)


IMPLEMENT_EXAMPLE = """\
<edit file="quokka_zoo/pen.py">
<search>
    meals = len(quokkas)
    return meals
</search>
<replacement>
    meals = len(quokkas) * MEALS_A_DAY
    return meals
</replacement>
</edit>
<edit file="quokka_zoo/pen.py" symbol="QuokkaPen.open">
<replacement>
    def open(self):
        self.gate = "open"
        return self.gate
</replacement>
</edit>
<insert file="quokka_zoo/pen.py" after="QuokkaPen.open">
    def close(self):
        self.gate = "closed"
</insert>
<create file="quokka_zoo/food.py">
MEALS_A_DAY = 2
</create>
<delete file="quokka_zoo/old_food.py"/>"""

IMPLEMENT: Prompt[ImplementInputs, tuple[PatchEdit, ...]] = Prompt(
    name="implement",
    role="coding",
    title="Write the edits for one step",
    system=SYSTEM,
    template=KNOWN + template(__file__, "implement"),
    answer=TextAnswer(parse_edits),
    max_answer_tokens=4096,
    example=IMPLEMENT_EXAMPLE,
    grammar=edit_forms,
    editable=editable_paths,
)


class AttemptSummary(Struct, frozen=True, kw_only=True):
    """An earlier attempt at the step."""

    outcome: str
    why: str
    """In one line, for prompts in which it is no longer the newest."""
    edits: tuple[PatchEdit, ...] = ()
    feedback: str
    """What was refused, or which tests failed and how."""


class StepInstruction(Struct, frozen=True, kw_only=True):
    """What the coder is asked to do, apart from the context."""

    task: str
    """The user's words, unchanged."""
    part: str
    """The description of the part; "" where there is none."""
    step: PlanStep
    constraints: str = ""
    """What a user's plan says besides its steps."""
    diff: str = ""
    """What the run has changed so far."""
    evidence: str = ""
    """What the tests show before the step."""
    unshown: tuple[str, ...] = ()
    """What the step names but the context has no space for, like "src/a.py::parse"."""
    failures: tuple[AttemptSummary, ...] = ()
    """Earlier attempts at this step, oldest first."""
    hint: str = ""


class Implemented(Struct, frozen=True, kw_only=True):
    """What the coder answered. Figures are those of the last call."""

    step: StepResult
    bad: ParseFault | None
    """Why there are no edits; kind "empty": there was no edit block."""
    dropped: tuple[str, ...]
    """What did not fit the prompt, in the order in which it was dropped."""
    call_id: int
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int
    endless: bool = False
    """Whether no answer would have ended by itself (see `Reply.endless`)."""

    @property
    def truncated(self) -> bool:
        """Whether the answer ended too early, or a tag is not closed."""
        return self.bad is not None and self.bad.kind == "truncated"


def implement(
    models: ModelClient,
    package: ContextPackage,
    instruction: StepInstruction,
    *,
    pass_id: str,
    item: str = "",
    sampling: Sampling | None = None,
    max_answer_tokens: int | None = None,
    tag: str = "",
) -> Implemented:
    """The answer to one step, of the coder or of the model `tag`. `max_answer_tokens`, after an answer that was cut off,
    replaces the value derived from the window; `item` tells several answers of one pass apart. No answer is longer than
    `answer_bound`, unless the model thinks first.

    Raises:
        WindowExceeded: the step and the primary items of the context do not fit the coder's window.
        ModelError: the server failed.
    """
    kept = max_answer_tokens or usual_answer_tokens(models.window(IMPLEMENT))

    def build(carried: PromptContents) -> ImplementInputs:
        return replace(step_inputs(instruction, carried), edited=edited, created=created, deleted=deleted)

    targets = instruction.step.target_files
    edited = editable_files(package, targets)
    created = tuple(target.path for target in targets if target.role == "create")
    deleted = tuple(target.path for target in targets if target.role == "delete")
    wanted = all_contents(package, instruction.diff, _retries(instruction.failures))
    fitted = fit(models, IMPLEMENT, build, wanted, answer_tokens=kept)
    free = max_answer_tokens or max(kept, min(MAX_ANSWER_TOKENS, fitted.window - fitted.need - REPAIR_TOKENS))
    reply = models.ask(
        IMPLEMENT,
        fitted.inputs,
        pass_id=pass_id,
        item=item,
        sampling=sampling,
        max_answer_tokens=min(
            free, answer_bound(models, package, instruction, raised=bool(max_answer_tokens))
        ),
        thinking_tokens=free,
        tag=tag,
    )
    return implemented(reply, fitted.dropped)


def implemented(reply: Reply[tuple[PatchEdit, ...]], dropped: tuple[str, ...]) -> Implemented:
    """The reply as an answer to a step, with what did not fit its prompt."""
    fault = "" if reply.bad is None else reply.bad.fault
    return Implemented(
        step=StepResult(edits=reply.value or (), error_info=fault, raw_response=reply.text),
        bad=reply.bad,
        dropped=dropped,
        call_id=reply.call_id,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        latency_ms=reply.latency_ms,
        endless=reply.endless,
    )


def editable_files(package: ContextPackage, targets: Iterable[TargetFile]) -> tuple[Editable, ...]:
    """The step's existing files, then the others that the context shows whole or in part. Each has the definitions that
    the context shows of it; a file that it does not show may have any.
    """
    there = [target.path for target in targets if target.role != "create"]
    shown = [item.path for item in package.primary()]
    names: dict[str, list[str]] = defaultdict(list)
    for item in package.items:
        if item.symbol is not None:
            inside = (one.symbol for one in definitions(item.path, item.text) if item.detail == "primary")
            members = (name for name in inside if name.startswith(f"{item.symbol}."))
            names[item.path] += (item.symbol, *_enclosing_names(item.symbol), *members)
        elif item.detail == "primary":
            names[item.path] += [one.symbol for one in definitions(item.path, item.text)]
    return tuple(
        Editable(path=path, names=tuple(dict.fromkeys(names[path])) if path in names else None)
        for path in dict.fromkeys((*there, *shown))
    )


def _enclosing_names(symbol: str) -> Iterator[str]:
    """The qualified names that contain the symbol: for `A.B.c`, `A.B` and `A`."""
    while "." in symbol:
        symbol = symbol.rpartition(".")[0]
        yield symbol


def step_tokens(models: ModelClient, instruction: StepInstruction) -> int:
    """Tokens that the step's prompt and a usual answer need besides code, diff and earlier attempts."""
    inputs = step_inputs(instruction, PromptContents())
    return models.measure(IMPLEMENT, inputs) + usual_answer_tokens(models.window(IMPLEMENT))


def answer_bound(
    models: ModelClient, package: ContextPackage, instruction: StepInstruction, *, raised: bool
) -> int:
    """Tokens of the longest answer that the step can need: the code that may be edited twice, and some more; more for
    what is new; three times that if it was `raised` after an answer was cut off. No bound if the configuration has one.
    """
    if models.has_limit(IMPLEMENT):
        return MAX_ANSWER_TOKENS
    step = instruction.step
    code = sum(models.count(item.text, "coding") for item in package.primary())
    names = {name for file in editable_files(package, step.target_files) for name in file.names or ()}
    unknown = sum(
        not any(f".{name}".endswith(f".{symbol}") for name in names) for symbol in step.target_symbols
    )
    created = sum(target.role == "create" for target in step.target_files)
    symbols = unknown + len(instruction.unshown)
    tokens = CODE_TIMES * code + OTHER_TOKENS + SYMBOL_TOKENS * symbols + CREATED_TOKENS * created
    return RAISED_TIMES * tokens if raised else tokens


def usual_answer_tokens(window: Window) -> int:
    """Tokens that are reserved for an answer by default: half of the reserve, within bounds."""
    return min(max(window.reserved // 2, MIN_ANSWER_TOKENS), KEPT_ANSWER_TOKENS)


def raised_answer_tokens(window: Window) -> int:
    """Tokens for an answer after one was cut off: a third of the window, and never less than usual."""
    return max(window.context // RAISED_SHARE, usual_answer_tokens(window))


def lines_of_an_answer(window: Window, *, raised: bool) -> int:
    """How many lines of edits an answer can hold, for a planner: a low estimate, since lengths of lines vary."""
    return (raised_answer_tokens(window) if raised else usual_answer_tokens(window)) // TOKENS_PER_LINE


def answer_fingerprint(text: str) -> str:
    """Equal for answers with the same edits, whatever surrounds them; "" for an answer that is only white space."""
    if not text.strip():
        return ""
    read = parse_edits(text)
    if isinstance(read, tuple):
        content = json.dumps(
            [
                (edit.kind, edit.file_path, edit.symbol, edit.place, edit.search, edit.replacement)
                for edit in read
            ]
        )
    else:
        content = " ".join(text.split())
    return text_fingerprint(content)


def text_fingerprint(text: str) -> str:
    """Equal for equal texts; "" for none."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


def _unless_said(text: str, *others: str) -> str:
    """The text, or "" where one of the others says the same."""
    words = text.split()
    return "" if any(" ".join(words) in " ".join(other.split()) for other in others) else text


def _retries(failures: tuple[AttemptSummary, ...]) -> tuple[Retry, ...]:
    """The newest attempt with its edits and all that is known about it; the older ones in one line each."""
    older = tuple(
        Retry(number=number, edits="", feedback=f"{failure.outcome}: {_in_one_line(failure.why)}")
        for number, failure in enumerate(failures[:-1], 1)
    )
    newest = tuple(
        Retry(
            number=len(failures),
            edits="".join(map(render_edit, failure.edits)).rstrip("\n"),
            feedback=f"Result: {failure.outcome}. {failure.feedback}".rstrip(),
        )
        for failure in failures[-1:]
    )
    return older + newest


def _in_one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_WHY else f"{words[: MAX_WHY - 1]}…"


def step_inputs(instruction: StepInstruction, carried: PromptContents) -> ImplementInputs:
    """The inputs of the prompt: the step and the contents that fit; no file is named for the grammar yet."""
    step = instruction.step
    return ImplementInputs(
        context=carried.sections,
        diff=carried.diff,
        task=instruction.task,
        part=_unless_said(instruction.part, instruction.task, step.description),
        constraints=_unless_said(
            instruction.constraints, instruction.task, step.description, instruction.part
        ),
        evidence=instruction.evidence,
        step=step.description,
        targets=tuple(f"{target.role} {quoted(target.path)}" for target in step.target_files),
        symbols=step.target_symbols,
        unshown=instruction.unshown,
        failures=carried.retries,
        hint=instruction.hint,
    )
