"""The form `lines`: the wrong lines of a longer definition, as they are and as they must be."""

from collections.abc import Iterator

from clean_room_agent.execute.form_prompts import LINES
from clean_room_agent.execute.forms.asking import form_inputs, sampling_of
from clean_room_agent.execute.forms.checks import is_same_code, static_fault
from clean_room_agent.execute.forms.function import MOST_DRAWS, FormRequest
from clean_room_agent.execute.forms.place import (
    SAME,
    Applied,
    Assignment,
    Parsed,
    Place,
    Refused,
    docstring_of,
    indent_of,
)

ANSWER_TOKENS = 400


def requests(
    place: Place, text: str, assignment: Assignment, *, draws: int = MOST_DRAWS, failed: str = ""
) -> Iterator[FormRequest]:
    """The same question again and again, first for the likeliest answer. Of a long definition, the lines around the likeliest
    one are shown; none if even these are too long.
    """
    inputs = form_inputs(LINES, place, text, assignment, failed=failed, part=True)
    if inputs is None:
        return
    for draw in range(draws):
        yield FormRequest(
            prompt=LINES,
            inputs=inputs,
            sampling=sampling_of(draw),
            draw=draw,
            max_answer_tokens=ANSWER_TOKENS,
        )


def apply(place: Place, text: str, answer: tuple[str, str]) -> Applied | Refused:
    """The file with the lines `answer[0]` of the place replaced by `answer[1]`, or why not.

    They are found whatever their indentation, but only once: in the place, outside its docstring.
    """
    parsed = Parsed(place.path, text)
    node = parsed.node(place)
    if node is None:
        return Refused(reason=f"{place.path} does not define {place.name} there")
    document = docstring_of(node, parsed.nodes)
    hidden = range(0) if document is None else range(document.start_point.row, document.end_point.row + 1)
    before, after = (_trimmed(block) for block in answer)
    wanted = [line.strip() for line in before]
    if not wanted:
        return Refused(reason="the answer copies no line")
    rows = [row for row in range(place.first_line - 1, place.last_line) if row not in hidden]
    there = [parsed.lines[row].strip() for row in rows]
    hits = [at for at in range(len(rows) - len(wanted) + 1) if there[at : at + len(wanted)] == wanted]
    if len(hits) != 1:
        count = "not in" if not hits else f"{len(hits)} times in"
        return Refused(reason=f"the lines that should be replaced are {count} {place.name}")
    first, last = rows[hits[0]], rows[hits[0] + len(wanted) - 1]
    own, indent = indent_of(before[0]), indent_of(parsed.lines[first])
    new = [
        indent + line.removeprefix(own) if line.startswith(own) else _outdented(line, own, indent)
        for line in after
    ]
    stop = parsed.end(last + 1) if new else min(parsed.starts[last + 1], len(parsed.raw))
    result = parsed.spliced(parsed.start(first + 1), stop, "\n".join(line.rstrip() for line in new))
    if result == text or is_same_code(place.path, text, result):
        return Refused(reason=SAME, same=True)
    fault = static_fault(place, text, result)
    if fault:
        return Refused(reason=fault)
    return Applied(text=result, repairs=() if own == indent else ("indentation",))


def _outdented(line: str, own: str, indent: str) -> str:
    """A line that has less indentation than the first one."""
    less = len(own) - len(indent_of(line))
    return indent[: max(len(indent) - less, 0)] + line.lstrip()


def _trimmed(block: str) -> list[str]:
    lines = block.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
