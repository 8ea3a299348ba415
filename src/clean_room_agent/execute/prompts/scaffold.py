"""The prompt for a scaffold: the declarations that a step adds."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.format import Editable, edit_grammar, holds_tags
from clean_room_agent.execute.prompts.implement import read_edits
from clean_room_agent.llm.answers import TextAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class ScaffoldInputs(Struct, frozen=True, kw_only=True):
    """A step that adds much, with the code that it is about; texts may be empty."""

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
    """Like "create src/a.py"."""
    symbols: tuple[str, ...]
    """What the step names and the answer has to declare, like "Parser.parse"."""
    rejected: str
    """An earlier answer in the edit format; "" if there is none, or it was unreadable."""
    faults: tuple[str, ...]
    """What was wrong with it."""
    edited: tuple[Editable, ...] = ()
    """The files that an answer may edit. This and the fields below are used only for the grammar."""
    created: tuple[str, ...] = ()


def declaration_forms(inputs: ScaffoldInputs) -> str:
    """The grammar that constrains the answer; "" if the code has lines that look like the edit format."""
    shown = (inputs.context.code, inputs.context.tests, inputs.task, inputs.step)
    return "" if any(map(holds_tags, shown)) else edit_grammar(inputs.edited, inputs.created)


EXAMPLE = '''\
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
    example=EXAMPLE,
    grammar=declaration_forms,
)
