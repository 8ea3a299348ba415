"""The prompt for the places that a task changes."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.plans import ChangePointsAnswer, points_schema
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class ChangePointsInputs(Struct, frozen=True, kw_only=True):
    """The task with the code that it is about; texts may be empty."""

    context: SectionTexts
    others: tuple[str, ...]
    """Paths of files of which the context shows nothing."""
    evidence: str
    max_points: int
    task: str
    rejected: str
    """An earlier answer that had faults."""
    faults: tuple[str, ...]
    paths: tuple[str, ...] = ()
    """Of existing files, used only for the schema."""


EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young, and the quokka menu orders too few meals.", "points": ['
    '{"change": "Count the young quokkas too.", "file": "quokka_zoo/pen.py", "symbol": "count_quokkas"}, '
    '{"change": "Order two meals a day for each quokka.", "file": "quokka_zoo/menu.py", "symbol": "QuokkaMenu.order"}], '
    '"summary": "Feed the young quokkas too."}'
)

CHANGE_POINTS: Prompt[ChangePointsInputs, ChangePointsAnswer] = Prompt(
    name="change_points",
    role="reasoning",
    title="List the places that a task changes",
    system=SYSTEM,
    template=KNOWN + template(__file__, "change_points"),
    answer=JsonAnswer(ChangePointsAnswer),
    max_answer_tokens=1000,
    example=EXAMPLE,
    narrow=lambda schema, inputs: points_schema(schema, inputs.paths, inputs.max_points),
)
