"""Prompts: one model task each, with its inputs, its text, and how its answer is read."""

import functools
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, structs

from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.names import quoted
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    listed,
    sourced,
    stripped,
)
from clean_room_agent.llm.answer_rules import (
    COPIED,
    MARK,
    JsonSchema,
    describe,
    mentions,
    opening_of,
    without_copies,
)
from clean_room_agent.llm.answers import (
    YES_NO_TOKENS,
    YES_OR_NO,
    AnswerReader,
    AnswerT,
    Choice,
    ParseFault,
    TokenChoice,
)

INSTRUCTIONS = "# Instructions: "
"""Begins the one line of a prompt that holds its title."""
SYSTEM = (
    "You are a precise assistant for programmers. You are given what is known about a task, then instructions. You do "
    "what the instructions say, and answer in the form that they ask for, with nothing around it."
)
"""The system text of the prompts of a run: one for all, because whatever follows another one is in no prefix cache."""
CONTEXT = "# Context\n\n## Task\n"
"""How what is known about a task begins."""
SHOWN_NOW = "## What the tests show now\n"
KNOWN = f"""\
{CONTEXT}{{{{ task.strip() | task }}}}
{{% if evidence %}}

{SHOWN_NOW}{{{{ evidence | evidence }}}}
{{% endif %}}
"""
"""With this begins the template of each prompt that knows what the tests show: the same bytes all through a run."""

EARLIER = frozenset((PromptSource.ATTEMPT, PromptSource.REFUSED))
"""Lines of earlier answers."""

if TYPE_CHECKING:
    import jinja2

InputsT = TypeVar("InputsT", bound=Struct)


class Shape(NamedTuple):
    """The form that a server is asked to hold an answer to."""

    schema: JsonSchema | None
    grammar: str = ""
    """In GBNF, of free text; "" for none."""


class Prompt(Struct, Generic[InputsT, AnswerT], frozen=True, kw_only=True):
    """One kind of question. Its name is its call type in the record, its key in `[models.overrides]` and its adapter's name."""

    name: str
    role: Role
    title: str
    system: str
    template: str
    """jinja2 over the fields of the inputs, and `heading`, `schema` (the answer's JSON schema, or "") and `example`.
    First what is known about the task and other prompts of a run show too, in the same order (`KNOWN`); then the heading with
    the rules; the question last. An undefined variable raises. A name that the repository or
    its tests gave goes through the filter `line`, every text through the one that says where it comes from (see
    `prompt_environment`).
    """
    answer: AnswerReader[AnswerT]
    max_answer_tokens: int
    example: str
    """An answer that parses. Its names and sentences hold `answer_rules.MARK`."""
    narrow: Callable[[JsonSchema, InputsT], JsonSchema] | None = None
    """The answer's schema with the bounds that follow from the inputs."""
    grammar: Callable[[InputsT], str] | None = None
    """The grammar that free text must follow, in GBNF, in place of the answer's own; may be "" for some inputs."""
    editable: Callable[[InputsT], Collection[str]] | None = None
    """The files that the answer is about, and whose lines it may repeat; None if it is not watched for what it repeats."""

    def render(self, inputs: InputsT, *, example: str | None = None) -> SourcedText:
        """Fill in the template, without surrounding white space. `example` replaces the prompt's own."""
        values: dict[str, object] = structs.asdict(inputs)
        schema = "" if self.schema is None else json.dumps(self.schema, separators=(",", ":"))
        shown = sourced(self.example if example is None else example, PromptSource.EXAMPLE)
        pieces = _compile_template(self.template).generate(
            values, heading=self.heading, schema=schema, example=shown
        )
        return stripped(compose(pieces))

    def parse(self, text: str, tokens: tuple[TokenChoice, ...] = ()) -> AnswerT | ParseFault:
        """The answer's value, or what is wrong with it."""
        return self.answer.read(text, tokens)

    def read(
        self, text: str, tokens: tuple[TokenChoice, ...], *, asked: str
    ) -> tuple[AnswerT | ParseFault, str]:
        """The answer's value without what it copied from the example, and a description of that ("" for nothing).

        `asked`: the rendered prompt.
        """
        value = self.parse(text, tokens)
        if isinstance(value, ParseFault) or not self.tells_copies(asked):
            return value, ""
        kept, taken = without_copies(value)
        if not taken:
            return value, ""
        if kept is None:
            return ParseFault(kind="copied", fault=COPIED), ""
        return kept, f"left out, copied from the example: {describe(taken)}"

    def tells_copies(self, asked: str) -> bool:
        """Whether words of the example can only come from there, as the rest of the rendered prompt lacks them."""
        return not mentions(asked.replace(self.example, ""))

    def opening(self, asked: str) -> str:
        """How an answer that copies the example begins, without white space; "" if that cannot be told.

        Free text is a copy wherever it contains `MARK`; from an object's lists, what was copied is left out.
        """
        if not self.tells_copies(asked):
            return ""
        return MARK if self.schema is None else opening_of(self.example)

    def unasked(self, inputs: InputsT, asked: SourcedText) -> str:
        """What the rendered prompt shows besides what the answer is about and may repeat; "" if it is not watched."""
        if self.editable is None:
            return ""
        paths = self.editable(inputs)
        lines = asked.split("\n")
        for span in asked.spans:
            if span.source in EARLIER or (span.source is PromptSource.FILE and span.path in paths):
                lines[span.first - 1 : span.last] = [""] * (span.last - span.first + 1)
        return "\n".join(lines)

    def shape(self, inputs: InputsT) -> Shape:
        """The schema or grammar that the answer to these inputs must follow."""
        schema = self.schema
        if schema is not None and self.narrow is not None:
            schema = self.narrow(schema, inputs)
        return Shape(schema, self.answer.grammar if self.grammar is None else self.grammar(inputs))

    @property
    def heading(self) -> str:
        """The line where a prompt turns from what is known to what is to be done."""
        return f"{INSTRUCTIONS}{self.title}"

    @property
    def schema(self) -> JsonSchema | None:
        """The schema that an answer to any inputs must follow; None for free text."""
        return self.answer.schema


