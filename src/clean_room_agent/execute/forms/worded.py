"""The forms that ask in words: for a whole definition, or for the wrong lines of a longer one, as they are and as they must
be. A prompt shows at most 1,500 tokens of a place, the least important left out first.

An answer with a definition is read as tolerantly as can be (see `definition_answers`): what is around the definition is left
out, what it lacks is put back. Where more than one reading is possible, it is refused.
"""

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.goals import GoalTest, gives
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    joined,
    sourced,
    without_line_end,
)
from clean_room_agent.execute.edits.definition_answers import WholeDefinition, import_place, whole_definition
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.indent_units import units_of
from clean_room_agent.execute.edits.parse import longer_fence
from clean_room_agent.execute.edits.search_replace import filled_lines, fitted, indentation, line_of
from clean_room_agent.execute.edits.static_checks import is_same_code, static_fault, undefined_names
from clean_room_agent.execute.forms.place import (
    SAME,
    Assignment,
    Parsed,
    Place,
    Refused,
    Row,
    Shown,
    docstring_of,
    is_stub,
    sampling_of,
    shown,
)
from clean_room_agent.llm.answers import ParseFault, TextAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template
from clean_room_agent.llm.token_estimator import estimate
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.syntax import grammar_of, node_text, walk

PROMPT_TOKENS = 1500
STUB_PROMPT_TOKENS = 3000
"""Of one about what has still to be written: the task's words are all that is known of it, and are often long."""
PART_TOKENS = 600
"""Of a definition that is too long to be shown whole."""
LINES_TOKENS = 400
"""Of an answer with the wrong lines and the right ones."""
MOST_DRAWS = 8
TEMPERATURE = 0.7
MOST_GOALS = 3
"""Goal tests that are told with their text."""
MOST_CALLS = 10
"""Goal tests that are told in a line each, if they fit."""
MOST_RELATED = 8
PROSE_BEFORE = re.compile(
    r"^[ \t]*(?:@|async\b|def\b|class\b|export\b|function\b|const\b|let\b|import\b|from\b)", re.MULTILINE
)
CODE = re.compile(
    r"^\s*(?:(?:async\s+)?def|class|function|export|const|let|@\w|return|if|for|while)\b|[;=]\s*$|=>",
    re.MULTILINE,
)
FENCE = re.compile(r"^\s*(?:```|~~~)")


class FormInputs(Struct, frozen=True, kw_only=True):
    """A definition that has to change; texts may be empty."""

    task: str
    evidence: str
    """What the tests show now."""
    observed: str
    """What was seen when they ran."""
    path: str
    name: str
    """Qualified, of the definition."""
    code: str
    """The definition, its docstring shortened, below the first lines of what it is in."""
    fence: str
    """What frames the code, which does not occur in it."""
    related: str
    """Signatures of what it calls."""
    opening: str
    """How the answer begins."""
    language: str
    """For the fence."""
    now: str = ""
    """What the first test shows now, in a line. It stands once more at the end: small models write what they read last, and else
    copied a class that lacked a method.
    """
    failed: str = ""
    """An earlier answer that was tried, and what it gave."""


def read_code(text: str) -> str | ParseFault:
    """The answer, which holds something like code."""
    if FENCE.search(text) or any(FENCE.match(line) for line in text.split("\n")) or CODE.search(text):
        return text
    return ParseFault(kind="format", fault="the answer holds no code; write it in one block of code")


def read_blocks(text: str) -> tuple[str, str] | ParseFault:
    """The wrong lines and the corrected ones: two blocks, or one block with both marks."""
    blocks = code_blocks(text)
    if len(blocks) >= 2:
        return blocks[0], blocks[1]
    whole = blocks[0] if blocks else text
    parts = re.split(r"^\s*(?:#|//)?\s*(?:BEFORE|AFTER)\b:?[ \t]*\n", whole, flags=re.MULTILINE)
    if len(parts) == 3 and parts[1].strip():
        return parts[1].strip("\n"), parts[2].strip("\n")
    return ParseFault(
        kind="format", fault="two blocks of code were asked for: the lines as they are, and as they must be"
    )


def code_blocks(text: str) -> list[str]:
    """What stands between fences, each without its last line end; an unclosed one ends with the text."""
    blocks: list[str] = []
    lines: list[str] | None = None
    for line in text.split("\n"):
        if FENCE.match(line):
            if lines is None:
                lines = []
                continue
            blocks.append("\n".join(lines))
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None and "".join(lines).strip():
        blocks.append("\n".join(lines))
    return [block for block in blocks if block.strip()]


