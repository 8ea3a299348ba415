"""What a prompt is: one model task with its inputs, its text and the way its answer is read."""

import functools
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Generic, TypeVar

from clean_room_agent.artifacts.tasks import Role
from clean_room_agent.llm.answers import AnswerReader, AnswerT, BadAnswer, JsonSchema, TokenChoice

if TYPE_CHECKING:
    import jinja2
    from _typeshed import DataclassInstance

InputsT = TypeVar("InputsT", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Generic[InputsT, AnswerT]):
    """A model task. Its name is its call type in the record, its key in `[models.overrides]`, its adapter's name."""

    name: str
    role: Role
    title: str
    """The first line of the rendered text; constant, so that a server's prefix cache holds it."""
    system: str
    template: str
    """jinja2 over the fields of the inputs, and `schema` (the answer's JSON schema, or "") and `example`.
    Rules first, then what calls share, the question last. An undefined variable raises.
    """
    answer: AnswerReader[AnswerT]
    max_answer_tokens: int
    example: str
    """An answer that parses."""

    def render(self, inputs: InputsT) -> str:
        """The user message: `# title`, then the filled template, without white space at its end."""
        values: dict[str, object] = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
        schema = "" if self.schema is None else json.dumps(self.schema, separators=(",", ":"))
        body = _compiled(self.template).render(values, schema=schema, example=self.example)
        return f"# {self.title}\n\n{body.strip()}"

    def parse(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT | BadAnswer:
        """The answer's value, or what is wrong with it."""
        return self.answer.read(text, tokens)

    @property
    def schema(self) -> JsonSchema | None:
        """What the server holds the answer to; None for free text."""
        return self.answer.schema


@functools.cache
def _compiled(template: str) -> "jinja2.Template":
    import jinja2  # noqa: PLC0415 - 40 ms, which a command that asks no model must not pay

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - prompts are plain text; escaping would falsify shown code
    )
    return environment.from_string(template)
