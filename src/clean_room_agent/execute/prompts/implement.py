"""The prompt for the edits of one step."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.format import Editable, edit_grammar, holds_tags
from clean_room_agent.execute.edits.parse import ParseFault, parse_edits
from clean_room_agent.llm.answers import BadAnswer, TextAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class FailedAttempt(Struct, frozen=True, kw_only=True):
    """An earlier attempt at the step, as the prompt shows it."""

    number: int
    edits: str
    """In the edit format; "" if there were none."""
    feedback: str


class StepInputs(Struct, frozen=True, kw_only=True):
    """A step with the code that it is about, as every prompt for its code shows it; texts may be empty."""

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
    edited: tuple[Editable, ...] = ()
    """The files that an answer may edit: those that the step names or the context shows. This and the fields below are
    used only for the grammar.
    """
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class ImplementInputs(StepInputs, frozen=True, kw_only=True):
    """A step whose edits are asked for; texts may be empty."""

    unshown: tuple[str, ...]
    """What the step names but the prompt has no space for."""
    failures: tuple[FailedAttempt, ...]
    """Oldest first. Of all but the newest, only the feedback is shown, which is one line."""
    hint: str
    stubs: tuple[str, ...] = ()
    """Functions that are stubs in the code shown and have to be written."""
    apart: bool = False
    """Whether nothing else is to be written."""


def edit_forms(inputs: StepInputs) -> str:
    """The grammar that constrains the answer; "" if the code has lines that look like the edit format."""
    shown = (inputs.context.code, inputs.context.tests, inputs.task, inputs.step)
    return "" if any(map(holds_tags, shown)) else edit_grammar(inputs.edited, inputs.created, inputs.deleted)


def read_edits(text: str) -> tuple[PatchEdit, ...] | BadAnswer:
    """The answer's edits, at least one, or why there are none."""
    read = parse_edits(text)
    return BadAnswer(kind=read.kind, fault=read.fault) if isinstance(read, ParseFault) else read


EXAMPLE = """\
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
    answer=TextAnswer(read_edits),
    max_answer_tokens=4096,
    example=EXAMPLE,
    grammar=edit_forms,
)