FUNCTION_EXAMPLE = """\
```python
def count_quokkas(pens):
    return sum(pen.quokkas for pen in pens)
```"""
LINES_EXAMPLE = """\
BEFORE:
```
(the wrong lines, copied exactly)
```
AFTER:
```
(the corrected lines)
```"""
"""Without code, which small models copy."""

FUNCTION: Prompt[FormInputs, str] = Prompt(
    name="function",
    role="coding",
    title="Write one definition anew",
    system=SYSTEM,
    template=KNOWN + template(__file__, "form") + template(__file__, "function"),
    answer=TextAnswer(read_code),
    max_answer_tokens=1024,
    example=FUNCTION_EXAMPLE,
)
LINES: Prompt[FormInputs, tuple[str, str]] = Prompt(
    name="lines",
    role="coding",
    title="Write the lines that change",
    system=SYSTEM,
    template=KNOWN + template(__file__, "form") + template(__file__, "lines"),
    answer=TextAnswer(read_blocks),
    max_answer_tokens=512,
    example=LINES_EXAMPLE,
)


class FormRequest(Struct, frozen=True, kw_only=True):
    """One question in words, and how it is drawn."""

    prompt: Prompt[FormInputs, Any]
    inputs: FormInputs
    sampling: Sampling
    draw: int
    max_answer_tokens: int


def requests(
    prompt: Prompt[FormInputs, Any],
    place: Place,
    text: str,
    assignment: Assignment,
    *,
    draws: int = MOST_DRAWS,
    temperature: float = TEMPERATURE,
    length: float = 1,
    failed: str = "",
) -> Iterator[FormRequest]:
    """The same question again and again, first for the likeliest answer; none if the definition is too long to be shown. An
    answer may have `length` times the usual tokens.
    """
    inputs = _form_inputs(prompt, place, text, assignment, failed)
    if inputs is None:
        return
    # A definition that is written anew can grow by half; one that has still to be written is as long as it has to be.
    most = LINES_TOKENS if prompt is LINES else 120 + estimate(inputs.code) * 3 // 2
    if prompt is FUNCTION and is_stub(Parsed(place.path, text), place):
        most = prompt.max_answer_tokens
    most = round(most * length)
    for draw in range(draws):
        sampling = sampling_of(draw, temperature=temperature)
        yield FormRequest(prompt=prompt, inputs=inputs, sampling=sampling, draw=draw, max_answer_tokens=most)


def apply(place: Place, text: str, answer: str | tuple[str, str]) -> str | Refused:
    """The file with the definition that the answer holds, or with the lines `answer[0]` replaced by `answer[1]`; or why there is
    no candidate.
    """
    if isinstance(answer, str):
        return _with_definition(place, text, answer.replace("\r\n", "\n"))
    return _with_lines(place, text, answer)


def gold(place: Place, right: str) -> str | None:
    """The answer to `FUNCTION` that makes `right` of the place's file: the definition as it is shown, which begins at the same
    line there; None if it does not.
    """
    parsed = Parsed(place.path, right)
    own = parsed.definition(place)
    visible = None if own is None else shown(parsed, replace(place, last_line=line_of(right, own.end)))
    if visible is None:
        return None
    code = "\n".join(row.text for row in (*_head_rows(visible), *visible.documented, *visible.body))
    fence = longer_fence(code)
    return f"{fence}{grammar_of(place.path) or ''}\n{code}\n{fence}"


def _with_definition(place: Place, text: str, answer: str) -> str | Refused:
    parsed = Parsed(place.path, text)
    old = parsed.definition(place)
    if old is None or shown(parsed, place) is None:
        return Refused(reason=f"{place.path} does not define {place.name} there")
    blocks = code_blocks(answer) or [_without_prose(answer)]
    read: dict[str, tuple[WholeDefinition, str]] = {}
    reason = "it has no code"
    for block in blocks:
        code = units_of(place.path, text, "", block)[1]
        found = whole_definition(place.path, text, (old.start, old.end), place.name, code, only=True)
        if isinstance(found, WholeDefinition):
            read[fitted(text, old.start, old.end, found.text).applied(text)] = found, code
        else:
            reason = found.reason
    whole = {after: (found, code) for after, (found, code) in read.items() if not found.is_body}
    if not whole and len(blocks) == 1:
        whole = read
    # An answer may first show what stands there.
    changed = {after: found for after, found in whole.items() if not is_same_code(place.path, text, after)}
    if not changed:
        return Refused(reason=SAME) if whole else Refused(reason=f"the answer is no candidate: {reason}")
    if len(changed) > 1:
        return Refused(reason=f"the answer defines {place.name} {len(changed)} times, each differently")
    ((after, (definition, code)),) = changed.items()
    fault = static_fault(place.path, place.name, text, after)
    if fault.startswith("nothing defines"):
        wider = _with_additions(parsed, place, after, definition.imports, code)
        if not static_fault(place.path, place.name, text, wider):
            return wider
    return Refused(reason=fault) if fault else after


