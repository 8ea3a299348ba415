"""The prompt for a scaffold: the declarations that a step adds."""

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.prompts.implement import StepInputs, edit_forms, read_edits
from clean_room_agent.llm.answers import TextAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class ScaffoldInputs(StepInputs, frozen=True, kw_only=True):
    """A step that adds much; its `symbols` are what the answer has to declare. Texts may be empty."""

    rejected: str
    """An earlier answer in the edit format; "" if there is none, or it was unreadable."""
    faults: tuple[str, ...]
    """What was wrong with it."""


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
    grammar=edit_forms,
)
