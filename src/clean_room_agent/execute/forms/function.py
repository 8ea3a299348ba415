"""The form `function`: a definition is asked for as a whole, and whatever small models do to one is repaired by rule.

An answer is read as one definition of the place's name. What is around it is left out: prose, imports, definitions that the
file has, a class repeated around a method. What it lacks is put back: decorators, `export`, the docstring, and the head, if
only a body was written. Where more than one reading is possible, it is refused.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from clean_room_agent.execute.edits.definitions import Definition, definitions
from clean_room_agent.execute.edits.static_checks import undefined_names
from clean_room_agent.execute.form_prompts import FUNCTION, FormInputs, code_blocks
from clean_room_agent.execute.forms.asking import answer_tokens, form_inputs, sampling_of
from clean_room_agent.execute.forms.checks import is_same_code, static_fault
from clean_room_agent.execute.forms.place import (
    SAME,
    Applied,
    Assignment,
    Parsed,
    Place,
    Refused,
    docstring_of,
    indent_of,
    line_at,
    node_name,
    shown,
    walk,
)
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.syntax import import_lines, nodes_of, tree_of

MOST_DRAWS = 8
PROSE_BEFORE = re.compile(
    r"^[ \t]*(?:@|async\b|def\b|class\b|export\b|function\b|const\b|let\b|import\b|from\b)", re.MULTILINE
)


class FormRequest(Struct, frozen=True, kw_only=True):
    """One question in words, and how it is drawn."""

    prompt: Prompt[FormInputs, Any]
    inputs: FormInputs
    sampling: Sampling
    draw: int
    max_answer_tokens: int


def requests(
    place: Place, text: str, assignment: Assignment, *, draws: int = MOST_DRAWS, failed: str = ""
) -> Iterator[FormRequest]:
    """The same question again and again, first for the likeliest answer; none if the definition is too long to be shown."""
    inputs = form_inputs(FUNCTION, place, text, assignment, failed=failed)
    if inputs is None:
        return
    for draw in range(draws):
        yield FormRequest(
            prompt=FUNCTION,
            inputs=inputs,
            sampling=sampling_of(draw),
            draw=draw,
            max_answer_tokens=answer_tokens(inputs),
        )


def apply(place: Place, text: str, answer: str) -> Applied | Refused:
    """The file with the definition that the answer holds, or why there is none."""
    parsed = Parsed(place.path, text)
    old = parsed.definition(place)
    visible = shown(parsed, place)
    if old is None or visible is None:
        return Refused(reason=f"{place.path} does not define {place.name} there")
    reading = _read(parsed, place, answer.replace("\r\n", "\n"))
    if isinstance(reading, Refused):
        return reading
    found, repairs = reading.lines, list(reading.repairs)
    found = _with_head(parsed, place, found, repairs)
    found = _with_docstring(parsed, place, found, repairs)
    after = parsed.spliced(parsed.start(place.first_line), parsed.end(place.last_line), "\n".join(found))
    if after == text or is_same_code(place.path, text, after):
        return Refused(reason=SAME, same=True)
    fault = static_fault(place, text, after)
    if fault.startswith("nothing defines"):
        wider = _with_additions(parsed, place, after, reading.around, repairs)
        if not static_fault(place, text, wider):
            return Applied(text=wider, repairs=tuple(repairs))
    return Refused(reason=fault) if fault else Applied(text=after, repairs=tuple(repairs))


class _Reading(Struct, frozen=True, kw_only=True):
    lines: list[str]
    """Of the definition, indented as the place is."""
    around: str
    """The code in which it was found."""
    repairs: tuple[str, ...]


def _read(parsed: Parsed, place: Place, answer: str) -> _Reading | Refused:
    leaf = place.name.rpartition(".")[2]
    blocks = code_blocks(answer)
    repairs = [] if len(blocks) == 1 else ["no fence" if not blocks else "several blocks"]
    candidates = blocks or [_without_prose(answer)]
    named: list[tuple[str, Definition]] = []
    others: list[str] = []
    for block in candidates:
        for code in _as_files(place, block):
            inside = definitions(place.path, code)
            matching = [one for one in inside if one.symbol.rpartition(".")[2] == leaf]
            exact = [one for one in matching if one.symbol == place.name] or [
                one for one in matching if one.symbol == leaf or one.symbol.endswith(f"A.{leaf}")
            ]
            named += [(code, one) for one in (exact or matching)]
            if not _returns(place, code):
                others += [one.symbol for one in inside if one.symbol != "A"]
            if matching:
                break
    texts = {code[one.start : one.end].strip(): (code, one) for code, one in named}
    if len(texts) > 1:
        texts = _meant(parsed, place, texts)
    if len(texts) > 1:
        return Refused(reason=f"the answer defines {leaf} {len(texts)} times, each differently")
    if texts:
        code, one = next(iter(texts.values()))
        return _found(parsed, place, code, one, repairs, answer)
    if others:
        return Refused(reason=f"the answer does not define {leaf}, but {others[0]}")
    return _body(parsed, place, candidates, repairs)


def _meant(
    parsed: Parsed, place: Place, texts: dict[str, tuple[str, Definition]]
) -> dict[str, tuple[str, Definition]]:
    """Those of several versions that can be meant: with the decorators of the place (a property and its setter have one
    name), and not what stands there, which an answer may show first.
    """
    there = parsed.lines[place.first_line - 1 : place.last_line]
    decorators = [line.strip() for line in _decorators(there)]
    alike = {
        text: one
        for text, one in texts.items()
        if [line.strip() for line in _decorators(text.split("\n"))] == decorators
    }
    texts = alike or texts
    old = "".join(_bare("\n".join(there)))
    return {text: one for text, one in texts.items() if _bare(text) != old} or texts


def _bare(code: str) -> str:
    """The code without blanks and docstring."""
    return "".join(re.sub(r"(\"\"\"|\'\'\').*?\1", "", code, count=1, flags=re.DOTALL).split())


def _as_files(place: Place, block: str) -> Iterator[str]:
    """The code as a file: moved to the left, and a bare method in what has to hold it."""
    code = _dedented(block)
    yield code
    holder = nodes_of(place.path).method_holder
    if holder:
        yield f"{holder}\n{code}\n}}\n"


def _returns(place: Place, code: str) -> bool:
    """Whether the code returns something outside of any definition, so that it is a body."""
    tree = tree_of(code.encode("utf-8", "surrogatepass"), place.path)
    return tree is not None and any(one.type == "return_statement" for one in tree.root_node.named_children)


def _dedented(code: str) -> str:
    """The code moved to the left by the indentation that all its lines share."""
    lines = code.split("\n")
    indents = [indent_of(line) for line in lines if line.strip()]
    shared = min(indents, key=len, default="")
    while not all(indent.startswith(shared) for indent in indents):
        shared = shared[:-1]
    return "\n".join(line.removeprefix(shared) if line.strip() else "" for line in lines)


def _without_prose(answer: str) -> str:
    """The answer from the first line on that looks like code."""
    found = PROSE_BEFORE.search(answer)
    return answer[found.start() :] if found else answer


def _found(
    parsed: Parsed, place: Place, code: str, one: Definition, repairs: list[str], answer: str
) -> _Reading:
    lines = code[code.rfind("\n", 0, one.start) + 1 : one.end].split("\n")
    if code[: one.start].strip() not in {"", parsed.nodes.method_holder} or code[one.end :].strip() not in {
        "",
        "}",
    }:
        repairs.append("other code around it")
    indent = indent_of(parsed.lines[place.first_line - 1])
    if f"\n{indent}{lines[0].strip()}" not in f"\n{answer}":
        repairs.append("indentation")
    fixed = _strings(place.path, code, line_at(code, one.start), len(lines))
    moved = _moved(lines, indent, fixed, tabs=_uses_tabs(parsed, place))
    return _Reading(lines=moved, around=code, repairs=tuple(repairs))


def _strings(path: str, code: str, first: int, count: int) -> frozenset[int]:
    """Which of the lines, from 0, begin within a string, so that their blanks belong to it."""
    tree = tree_of(code.encode("utf-8", "surrogatepass"), path)
    rows: set[int] = set()
    for node in [] if tree is None else walk(tree.root_node):
        if node.type in nodes_of(path).strings:
            rows.update(range(node.start_point.row + 1, node.end_point.row + 1))
    return frozenset(row - first + 1 for row in rows if 0 <= row - first + 1 < count)


def _moved(lines: list[str], indent: str, fixed: frozenset[int], *, tabs: bool = False) -> list[str]:
    """The lines with another indentation; in `tabs`, what they are indented by beyond the first one becomes tabs."""
    own = indent_of(lines[0])
    deeper = [
        indent_of(line.removeprefix(own)) for at, line in enumerate(lines) if at not in fixed and line.strip()
    ]
    unit = min((one for one in deeper if one.strip("\t")), key=len, default="")
    moved = []
    for number, line in enumerate(lines):
        if number in fixed:
            moved.append(line)
        elif not line.strip():
            moved.append("")
        else:
            rest = line.removeprefix(own) if line.startswith(own) else line.lstrip()
            inner = indent_of(rest)
            if tabs and unit:
                rest = inner.replace(unit, "\t") + rest[len(inner) :]
            moved.append(indent + rest)
    return moved


def _uses_tabs(parsed: Parsed, place: Place) -> bool:
    """Whether the place is indented by tabs."""
    return any(line.startswith("\t") for line in parsed.lines[place.first_line - 1 : place.last_line])


def _body(parsed: Parsed, place: Place, blocks: list[str], repairs: list[str]) -> _Reading | Refused:
    """The answer as the body of the definition, below its head."""
    visible = shown(parsed, place)
    bodies = [block for block in map(_dedented, blocks) if block.strip()]
    if visible is None or len(bodies) != 1:
        return Refused(reason="the answer is not one block of code")
    body = bodies[0].strip("\n").split("\n")
    head = [row.text for row in visible.top]
    closing = [] if parsed.nodes.indented else [parsed.lines[place.last_line - 1]]
    if closing and (not head[-1].rstrip().endswith("{") or closing[0].strip().rstrip(";,") != "}"):
        return Refused(reason="the answer is no definition")
    fixed = _strings(place.path, "\n".join(body), 1, len(body))
    lines = [*head, *_moved(body, visible.indent, fixed, tabs=_uses_tabs(parsed, place)), *closing]
    alone = "\n".join(_dedented("\n".join(lines)).split("\n")) + "\n"
    node = parsed.node(place)
    is_held = parsed.nodes.method_holder and node is not None and node.type == "method_definition"
    wrapped = f"{parsed.nodes.method_holder}\n{alone}}}\n" if is_held else alone
    tree = tree_of(wrapped.encode("utf-8", "surrogatepass"), place.path)
    statements = tree_of(("\n".join(body) + "\n").encode("utf-8", "surrogatepass"), place.path)
    if tree is None or tree.root_node.has_error or statements is None:
        return Refused(reason="the answer is neither the definition nor its body")
    if all(
        one.type in {"expression_statement", "comment"} and _is_word(one.text)
        for one in statements.root_node.named_children
    ):
        return Refused(reason="the answer is neither the definition nor its body")
    return _Reading(lines=lines, around="", repairs=(*repairs, "a body without its head"))


def _is_word(text: bytes | None) -> bool:
    return re.fullmatch(rb"[\w .,;:!?'\"-]*", text or b"") is not None


def _with_head(parsed: Parsed, place: Place, lines: list[str], repairs: list[str]) -> list[str]:
    """The lines with the decorators and the `export` of the place, where they have none, or only some."""
    visible = shown(parsed, place)
    old = [] if visible is None else [row.text for row in visible.top]
    decorators = _decorators(old)
    own = _decorators(lines)
    if (
        decorators
        and own != decorators
        and all(line.strip() in {one.strip() for one in decorators} for line in own)
    ):
        repairs.append("decorators")
        lines = [*decorators, *lines[len(own) :]]
    first = len(_decorators(lines))
    was = old[len(decorators)].lstrip() if len(old) > len(decorators) else ""
    for words in ("export default ", "export "):
        if was.startswith(words) and not lines[first].lstrip().startswith("export"):
            repairs.append("export")
            indent = indent_of(lines[first])
            lines = [*lines[:first], f"{indent}{words}{lines[first].lstrip()}", *lines[first + 1 :]]
            break
    return lines


def _decorators(lines: list[str]) -> list[str]:
    """The first lines, as far as they are decorators or go on with one."""
    found: list[str] = []
    depth = 0
    for line in lines:
        if depth <= 0 and not line.lstrip().startswith("@"):
            break
        found.append(line)
        depth += sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
    return found


def _with_docstring(parsed: Parsed, place: Place, lines: list[str], repairs: list[str]) -> list[str]:
    """The lines with the place's own docstring, which the model was not shown whole."""
    node = parsed.node(place)
    old = None if node is None else docstring_of(node, parsed.nodes)
    if old is None:
        return lines
    text = "\n".join(parsed.lines[old.start_point.row : old.end_point.row + 1])
    code = _dedented_whole(lines)
    tree = tree_of(code.encode("utf-8", "surrogatepass"), place.path)
    leaf = place.name.rpartition(".")[2]
    found = next(
        (
            one
            for one in ([] if tree is None else walk(tree.root_node))
            if node_name(one) == leaf and "definition" in one.type
        ),
        None,
    )
    body = None if found is None else found.child_by_field_name("body")
    if found is None or body is None or body.start_point.row == found.start_point.row:
        return lines
    new = docstring_of(found, parsed.nodes)
    begin = body.start_point.row if new is None else new.start_point.row
    end = begin if new is None else new.end_point.row + 1
    document = text.split("\n")
    if new is None:
        repairs.append("docstring")
    return [*lines[:begin], *document, *lines[end:]]