def _without_prose(answer: str) -> str:
    """The answer from the first line on that looks like code."""
    found = PROSE_BEFORE.search(answer)
    return answer[found.start() :] if found else answer


def _with_additions(parsed: Parsed, place: Place, after: str, imports: tuple[str, ...], answer: str) -> str:
    """The file with those imports and helpers of the answer that its definition needs and the file lacks."""
    end = "\r\n" if "\r\n" in after else "\n"
    at = import_place(place.path, after, len(after))
    after = after[:at] + "".join(f"{line}{end}" for line in imports) + after[at:]
    missing = undefined_names(place.path, parsed.text, after)
    code = textwrap.dedent(answer)
    helpers = [code[one.start : one.end] for one in definitions(place.path, code) if one.symbol in missing]
    holder = next(one for one in definitions(place.path, after) if one.symbol == place.name.partition(".")[0])
    added = "".join(f"{helper}\n\n\n".replace("\n", end) for helper in helpers)
    return after[: holder.top] + added + after[holder.top :]


def _form_inputs(
    prompt: Prompt[FormInputs, Any], place: Place, text: str, assignment: Assignment, failed: str
) -> FormInputs | None:
    """The prompt's inputs for a place; None if the definition is not there, or is too long for the prompt.

    If lines are asked for, those around the likeliest one are shown of a definition that is too long.
    """
    parsed = Parsed(place.path, text)
    visible = shown(parsed, place)
    if visible is None:
        return None
    code = compose((visible.sourced(visible.heads), visible.code))
    whole = FormInputs(
        task=assignment.task,
        evidence=_goal_evidence(assignment.goals, MOST_CALLS),
        observed=assignment.observed,
        path=place.path,
        name=place.name,
        code=code,
        fence=longer_fence(code),
        related=joined("\n", _related_heads(parsed, place)),
        opening="\n".join(row.text for row in _head_rows(visible)),
        language=grammar_of(place.path) or "",
        now=next((_current_failure(goal) for goal in assignment.goals), ""),
        failed=failed,
    )
    few = replace(whole, evidence=_goal_evidence(assignment.goals, MOST_GOALS))
    bare = replace(few, related="", observed="")
    tried = [whole, few, replace(few, related=""), bare]
    if prompt is LINES and place.lines:
        tried.append(
            replace(
                bare,
                code=compose((visible.sourced(visible.heads), _code_around_line(visible, place.lines[0]))),
            )
        )
    most = STUB_PROMPT_TOKENS if is_stub(parsed, place) else PROMPT_TOKENS
    for inputs in tried:
        if estimate(prompt.system) + estimate(prompt.render(inputs)) <= most:
            return inputs
    return None


def _code_around_line(visible: Shown, line: int) -> SourcedText:
    """The head of the definition, and of its body as many of the rows nearest to the line as fit."""
    nearest = sorted(visible.body, key=lambda row: abs(row.number - line))
    totals = itertools.accumulate(estimate(f"{row.text}\n") for row in nearest)
    kept = {row.number for row, total in zip(nearest, totals, strict=True) if total <= PART_TOKENS}
    rows = tuple(row for row in visible.body if row.number in kept)
    return without_line_end(visible.sourced((*visible.top, *rows)))


def _goal_evidence(goals: Sequence[GoalTest], most: int) -> str:
    """What the goal tests show, at most `MOST_GOALS` of them with their text."""
    long = [goal for goal in goals if not (goal.call and goal.wanted)][:MOST_GOALS]
    told = [goal for goal in goals if goal in long or (goal.call and goal.wanted)]
    return "\n".join(map(_goal_line, told[:most]))


