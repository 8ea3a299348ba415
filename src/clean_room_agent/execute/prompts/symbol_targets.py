"""The prompt for the places that a part changes."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.plans import SymbolTargetsAnswer, targets_schema
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class SymbolTargetsInputs(Struct, frozen=True, kw_only=True):
    """One part of the task with the code that it is about; texts may be empty."""

    context: SectionTexts
    others: tuple[str, ...]
    """Paths of files of which the context shows nothing."""
    diff: str
    """What the run has changed so far."""
    evidence: str
    task: str
    goal: str
    """The whole plan in a sentence; "" if it adds nothing to the task."""
    part: str
    files: tuple[str, ...]
    """Named by the part."""
    known: tuple[str, ...]
    """The definitions that the context shows."""
    max_targets: int
    rejected: str
    faults: tuple[str, ...]
    paths: tuple[str, ...] = ()
    """Of existing files, used only for the schema."""


EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "targets": ['
    '{"file": "quokka_zoo/pen.py", "role": "modify", "symbol": "count_quokkas"}, '
    '{"file": "quokka_zoo/menu.py", "role": "modify", "symbol": "QuokkaMenu.order"}]}'
)

SYMBOL_TARGETS: Prompt[SymbolTargetsInputs, SymbolTargetsAnswer] = Prompt(
    name="symbol_targets",
    role="reasoning",
    title="List the places that a part of a task changes",
    system=SYSTEM,
    template=KNOWN + template(__file__, "symbol_targets"),
    answer=JsonAnswer(SymbolTargetsAnswer),
    max_answer_tokens=800,
    example=EXAMPLE,
    narrow=lambda schema, inputs: targets_schema(schema, inputs.paths, inputs.max_targets),
)
