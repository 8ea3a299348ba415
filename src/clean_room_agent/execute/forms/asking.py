"""What the forms that ask in words show of a place: at most 1,500 tokens, the least important left out first."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from clean_room_agent.artifacts.goals import GoalTest
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    joined,
    sourced,
    without_line_end,
)
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.form_prompts import FormInputs
from clean_room_agent.execute.forms.place import (
    Assignment,
    Parsed,
    Place,
    Row,
    Shown,
    indent_of,
    line_at,
    node_text,
    shown,
    walk,
)
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.token_estimator import estimate
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.syntax import grammar_of

PROMPT_TOKENS = 1500
PART_TOKENS = 600
"""Of a definition that is too long to be shown whole."""
MOST_GOALS = 3
MOST_RELATED = 8
TEMPERATURE = 0.7


def form_inputs(
    prompt: Prompt[FormInputs, Any],
    place: Place,
    text: str,
    assignment: Assignment,
    *,
    failed: str = "",
    part: bool = False,
) -> FormInputs | None:
    """The prompt's inputs for a place; None if the definition is not there, or is too long for the prompt.

    With `part`, of a definition that is too long the lines around the likeliest one are shown.
    """
    parsed = Parsed(place.path, text)
    visible = shown(parsed, place)
    if visible is None:
        return None
    code = compose((visible.sourced(visible.heads), visible.code))
    whole = FormInputs(
        task=assignment.task,
        evidence="\n".join(_told(goal) for goal in assignment.goals[:MOST_GOALS]),
        observed=assignment.observed,
        path=place.path,
        name=place.name,
        code=code,
        fence=_fence(code),
        related=joined("\n", _related(parsed, place)),
        opening="\n".join(row.text for row in _head(visible)),
        language=grammar_of(place.path) or "",
        failed=failed,
    )
    bare = replace(whole, related="", observed="")
    tried = [whole, replace(whole, related=""), bare]
    if part and place.lines:
        tried.append(
            replace(bare, code=compose((visible.sourced(visible.heads), _around(visible, place.lines[0]))))
        )
    for inputs in tried:
        if estimate(prompt.system) + estimate(prompt.render(inputs)) <= PROMPT_TOKENS:
            return inputs
    return None


def _around(visible: Shown, line: int) -> SourcedText:
    """The head of the definition, and of its body as many of the rows nearest to the line as fit."""
    nearest = sorted(visible.body, key=lambda row: abs(row.number - line))
    totals = itertools.accumulate(estimate(f"{row.text}\n") for row in nearest)
    kept = {row.number for row, total in zip(nearest, totals, strict=True) if total <= PART_TOKENS}
    rows = tuple(row for row in visible.body if row.number in kept)
    return without_line_end(visible.sourced((*visible.top, *rows)))


def sampling_of(draw: int) -> Sampling:
    """The likeliest answer first, then drawn ones."""
    return (
        Sampling() if draw == 0 else Sampling(temperature=TEMPERATURE, seed=100 + draw, top_k=40, top_p=0.95)
    )


def answer_tokens(inputs: FormInputs) -> int:
    """Tokens that a definition of this size can need when it is written anew."""
    return 120 + estimate(inputs.code) * 3 // 2


def _told(goal: GoalTest) -> str:
    if goal.call and goal.wanted:
        gives = f"`{goal.call}` gives {goal.got}, but it should" if goal.got else f"`{goal.call}` should"
        error = goal.wanted.removeprefix("raises ")
        return f"{gives} {'raise ' + error if error != goal.wanted else 'give ' + goal.wanted}"
    code = f":\n{goal.code.strip()}" if goal.code else ""
    got = f": {goal.got}" if goal.got else ""
    return f"{goal.name} fails{got}{code}"


def _head(visible: Shown) -> tuple[Row, ...]:
    """The lines from the definition's own first one to its body, without decorators."""
    rows = list(visible.top)
    while len(rows) > 1 and rows[0].text.lstrip().startswith("@"):
        rows.pop(0)
    return tuple(rows)


def _fence(code: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    return "`" * (longest + 1)


def _related(parsed: Parsed, place: Place) -> Iterator[SourcedText]:
    """The heads of the definitions of the same file that the place calls."""
    node = parsed.node(place)
    called = dict.fromkeys(
        re.split(r"\W", node_text(inner.child_by_field_name("function") or inner))[-1]
        for inner in ([] if node is None else walk(node))
        if inner.type in parsed.nodes.calls
    )
    known = [
        one
        for one in definitions(place.path, parsed.text)
        if one.symbol.rpartition(".")[2] in called and one.symbol != place.name
    ]
    for one in known[:MOST_RELATED]:
        number = line_at(parsed.text, one.start)
        if place.first_line <= number <= place.last_line:
            continue
        line = parsed.lines[number - 1]
        while line.lstrip().startswith("@") and number < len(parsed.lines):
            number += 1
            line = parsed.lines[number - 1]
        yield sourced(
            line[len(indent_of(line)) :],
            PromptSource.OUTLINE,
            path=place.path,
            symbol=one.symbol,
            number=number,
        )