def _dedented_whole(lines: list[str]) -> str:
    """The lines moved to the left by the first one's indentation, as far as each has it."""
    own = indent_of(lines[0])
    return "\n".join(line.removeprefix(own) for line in lines) + "\n"


def _with_additions(parsed: Parsed, place: Place, after: str, around: str, repairs: list[str]) -> str:
    """The file with those imports and helpers of the answer that its definition needs and the file lacks."""
    known = {line.strip() for line in parsed.lines}
    lines = around.split("\n")
    imports = [
        "\n".join(lines[first - 1 : last])
        for first, last in import_lines(around.encode("utf-8", "surrogatepass"), place.path)
    ]
    new = [one for one in imports if one.strip() not in known]
    end = "\r\n" if "\r\n" in after else "\n"
    if new:
        rows = import_lines(after.encode("utf-8", "surrogatepass"), place.path)
        at = rows[-1][1] if rows else 0
        there = after.split(end)
        after = end.join([*there[:at], *new, *there[at:]])
        repairs.append("imports")
    missing = undefined_names(place.path, parsed.text, after)
    helpers = [
        around[one.start : one.end] for one in definitions(place.path, around) if one.symbol in missing
    ]
    if helpers:
        top = place.name.partition(".")[0]
        holder = next(one for one in definitions(place.path, after) if one.symbol == top)
        text = "".join(f"{helper}{end}{end}{end}" for helper in helpers)
        after = after[: holder.top] + text + after[holder.top :]
        repairs.append("helpers")
    return after