def yes_no_prompt(*, name: str, title: str, template: str) -> Prompt[InputsT, Choice]:
    """A question of a run that the classifier answers with yes or no."""
    return Prompt(
        name=name,
        role="classifier",
        title=title,
        system=SYSTEM,
        template=template,
        answer=YES_OR_NO,
        max_answer_tokens=YES_NO_TOKENS,
        example="yes",
    )


class Verbatim(Struct, frozen=True, kw_only=True):
    """The whole text of a prompt as it was once asked."""

    text: str


def verbatim(
    prompt: Prompt[Any, AnswerT], system: str, *, max_answer_tokens: int
) -> Prompt[Verbatim, AnswerT]:
    """The prompt, asked with texts that it once had, whatever its template says now."""
    return structs.replace(
        prompt,
        system=system,
        template="{{ text }}",
        narrow=None,
        grammar=None,
        editable=None,
        max_answer_tokens=max_answer_tokens,
    )


@functools.cache
def _compile_template(template: str) -> "jinja2.Template":
    return prompt_environment().from_string(template)


@functools.cache
def prompt_environment() -> "jinja2.Environment":
    """The Jinja environment for templates.

    Its filter `line` keeps a name on one line, so that it cannot write a heading; `listed` and `definition` do so for names
    of files and their pieces. A filter named after a `PromptSource` marks where a value comes from.
    """
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - prompts are plain text; escaping would falsify shown code
    )
    environment.filters["line"] = lambda name: quoted(str(name))
    environment.filters["listed"] = lambda name: listed(quoted(str(name)))
    environment.filters["definition"] = _definition_filter
    environment.filters |= {source.value: _source_filter(source) for source in PromptSource}
    return environment


def _definition_filter(name: object) -> SourcedText:
    """A definition listed as `name (path)`."""
    symbol, _, path = str(name).rpartition(" (")
    return sourced(quoted(str(name)), PromptSource.CANDIDATE, path=path.removesuffix(")"), symbol=symbol)


def _source_filter(source: PromptSource) -> Callable[..., SourcedText]:
    """The filter that marks a value as coming from this source."""

    def mark(value: object, *, path: str = "", symbol: str = "", number: int | None = None) -> SourcedText:
        return sourced(str(value), source, path=path, symbol=symbol, number=number)

    return mark


def template(module: str, name: str) -> str:
    """The text of the template `name`.j2 beside `module`."""
    return Path(module).with_name(f"{name}.j2").read_text(encoding="utf-8")
