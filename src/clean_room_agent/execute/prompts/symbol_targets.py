"""The prompt for the places that a part changes."""

from clean_room_agent.execute.prompts.plans import PartInputs, SymbolTargetsAnswer, targets_schema
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


class SymbolTargetsInputs(PartInputs, frozen=True, kw_only=True):
    """A part whose places are asked for."""

    known: tuple[str, ...]
    """The definitions that the context shows."""
    max_targets: int
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