def _current_failure(goal: GoalTest) -> str:
    """What is wrong, as a sentence."""
    if goal.call and goal.wanted:
        return f"{_goal_line(goal)}."
    got = goal.got.partition("\n")[0]
    return f"The tests fail now with: {got}" if got else ""


def _goal_line(goal: GoalTest) -> str:
    if goal.call and goal.wanted:
        now = (
            f"`{goal.whole_call}` {gives(goal.got)}, but it should"
            if goal.got
            else f"`{goal.whole_call}` should"
        )
        error = goal.wanted.removeprefix("raises ")
        return f"{now} {'raise ' + error if error != goal.wanted else 'give ' + goal.wanted}"
    code = f":\n{goal.code.strip()}" if goal.code else ""
    got = f": {goal.got}" if goal.got else ""
    return f"{goal.name} fails{got}{code}"


def _head_rows(visible: Shown) -> tuple[Row, ...]:
    """The lines from the definition's own first one to its body, without decorators."""
    rows = list(visible.top)
    while len(rows) > 1 and rows[0].text.lstrip().startswith("@"):
        rows.pop(0)
    return tuple(rows)


def _related_heads(parsed: Parsed, place: Place) -> Iterator[SourcedText]:
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
        number = line_of(parsed.text, one.start)
        if place.first_line <= number <= place.last_line:
            continue
        line = parsed.lines[number - 1]
        while line.lstrip().startswith("@") and number < len(parsed.lines):
            number += 1
            line = parsed.lines[number - 1]
        yield sourced(
            line[len(indentation(line)) :],
            PromptSource.OUTLINE,
            path=place.path,
            symbol=one.symbol,
            number=number,
        )


def _with_lines(place: Place, text: str, answer: tuple[str, str]) -> str | Refused:
    """The lines are found whatever their indentation, but only once: in the place, outside its docstring. They may also be the
    whole definition with its docstring, as it is shown.
    """
    parsed = Parsed(place.path, text)
    node = parsed.node(place)
    if node is None:
        return Refused(reason=f"{place.path} does not define {place.name} there")
    document = docstring_of(node, parsed.nodes)
    hidden = range(0) if document is None else range(document.start_point.row, document.end_point.row + 1)
    before, after = (filled_lines(block) for block in units_of(place.path, text, *answer))
    wanted = [line.strip() for line in before]
    if not wanted:
        return Refused(reason="the answer copies no line")
    rows = [row for row in range(place.first_line - 1, place.last_line) if row not in hidden]
    there = [parsed.lines[row].strip() for row in rows]
    hits = [at for at in range(len(rows) - len(wanted) + 1) if there[at : at + len(wanted)] == wanted]
    if not hits and _are_definitions(parsed, place, wanted, after):
        return _with_definition(place, text, answer[1])
    if len(hits) != 1:
        count = "not in" if not hits else f"{len(hits)} times in"
        return Refused(reason=f"the lines that should be replaced are {count} {place.name}")
    first, last = rows[hits[0]], rows[hits[0] + len(wanted) - 1]
    own, indent = indentation(before[0]), indentation(parsed.lines[first])
    new = [
        indent + line.removeprefix(own) if line.startswith(own) else _outdent_line(line, own, indent)
        for line in after
    ]
    stop = parsed.end(last + 1) if new else min(parsed.starts[last + 1], len(parsed.raw))
    result = parsed.spliced(parsed.start(first + 1), stop, "\n".join(line.rstrip() for line in new))
    if result == text or is_same_code(place.path, text, result):
        return Refused(reason=SAME)
    fault = static_fault(place.path, place.name, text, result)
    return Refused(reason=fault) if fault else result


def _are_definitions(parsed: Parsed, place: Place, before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether both are the definition from its head on, the first as it is shown; decorators may be left out."""
    visible = shown(parsed, place)
    if visible is None or not after:
        return False
    rows = [row.text.strip() for row in (*visible.top, *visible.documented, *visible.body)]
    head = [row.text.strip() for row in visible.top]
    copied = [line for line in before if line]
    same_start = after[0].strip().partition("(")[0] == before[0].partition("(")[0]
    return copied[0] in head and copied == [line for line in rows if line][-len(copied) :] and same_start


def _outdent_line(line: str, own: str, indent: str) -> str:
    """A line that has less indentation than the first one."""
    less = len(own) - len(indentation(line))
    return indent[: max(len(indent) - less, 0)] + line.lstrip()
